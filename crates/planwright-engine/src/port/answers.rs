//! Answers of the service that are given again when the same request comes again.

use super::{BoxFuture, OwnerId, StoreError};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// A request that must not be done twice, as its sender named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Of who asks.
    pub principal: Digest,
    /// Of who asks, where, and the key they chose.
    pub key: Digest,
    /// Of what is asked: another request under the same key is a mistake.
    pub request: Digest,
    /// The process that does it now. A request that was begun by a process that is gone was
    /// interrupted.
    pub owner: OwnerId,
}

/// What is known about a request when it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It has not been seen: it is to be done now.
    Fresh,
    /// It is being done at this moment.
    InFlight,
    /// It was begun by a process that is gone: what came of it is unknown.
    Interrupted,
    /// The key was used for something else.
    OtherRequest,
    /// It was done, and this was the answer.
    Answered(Vec<u8>),
    /// This principal has too many keys.
    TooMany,
}

/// Keeps answers for a day. What it acknowledges survives a crash.
pub trait Answers: Send + Sync + fmt::Debug {
    /// Looks a request up and, if it has not been seen, notes that it is being done.
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Keeps the answer of a request that was claimed.
    fn keep<'a>(
        &'a self,
        key: &'a Digest,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets a request that was claimed and changed nothing.
    fn forget<'a>(&'a self, key: &'a Digest) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// How long an answer is kept.
pub const ANSWER_LIFE: Duration = Duration::from_hours(24);

/// How many answers one principal may have kept.
pub const MAX_ANSWERS: usize = 10_000;
