//! The journal store: append under an expected head, read back, and know who owns a run.

use super::BoxFuture;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{ChainError, Head, Record, StreamName};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;

/// One process (or one engine) that may own runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub String);

/// The right to write to a run, while it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub run: RunId,
    pub owner: OwnerId,
    /// Grows by one with every new owner. Every record of the run carries it.
    pub epoch: u64,
    /// By the store's clock.
    pub expires_at: Timestamp,
}

/// What an append asks of the run's lease, checked in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRule {
    /// Plan streams have no owner: the expected head alone decides.
    None,
    /// The run does not exist yet: take the first lease (epoch 1).
    Open { owner: OwnerId, ttl: Duration },
    /// The lease must still be held with this epoch.
    Held { epoch: u64 },
    /// As [`LeaseRule::Held`], and given back with this append.
    Release { epoch: u64 },
}

/// The cached status of a stream, for lists. Rebuildable from the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStatus {
    /// The plan a run belongs to; the plan itself for plan streams.
    pub plan: PlanId,
    pub status: CachedStatus,
    /// A short text for lists, such as the title.
    pub label: String,
}

/// Records to add to one stream.
#[derive(Debug, Clone)]
pub struct Append {
    pub stream: StreamName,
    /// Where the stream must end for this append to make sense.
    pub expected: Head,
    pub records: Vec<Record>,
    pub lease: LeaseRule,
    /// Replaces the cached status when present.
    pub status: Option<StreamStatus>,
    /// Messages this append answers: `Ok` or a refusal, as text.
    pub answers: Vec<(MessageId, Result<(), String>)>,
}

/// A command for the owner of a run, left by another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub run: RunId,
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i64);

/// A stream as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    pub stream: StreamName,
    pub status: StreamStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Numbers of streams by their cached status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamCounts {
    pub plans: BTreeMap<CachedStatus, u64>,
    pub runs: BTreeMap<CachedStatus, u64>,
}

/// A place in the order in which a store committed its records, over all streams. The first record
/// has 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// A record at its place in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub position: Position,
    pub stream: StreamName,
    pub record: Record,
}

/// Which streams a feed is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedOf {
    /// Every stream.
    All,
    /// A plan and all of its runs.
    Plan(PlanId),
}

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
    #[error("another process executes {run}")]
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

/// Keeps the journal. Everything it acknowledges survives a crash.
pub trait Store: Send + Sync + fmt::Debug {
    /// Adds records to one or more streams, all or nothing, durable on return. Every append's
    /// expected head, lease rule and unique keys are checked inside the transaction. An empty list
    /// of records is allowed (it can still change status or answer messages).
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Up to `limit` records with a number above `after`, in order. Returns `Damaged` for a stream
    /// known to have lost its tail. The chain itself is checked by the reader.
    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;

    /// Up to `limit` records committed after `after`, in the order of their commits: the same order
    /// for everybody, for ever. A record that can be read here is followed only by records with
    /// higher positions, so that a reader that goes on from the last position misses nothing and
    /// sees nothing twice.
    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>>;

    /// The head of a stream; [`Head::EMPTY`] if there is none.
    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>>;

    /// All plan streams, most recently updated first.
    fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>>;

    /// Up to `limit` plan streams by age, the latest first, and those made in one instant by their
    /// ids; those after the one that was made at this time and has this id. The order never
    /// changes, so that pages hold everything once.
    fn plans_by_age<'a>(
        &'a self,
        after: Option<(Timestamp, &'a PlanId)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// The run streams of a plan, oldest first.
    fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// The plan streams with one of these cached statuses, most recently updated first. With
    /// `until`, only those that were not updated after it. What is not asked for costs nothing,
    /// however much of it there is. A stream of which nothing can be trusted is left out, and does
    /// not hide the others.
    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// The run streams of all plans with one of these cached statuses, oldest first. Otherwise as
    /// [`Store::plans_in`].
    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// How many streams there are of each status.
    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>>;

    /// What is cached about one stream.
    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>>;

    /// Takes over a run whose owner is gone: the lease ran out, was released, or its process is
    /// dead. The new lease has the next epoch.
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>>;

    /// Extends a lease; [`AppendError::Fenced`] if it is no longer ours.
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>>;

    /// Gives a lease back. Not an error if it is no longer ours.
    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The current lease of a run, if it is held by a live owner.
    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>>;

    /// Leaves a command for a run's owner.
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>>;

    /// The unanswered messages of all runs, in order.
    fn mail(&self) -> BoxFuture<'_, Result<Vec<Message>, StoreError>>;

    /// The unanswered messages of a run, in order.
    fn messages<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Message>, StoreError>>;

    /// The answer to a message, once there is one.
    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>>;

    /// Changes its value whenever anything in the store may have changed, also by another process.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Changes its value whenever a message may have arrived, also from another process. Cheaper to
    /// wait for than [`Store::changes`] for those who commit a lot themselves.
    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.changes()
    }
}
