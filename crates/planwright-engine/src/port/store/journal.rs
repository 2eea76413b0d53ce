//! The journal: append under an expected head, and read back.

use super::{AppendError, LeaseRule, MessageId, StoreError, StreamStatus};
use crate::port::{BoxFuture, OfferChange, RequestClaim};
use planwright_core::id::PlanId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use std::fmt;

/// Bytes of bodies after which a page of records ends, however many were asked for.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// Returns whether nothing came after a page when it was read, of which so many records were asked for.
pub fn is_last_page(page: &[Record], limit: usize) -> bool {
    let bytes: usize = page.iter().map(|record| record.body.len()).sum();
    page.len() < limit && bytes < MAX_PAGE_BYTES
}

/// Returns whether nothing came after a page of a feed when it was read, of which so many records
/// were asked for.
pub fn is_last_feed_page(page: &[Placed], limit: usize) -> bool {
    let bytes: usize = page.iter().map(|placed| placed.record.body.len()).sum();
    page.len() < limit && bytes < MAX_PAGE_BYTES
}

/// Records to add to one stream.
#[derive(Debug, Clone)]
pub struct Append {
    /// The journal that grows.
    pub stream: StreamName,
    /// Where the stream must end for this append to make sense.
    pub expected: Head,
    /// The records, which continue the hash chain of the expected head.
    pub records: Vec<Record>,
    /// The lease that the writer needs.
    pub lease: LeaseRule,
    /// Replaces the cached status when present.
    pub status: Option<StreamStatus>,
    /// Messages this append answers: `Ok` or a refusal, as text.
    pub answers: Vec<(MessageId, Result<(), String>)>,
    /// The requests that this append carries out, each claimed by the appending process: an append for a
    /// request that is claimed by another, or not at all, is refused.
    pub requests: Vec<RequestClaim>,
    /// Who brings how much into the store with it. The store counts it for them and this plan.
    pub brought: Vec<Brought>,
    /// Attempts that are offered to workers with it, and offers that are over with it. Refused by a store that has
    /// no offers.
    pub offers: Vec<OfferChange>,
}

/// Bytes that a principal brings into the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// The principal who brings them.
    pub by: Principal,
    /// Bytes of entries and of values beside the journal.
    pub bytes: u64,
}

/// A place in the order in which a store committed its records, over all streams. The first record
/// has 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// A record at its place in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its place in the order of commits.
    pub position: Position,
    /// The journal it belongs to.
    pub stream: StreamName,
    /// The record.
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

/// Keeps the records of plans and runs, each stream in order and all streams in the order of their
/// commits.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Adds records to one or more streams, all or nothing, durable on return. Every append's
    /// expected head, lease rule, unique keys and requests are checked inside the transaction. An empty list
    /// of records is allowed (it can still change status or answer messages).
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Up to `limit` records with a number above `after`, in order. A page ends early with the record
    /// that brings its bodies to [`MAX_PAGE_BYTES`], so that its size is bounded for every store:
    /// [`is_last_page`] tells whether there was more. Returns `Damaged` for a stream known to have lost its tail. The
    /// chain itself is checked by the reader.
    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;

    /// Up to `limit` records committed after `after`, in the order of their commits: the same order
    /// for every reader, for ever. A record that can be read here is followed only by records with
    /// higher positions, so that a reader that goes on from the last position misses nothing and
    /// sees nothing twice. A page ends early with the record that brings its bodies to
    /// [`MAX_PAGE_BYTES`]: [`is_last_feed_page`] tells whether there was more.
    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>>;

    /// The head of a stream; [`Head::EMPTY`] if there is none.
    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>>;
}
