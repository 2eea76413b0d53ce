//! Passkeys as browsers and devices speak about them (WebAuthn): what they say is read and checked here.
//!
//! No attestation is asked for: which make of device a person has does not matter. So what is to be read is small,
//! three kinds of keys are taken, and signatures are checked by the library that does it for TLS.

mod cbor;
mod device_key;
mod statements;

pub use statements::WebAuthn;
