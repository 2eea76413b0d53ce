//! What still has to be told to the outside, kept so that a restart forgets nothing.

use super::{BoxFuture, Position, StoreError};
use planwright_core::time::Timestamp;
use std::fmt;

/// One notice for one endpoint. What it says is read from the journal again when it is sent, so
/// nothing is kept twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The record that it is about.
    pub position: Position,
    /// Which of the notices of that record.
    pub index: u32,
    /// The number of times it was tried.
    pub attempts: u32,
    /// It is tried when this time has come.
    pub next_at: Timestamp,
    /// Waiting or dead.
    pub state: DeliveryState,
    /// The failure of the last attempt.
    pub last_error: Option<String>,
}

/// The state of a delivery that has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is tried when its time has come.
    Waiting,
    /// Given up after the last attempt; a person can have it tried again.
    Dead,
}

impl DeliveryState {
    /// Returns the state as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Dead => "dead",
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It arrived, or is not to be told any more: it is forgotten.
    Done,
    /// It failed and is tried again.
    Again {
        /// Time of the next attempt.
        at: Timestamp,
        /// The failure.
        error: String,
    },
    /// It failed for the last time.
    Dead {
        /// The failure.
        error: String,
    },
}

/// How an endpoint stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointStanding {
    /// Everything up to here was looked at.
    pub cursor: Position,
    /// Why nothing is sent any more, if the endpoint said so.
    pub disabled: Option<String>,
}

/// Keeps cursors and deliveries, by the name of the endpoint. Several processes may use it at once.
pub trait Outbox: Send + Sync + fmt::Debug {
    /// How the endpoint stands; `None` if it was never seen.
    fn standing<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<EndpointStanding>, StoreError>>;

    /// Moves the cursor from `from` to `to` and adds what was found in between, all or nothing.
    /// `None` as `from` means that the endpoint is new. Returns `false`, and does nothing, if the
    /// cursor is somewhere else by now.
    fn advance<'a>(
        &'a self,
        endpoint: &'a str,
        from: Option<Position>,
        to: Position,
        found: Vec<(Position, u32)>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Takes the oldest delivery that is due, and keeps others from it until `until`: the process
    /// that took it may die. Nothing is due at a disabled endpoint.
    fn take<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Delivery>, StoreError>>;

    /// Notes what came of an attempt at a delivery that was taken.
    fn settle<'a>(
        &'a self,
        endpoint: &'a str,
        delivery: &'a Delivery,
        settled: Settled,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// When the next delivery is due, if any waits.
    fn next_at<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<Timestamp>, StoreError>>;

    /// Up to `limit` deliveries in order.
    fn list<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, StoreError>>;

    /// Returns how many there are.
    fn count<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Nothing is sent to this endpoint any more.
    fn disable<'a>(
        &'a self,
        endpoint: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Everything that was given up, and everything that waits, is due now, and a disabled endpoint
    /// is used again. Returns how many are due.
    fn revive<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
}
