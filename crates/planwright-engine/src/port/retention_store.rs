//! Journals that leave the database: sealed files in their place, and what is removed for good.

use super::{BoxFuture, Position, StoreError, StreamInfo};
use planwright_core::journal::{Head, StreamName};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::any::Any;
use std::fmt;

/// A journal that is in a sealed file and not in the database. It can be read as before; nothing
/// can be appended to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedJournal {
    /// The journal.
    pub stream: StreamName,
    /// Where the journal ends.
    pub head: Head,
    /// The name of the file, below the directory of sealed files.
    pub file: String,
    /// The length of the file.
    pub bytes: u64,
    /// Time at which it was sealed.
    pub sealed_at: Timestamp,
}

/// A place in the list of streams that may be sealed: time of the latest update, and name.
pub type SealCursor = (Timestamp, StreamName);

/// The exclusive turn of one process at retention. It ends when this is dropped.
pub type RetentionTurn = Box<dyn Any + Send + Sync>;

/// The counts of what was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of files.
    pub files: u64,
    /// Bytes that they had.
    pub bytes: u64,
}

/// The reason a journal was not sealed, restored or removed. It is where it was.
#[derive(Debug, thiserror::Error)]
pub enum RetainError {
    /// Something was written in between. It is looked at again later.
    #[error("{0} has changed meanwhile")]
    Changed(StreamName),
    /// The journal is not in a sealed file.
    #[error("the journal of {0} is not sealed")]
    NotSealed(StreamName),
    /// The sealed file is missing or was changed.
    #[error("the sealed file {file} cannot be used: {reason}")]
    BadFile {
        /// Name of the file.
        file: String,
        /// The damage that was found.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Bounds what a store keeps. What leaves the database is first in a sealed file, durable and read
/// back; what is removed for good was sealed before.
pub trait RetentionStore: Send + Sync + fmt::Debug {
    /// Takes the turn at retention; `None` while another process, or a backup, has it.
    fn take_turn(&self) -> Result<Option<RetentionTurn>, StoreError>;

    /// Up to `limit` streams with one of these cached statuses that were not updated after `until`
    /// and are not sealed, the longest untouched first; those after `after`. What is sealed, or has
    /// another status, costs nothing.
    fn unsealed<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// The position of the last record of a stream.
    fn last_position<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<Position>, StoreError>>;

    /// Writes the journal to a sealed file, reads that back, and only then takes it out of the
    /// database, if it still ends at `expected`.
    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        expected: Head,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<SealedJournal, RetainError>>;

    /// The sealed file of a journal, if it is in one.
    fn sealed<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<SealedJournal>, StoreError>>;

    /// Up to `limit` plans that were sealed until then, the earliest first; those after `after`.
    fn sealed_plans<'a>(
        &'a self,
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SealedJournal>, StoreError>>;

    /// Brings a sealed journal back into the database, and removes the file.
    fn restore<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<(), RetainError>>;

    /// Forgets sealed journals together, and removes their files.
    fn remove<'a>(
        &'a self,
        streams: &'a [StreamName],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Removed, RetainError>>;

    /// Removes the large values that no journal names, sealed or not, and that were neither written
    /// nor asked for since `before`.
    fn remove_unused_artifacts(
        &self,
        before: Timestamp,
        dry_run: bool,
    ) -> BoxFuture<'_, Result<Removed, StoreError>>;
}
