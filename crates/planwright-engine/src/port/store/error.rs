//! Errors of the store.

use super::OwnerId;
use planwright_core::id::RunId;
use planwright_core::journal::{ChainError, Head, StreamName};
use planwright_core::time::Timestamp;

/// The reason the store cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The journal of one stream cannot be trusted. Other streams are not affected.
    #[error("the journal of {stream} is damaged: {reason}")]
    Damaged {
        /// The journal.
        stream: StreamName,
        /// The damage that was found.
        reason: String,
    },
    /// The journal is in a sealed file: it can be read, and nothing can be added to it.
    #[error("the journal of {stream} is sealed (in {file}): nothing can be added to it")]
    Sealed {
        /// The journal.
        stream: StreamName,
        /// The name of the sealed file.
        file: String,
    },
    /// Another process has the store to itself for longer than was waited. Nothing was written.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// The database that the store is in does not answer. Nothing was written. Unlike with a store of this
    /// machine, other processes may be able to write to it meanwhile.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// There is no space left for a write. Nothing was written; it works again once there is.
    #[error("the disk is full")]
    Full,
    /// Nothing may be written where the store is.
    #[error("the store is read-only")]
    ReadOnly,
    /// The store was made by another user, on another machine, or is a copy: it can be read, and
    /// nothing is written into it before a person adopts it.
    #[error("the store was not adopted: {0}")]
    NotAdopted(String),
    /// The store failed for good, and with it this process: what the disk holds is unknown, or is
    /// not this store any more. Nothing helps but to open the store again.
    #[error("the store can no longer be used: {0}")]
    Lost(String),
    /// The store cannot be used at all.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Returns whether the same write may work in a while: nothing of it was written, and nothing
    /// is wrong with the store itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Busy(_) | Self::Unreachable(_) | Self::Full | Self::ReadOnly => true,
            Self::Damaged { .. }
            | Self::Sealed { .. }
            | Self::NotAdopted(_)
            | Self::Lost(_)
            | Self::Failed(_) => false,
        }
    }

    /// Makes the error of a journal whose hash chain is broken.
    pub fn chain(stream: &StreamName, error: &ChainError) -> Self {
        Self::Damaged {
            stream: stream.clone(),
            reason: error.to_string(),
        }
    }
}

/// The reason an append was not made. Nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another writer appended first. Read and decide again.
    #[error("{stream} has grown: expected {expected:?}, found {found:?}")]
    Conflict {
        /// The journal that was written to.
        stream: StreamName,
        /// The head that the writer knew.
        expected: Head,
        /// The head it has.
        found: Head,
    },
    /// Another owner has taken the run over. Stop at once.
    #[error("run {run} has another owner now (epoch {found}, ours was {ours})")]
    Fenced {
        /// The run.
        run: RunId,
        /// Epoch of the writer's lease.
        ours: u64,
        /// Epoch of the current lease.
        found: u64,
    },
    /// A record that may exist only once exists already.
    #[error("{stream} already has a record with the key {key}")]
    Duplicate {
        /// The journal.
        stream: StreamName,
        /// The unique key.
        key: String,
    },
    /// The request that this append carries out is not claimed by the appending process: another one
    /// has taken it over.
    #[error("another process has taken the request over")]
    Unclaimed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason a run cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The owner is alive and its lease has not run out.
    #[error("another process executes {run}")]
    Held {
        /// The run.
        run: RunId,
        /// The process that holds the lease.
        owner: OwnerId,
        /// Time at which the lease ends, if it is not renewed.
        expires_at: Timestamp,
    },
    /// No such run was ever opened.
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
