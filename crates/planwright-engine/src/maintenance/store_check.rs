//! Finding out whether the store can be used at all.

use super::Maintenance;
use crate::port::{AppendError, StoreError};
use planwright_core::error::{ClassifiedError, ErrorClass, Hint};
use planwright_core::journal::StreamName;

/// The reason why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckStoreError {
    /// A read failed.
    #[error("the store cannot be read: {0}")]
    Unreadable(StoreError),
    /// A commit failed.
    #[error("the store cannot be written: {0}")]
    Unwritable(AppendError),
}

impl ClassifiedError for CheckStoreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(error) => error.class(),
            Self::Unwritable(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Unreadable(error) => error.hint(),
            Self::Unwritable(error) => error.hint(),
        }
    }
}

impl Maintenance {
    /// Reads from the store and commits nothing to it. A commit of nothing still needs the store's
    /// writer and its lock, so it fails where a real one would.
    pub async fn check_store(&self) -> Result<(), CheckStoreError> {
        let store = &self.context.ports.store;
        let absent = StreamName::Plan("readiness".parse().expect("a name"));
        let head = store.head(&absent).await;
        head.map_err(CheckStoreError::Unreadable)?;
        let committed = store.append(Vec::new()).await;
        committed.map_err(CheckStoreError::Unwritable)
    }
}
