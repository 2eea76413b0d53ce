//! The reasons a store in Postgres cannot be opened.

use crate::sqlite::OpenStoreError;
use crate::vault::{ReadPassphraseError, UnlockError};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_engine::port::StoreError;

/// The reason a store in Postgres cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenPostgresError {
    /// The server does not answer, or does not let us in.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// There is no store in the database yet, and none was to be made.
    #[error("there is no store in the database")]
    Empty,
    /// The tables were made by a newer version.
    #[error("the store has version {found} of its tables, and this program knows {known}")]
    NewerSchema {
        /// The version of the tables.
        found: i32,
        /// The latest version that this program knows.
        known: i32,
    },
    /// The server or the database is of no use to a store.
    #[error("the database cannot hold a store: {0}")]
    Unsuitable(String),
    /// The certificates that the address names cannot be read.
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
    /// The thread of the store cannot be started.
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
    /// The store is encrypted, and no passphrase was given.
    #[error("the store is encrypted: its passphrase is needed")]
    Encrypted,
    /// A passphrase was given, and the store is not encrypted.
    #[error("a passphrase was given, but the store is not encrypted")]
    NotEncrypted,
    /// The lock of the store does not open.
    #[error(transparent)]
    Unlock(#[from] UnlockError),
    /// The passphrase cannot be set.
    #[error(transparent)]
    Passphrase(#[from] ReadPassphraseError),
    /// The database refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClassifiedError for OpenPostgresError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable(_) => ErrorKind::Unavailable.with_code("store_unreachable"),
            Self::Empty => ErrorKind::Unavailable.with_code("store_not_opened"),
            Self::NewerSchema { .. } => ErrorKind::Unavailable.with_code("store_too_new"),
            Self::Unsuitable(_) => ErrorKind::Unavailable.with_code("store_not_opened"),
            Self::Certificates(_) => ErrorKind::Unavailable.with_code("store_not_opened"),
            Self::Thread(_) => ErrorKind::Unavailable.with_code("store_not_opened"),
            // The same words as for a store in a file.
            Self::Encrypted => OpenStoreError::Encrypted.class(),
            Self::NotEncrypted => OpenStoreError::NotEncrypted.class(),
            Self::Unlock(UnlockError::WrongPassphrase) => {
                ErrorKind::Locked.with_code("wrong_passphrase")
            }
            Self::Unlock(UnlockError::Damaged(_)) => {
                ErrorKind::Damaged.with_code("store_lock_damaged")
            }
            Self::Unlock(UnlockError::Newer(_) | UnlockError::Memory | UnlockError::Random(_)) => {
                ErrorKind::Unavailable.with_code("store_lock_unusable")
            }
            Self::Passphrase(_) => ErrorKind::Invalid.with_code("passphrase_unusable"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Encrypted => OpenStoreError::Encrypted.hint(),
            Self::NotEncrypted => OpenStoreError::NotEncrypted.hint(),
            Self::Unlock(UnlockError::WrongPassphrase) => Some(Hint::Text(
                "nothing was changed; the store cannot be read without its passphrase".to_owned(),
            )),
            Self::Unlock(_) => Some(Hint::DiagnoseStore),
            Self::Passphrase(_)
            | Self::Unreachable(_)
            | Self::Empty
            | Self::NewerSchema { .. }
            | Self::Unsuitable(_)
            | Self::Certificates(_)
            | Self::Thread(_) => None,
        }
    }
}
