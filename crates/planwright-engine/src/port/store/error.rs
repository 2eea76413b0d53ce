//! Errors of the store.

use super::OwnerId;
use planwright_core::id::RunId;
use planwright_core::journal::{ChainError, Head, StreamName};
use planwright_core::time::Timestamp;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The journal of one stream cannot be trusted. Other streams are not affected.
    #[error("the journal of {stream} is damaged: {reason}")]
    Damaged { stream: StreamName, reason: String },
    /// The store cannot be used at all.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    pub fn chain(stream: &StreamName, error: &ChainError) -> Self {
        Self::Damaged {
            stream: stream.clone(),
            reason: error.to_string(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another writer appended first. Read and decide again.
    #[error("{stream} has grown: expected {expected:?}, found {found:?}")]
    Conflict {
        stream: StreamName,
        expected: Head,
        found: Head,
    },
    /// Another owner has taken the run over. Stop at once.
    #[error("run {run} has another owner now (epoch {found}, ours was {ours})")]
    Fenced { run: RunId, ours: u64, found: u64 },
    /// A record that may exist only once exists already.
    #[error("{stream} already has a record with the key {key}")]
    Duplicate { stream: StreamName, key: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The owner is alive and its lease has not run out.
    #[error("run {run} is being executed by {owner:?} until {expires_at}")]
    Held {
        run: RunId,
        owner: OwnerId,
        expires_at: Timestamp,
    },
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    #[error(transparent)]
    Store(#[from] StoreError),
}
