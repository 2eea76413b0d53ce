//! Encryption at rest: what a thief of the files, or of a backup, can neither read nor change
//! unnoticed.
//!
//! A passphrase opens a lock ([`LockedKey`]), the lock holds a random key, and the key seals what
//! is kept. The cipher knows nothing about tables or files: the caller that keeps something says
//! what it is and where it belongs, and a text that is found in another place does not open.

mod cipher;
mod locked_key;
mod passphrase;

pub use cipher::{Cipher, OpenSealedError, SealError, SealedPlace};
pub use locked_key::{LockedKey, StretchCost, UnlockError};
pub use passphrase::{Passphrase, ReadPassphraseError};

pub(crate) use locked_key::DataKey;
