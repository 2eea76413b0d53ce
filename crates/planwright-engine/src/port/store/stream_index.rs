//! The index of streams: what lists show without reading a journal.

use super::StoreError;
use crate::port::BoxFuture;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// The cached status of a stream, for lists. Rebuildable from the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStatus {
    /// The plan a run belongs to; the plan itself for plan streams.
    pub plan: PlanId,
    /// The status as lists show it.
    pub status: CachedStatus,
    /// A short text for lists, such as the title.
    pub label: String,
}

/// A stream as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// The journal of the plan or run.
    pub stream: StreamName,
    /// The status that is cached of it.
    pub status: StreamStatus,
    /// Time of its first record.
    pub created_at: Timestamp,
    /// Time of its latest update.
    pub updated_at: Timestamp,
}

/// Numbers of streams by their cached status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Plans by cached status.
    pub plans: BTreeMap<CachedStatus, u64>,
    /// Runs by cached status.
    pub runs: BTreeMap<CachedStatus, u64>,
}

/// Finds plans and runs by their cached status, which appends keep up to date.
pub trait StreamIndex: Send + Sync + fmt::Debug {
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

    /// The plan streams with this cached status that have runs. Otherwise as
    /// [`StreamIndex::plans_in`].
    fn plans_with_runs(
        &self,
        status: CachedStatus,
    ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>>;

    /// The run streams of all plans with one of these cached statuses, oldest first. Otherwise as
    /// [`StreamIndex::plans_in`].
    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>>;

    /// Returns how many streams there are of each status.
    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>>;

    /// Replaces what is cached about a stream whose journal is damaged and takes no more entries. A
    /// stream that is not there stays away.
    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Bytes that a principal has brought in with appends, over all plans that were not removed for
    /// good. Costs the same however many there are.
    fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Reads what is cached about one stream.
    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>>;
}
