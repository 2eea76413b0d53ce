//! The user's own key: what it signs was made by this user's program, and every holder of the public key can check that
//! with the public half. The only place that knows which library signs.

mod envelope;
mod key;
mod key_file;

pub use envelope::{OpenEnvelopeError, open_envelope, seal_envelope};
pub(crate) use key::MarkKey;
pub use key::{PublicKey, SIGNATURE_BYTES, SigningKey, VerifySignatureError, verify_signature};
pub use key_file::{KeyFileError, KeyOrigin};
