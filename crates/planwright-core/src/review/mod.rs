//! The life of a plan: versions, approvals, rejections, the runs it was opened for.
//!
//! Consent lives here: [`Review::decide`] opens a run only against an approval of exactly the
//! digest that is about to run, and spends it in the same entry.

mod agreed;
mod apply;
mod comments;
mod create;
mod decide;
mod event;
mod keeping;
mod planning_record;
mod refusal_kind;
mod revoking;
mod status;
mod terms;
mod versions;

pub use agreed::already_agreed;
pub use comments::{Comment, CommentCommand, CommentRefusal, Resolved, Thread};
pub use create::Creation;
pub use decide::{Command, Refusal};
pub use event::ReviewEvent;
pub use planning_record::PlanningRecord;
pub use revoking::{Access, Revocation, Revoked, access_holds};
pub use terms::{BuildsOn, Offer, Pin, Terms};
pub use versions::Revision;

use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::plan::Document;
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::time::Timestamp;
use std::sync::Arc;

/// A plan and all that was said about it, folded from its journal.
#[derive(Debug, Clone)]
pub struct Review {
    id: PlanId,
    seq: u64,
    versions: Vec<Version>,
    state: ReviewState,
    approvals: Vec<Approval>,
    rejections: Vec<Rejection>,
    change_requests: Vec<Rejection>,
    threads: Vec<Thread>,
    archived: bool,
    runs: Vec<OpenedRun>,
    updated_at: Timestamp,
}

/// Where the current version stands with the people who decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    /// The author still works on it. It is proposed when the author says so.
    Draft,
    Proposed,
    Approved,
    Rejected,
    /// Rejected too often: a person has to step in.
    NeedsReview,
    /// An approver wants something changed first.
    ChangesRequested,
    /// It was not touched for too long. A new version, or proposing it again, brings it back.
    Expired,
    Deleted,
}

/// One immutable version of the document.
#[derive(Debug, Clone)]
pub struct Version {
    pub number: u32,
    pub document: Arc<Document>,
    /// With the tools known when it was proposed.
    pub digest: Digest,
    pub by: Principal,
    pub at: Timestamp,
    /// Why it was changed, in the author's words.
    pub reason: Option<String>,
    /// The earlier version whose content this one has again.
    pub restored_from: Option<u32>,
    /// How it came about, if a model or a rule of thumb wrote it.
    pub planning: Option<Box<PlanningRecord>>,
}

/// A person's or policy's yes to one digest.
#[derive(Debug, Clone)]
pub struct Approval {
    pub version: u32,
    pub digest: Digest,
    pub by: Principal,
    pub assurance: Assurance,
    pub at: Timestamp,
    pub terms: Terms,
    /// The runs that used it.
    pub spent_by: Vec<RunId>,
    /// The version was rejected after all, before anything ran.
    pub taken_back: bool,
    /// The approver took it back, or lost their access, before it was used up.
    pub revoked: Option<Revoked>,
    /// A later version does something else. One that only has other words keeps the approval.
    pub superseded: bool,
}

impl Approval {
    /// Returns whether a run may still spend it, if it has not expired.
    fn is_open(&self) -> bool {
        self.is_unspent() && !self.superseded
    }

    /// Returns true if it would still be good for a run, had the plan not been edited.
    fn is_unspent(&self) -> bool {
        self.spent_by.len() < self.terms.uses() as usize && !self.is_void()
    }

    /// Returns true if it was taken back or revoked after it was given.
    pub fn is_void(&self) -> bool {
        self.taken_back || self.revoked.is_some()
    }

    /// Returns whether it was not used in time.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.terms
            .expires_at
            .is_some_and(|expires_at| expires_at <= now)
    }
}

/// A version that was sent back, and what has to change.
#[derive(Debug, Clone)]
pub struct Rejection {
    pub version: u32,
    pub by: Principal,
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct OpenedRun {
    pub run: RunId,
    pub version: u32,
    pub digest: Digest,
    pub at: Timestamp,
}

impl Review {
    /// A plan is sent back at most this often before a person has to step in.
    pub const MAX_REJECTIONS: usize = 3;

    pub fn id(&self) -> &PlanId {
        &self.id
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn state(&self) -> ReviewState {
        self.state
    }

    /// The version that is current.
    pub fn current(&self) -> &Version {
        self.versions
            .last()
            .expect("a plan's journal begins with its first version")
    }

    pub fn version(&self, number: u32) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.number == number)
    }

    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }

    /// What was asked to be changed without a rejection, oldest first.
    pub fn change_requests(&self) -> &[Rejection] {
        &self.change_requests
    }

    pub fn runs(&self) -> &[OpenedRun] {
        &self.runs
    }

    pub fn created_at(&self) -> Timestamp {
        self.versions
            .first()
            .map_or(self.updated_at, |version| version.at)
    }

    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// The approvals a run of exactly this digest may spend together, if they are enough: policy's,
    /// or those of as many different people as have to agree.
    pub fn usable_approvals(&self, digest: &Digest, now: Timestamp) -> Option<Vec<&Approval>> {
        let given = self.given_approvals(digest, now);
        are_enough(&given).then_some(given)
    }

    /// The open approvals of exactly this digest, one for each who gave one.
    pub fn given_approvals(&self, digest: &Digest, now: Timestamp) -> Vec<&Approval> {
        let counts = |approval: &&Approval| approval.is_open() && approval.digest == *digest;
        one_each(
            self.approvals
                .iter()
                .rev()
                .filter(counts)
                .filter(|approval| !approval.has_expired(now)),
        )
    }
}

/// The first approval of everybody who gave one.
fn one_each<'a>(approvals: impl Iterator<Item = &'a Approval>) -> Vec<&'a Approval> {
    let mut given: Vec<&Approval> = Vec::new();
    for approval in approvals {
        if !given.iter().any(|other| other.by == approval.by) {
            given.push(approval);
        }
    }
    given
}

/// Returns whether policy, or as many people as have to, agreed.
fn are_enough(given: &[&Approval]) -> bool {
    let required = given.iter().map(|approval| approval.terms.required()).max();
    let by_policy = given
        .iter()
        .any(|approval| approval.by.kind == PrincipalKind::Policy);
    required.is_some_and(|required| by_policy || given.len() >= required as usize)
}
