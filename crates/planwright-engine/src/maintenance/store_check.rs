//! Finding out whether the store can be used at all.

use super::Maintenance;
use crate::port::{StoreError, failed_for_good};
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
    Unwritable(StoreError),
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
    /// Reads from the store, and makes a small write durable: it fails where any other write would.
    pub async fn check_store(&self) -> Result<(), CheckStoreError> {
        let store = &self.context.ports.store;
        let absent = StreamName::Plan("readiness".parse().expect("a name"));
        let head = store.head(&absent).await;
        head.map_err(CheckStoreError::Unreadable)?;
        let written = store.probe().await;
        written.map_err(CheckStoreError::Unwritable)
    }

    /// Waits until the store has failed for good, and returns why. Most stores never do.
    pub async fn store_failure(&self) -> String {
        failed_for_good(&mut self.context.ports.store.failure()).await
    }
}
