//! Requests that must not be done twice: which were seen, what they changed, and their answers.
//!
//! A request is claimed before anything is done for it. The commit that carries it out says so
//! ([`Append::requests`](super::Append::requests)), so that after a crash it is known whether the
//! request changed something: if it did not, it can be done; if it did, it must not be done again.

use super::{BoxFuture, OwnerId, StoreError};
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
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
    /// The process that does it now, which asks about one key only once at a time. A request of a
    /// process that is gone can be taken over.
    pub owner: OwnerId,
    /// The most requests of this principal that are kept beside it.
    pub limit: usize,
}

impl Asking {
    /// Returns the claim on this request, for the commits that carry it out.
    pub fn claim(&self) -> RequestClaim {
        RequestClaim {
            key: self.key,
            owner: self.owner.clone(),
        }
    }
}

/// The claim of a process on a request, by which a commit says what it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestClaim {
    /// The key of the request.
    pub key: Digest,
    /// The process that claimed it.
    pub owner: OwnerId,
}

/// What is known about a request when it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Nothing has been done for it: it is to be done now.
    Fresh,
    /// Another process is doing it at this moment.
    InFlight,
    /// It changed this journal and was never answered: it must not be done again.
    Changed(StreamName),
    /// It was begun by an earlier version, which did not say what it changed.
    Interrupted,
    /// The key was used for something else.
    OtherRequest,
    /// It was done, and this was the answer.
    Answered(Vec<u8>),
    /// This principal has too many keys.
    TooMany,
}

/// Keeps requests and their answers for a day, in the store whose journals they change. What it
/// acknowledges survives a crash.
pub trait Answers: Send + Sync + fmt::Debug {
    /// Looks a request up and claims it, unless it has changed something, was answered or is being
    /// done by another process that may be alive.
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Keeps the answer of a request that was claimed.
    fn keep<'a>(
        &'a self,
        claim: &'a RequestClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Gives a claim back that will not be answered. Returns whether the key is free again: it is
    /// not if something was changed under it.
    fn release<'a>(&'a self, claim: &'a RequestClaim) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The time a request and its answer are kept.
pub const ANSWER_LIFE: Duration = Duration::from_hours(24);

/// How many requests of one principal may be kept.
pub const MAX_ANSWERS: usize = 10_000;

/// The same for decisions of people, which no quota keeps out: more than a person makes in a day.
pub const MAX_DECISIONS: usize = 100_000;

/// Returns whether `stream` says better than `noted` what a request changed: the run it started
/// rather than the plan of that run, and what it changed first rather than what followed.
pub fn says_more(noted: Option<&StreamName>, stream: &StreamName) -> bool {
    match noted {
        None => true,
        Some(StreamName::Plan(_)) => matches!(stream, StreamName::Run(_)),
        Some(StreamName::Run(_)) => false,
    }
}
