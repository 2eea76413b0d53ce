//! Kinds, codes and next steps of stores that cannot be opened.

use super::OpenStoreError;
use crate::vault::UnlockError;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};

impl ClassifiedError for OpenStoreError {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Damaged, Forbidden, Invalid, Locked, Unavailable};
        match self {
            Self::Encrypted => Locked.with_code("store_encrypted"),
            Self::NotEncrypted => Locked.with_code("store_not_encrypted"),
            Self::Unlock(UnlockError::WrongPassphrase) => Locked.with_code("wrong_passphrase"),
            Self::Unlock(UnlockError::Damaged(_)) => Damaged.with_code("store_lock_damaged"),
            Self::Unlock(UnlockError::Newer(_) | UnlockError::Memory | UnlockError::Random(_)) => {
                Unavailable.with_code("store_lock_unusable")
            }
            Self::Passphrase(_) => Invalid.with_code("passphrase_unusable"),
            Self::NotADatabase => Damaged.with_code("not_a_store"),
            Self::Missing(_) => Damaged.with_code("store_missing"),
            Self::Foreign(_) => Forbidden.with_code("store_not_adopted"),
            Self::NewerSchema { .. } => Unavailable.with_code("store_too_new"),
            Self::Locked | Self::Rewriting => Unavailable.with_code("store_busy"),
            Self::UnsafeSqlite(_)
            | Self::Directory { .. }
            | Self::File { .. }
            | Self::NotAFile(_)
            | Self::Full
            | Self::ReadOnly
            | Self::Sqlite(_)
            | Self::Thread(_) => Unavailable.with_code("store_not_opened"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Encrypted => Some(Hint::GivePassphrase),
            Self::NotEncrypted => Some(Hint::EncryptStore),
            Self::Unlock(UnlockError::WrongPassphrase) => Some(Hint::Text(
                "nothing was changed; the store cannot be read without its passphrase".to_owned(),
            )),
            Self::Passphrase(_) => None,
            Self::Full => Some(Hint::FreeSpace),
            Self::Foreign(_) => Some(Hint::AdoptStore),
            Self::Locked => Some(Hint::FindStoreHolder),
            Self::Missing(_) => Some(Hint::Text(
                "planwright store restore BACKUP --replace brings a backup back; to begin afresh, remove the files beside it too"
                    .to_owned(),
            )),
            _ => Some(Hint::DiagnoseStore),
        }
    }
}
