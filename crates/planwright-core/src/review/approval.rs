//! Approvals, and how many of them a run needs.

use super::state::ApprovalSignal;
use super::{ApprovalState, Review, ReviewStage, Terms};
use crate::digest::Digest;
use crate::id::RunId;
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::time::Timestamp;

/// A person's or policy's yes to one digest.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The version that was current.
    pub version: u32,
    /// The digest that was on the screen.
    pub digest: Digest,
    /// The principal who agreed.
    pub by: Principal,
    /// The assurance that it was them.
    pub assurance: Assurance,
    /// The time at which they agreed.
    pub at: Timestamp,
    /// The terms on which it was given.
    pub terms: Terms,
    /// The runs that used it.
    pub spent_by: Vec<RunId>,
    /// Its state, without regard to the time.
    pub(super) state: ApprovalState,
}

impl Approval {
    /// Returns what became of it. An open approval expires by time alone, written down or not.
    pub fn state(&self, now: Timestamp) -> ApprovalState {
        let expired = self
            .has_expired(now)
            .then(|| self.state.after(ApprovalSignal::TimedOut));
        expired.flatten().unwrap_or_else(|| self.state.clone())
    }

    /// Returns true if it was withdrawn or revoked after it was given.
    pub fn is_void(&self) -> bool {
        match self.state {
            ApprovalState::Withdrawn | ApprovalState::Revoked(_) => true,
            ApprovalState::Open
            | ApprovalState::Spent
            | ApprovalState::Expired
            | ApprovalState::Superseded => false,
        }
    }

    /// Returns true if the time in which it could be used is over, used or not.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.terms
            .expires_at
            .is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns true if a run may spend it, unless it has expired.
    pub(super) fn is_open(&self) -> bool {
        self.state == ApprovalState::Open
    }

    /// Returns true if it would still be good for a run, had the plan not been edited.
    pub(super) fn is_unspent(&self) -> bool {
        matches!(self.state, ApprovalState::Open | ApprovalState::Superseded)
    }

    /// Returns true if a run of this digest may spend it now.
    pub(super) fn is_usable(&self, digest: &Digest, now: Timestamp) -> bool {
        self.is_open() && self.digest == *digest && !self.has_expired(now)
    }

    /// Notes what happened to it. A signal that does not concern it changes nothing.
    pub(super) fn note(&mut self, signal: ApprovalSignal<'_>) {
        if let Some(next) = self.state.after(signal) {
            self.state = next;
        }
    }

    /// Notes that a run used it.
    pub(super) fn spend(&mut self, run: &RunId) {
        self.spent_by.push(run.clone());
        if self.spent_by.len() >= self.terms.uses() as usize {
            self.note(ApprovalSignal::UsedUp);
        }
    }
}

impl Review {
    /// The approvals a run of exactly this digest may spend together, if they are enough: policy's,
    /// or those of as many different people as have to agree.
    pub fn usable_approvals(&self, digest: &Digest, now: Timestamp) -> Option<Vec<&Approval>> {
        let given = self.given_approvals(digest, now);
        are_enough(&given).then_some(given)
    }

    /// The open approvals of exactly this digest, one for each who gave one.
    pub fn given_approvals(&self, digest: &Digest, now: Timestamp) -> Vec<&Approval> {
        let approvals = self.approvals.iter().rev();
        first_of_each(approvals.filter(|approval| approval.is_usable(digest, now)))
    }

    /// The time at which the last of the approvals that count runs out, if all of them do.
    pub fn approval_expires_at(&self) -> Option<Timestamp> {
        if self.stage() != Some(ReviewStage::Approved) {
            return None;
        }
        let ends: Option<Vec<Timestamp>> = self
            .open_approvals()
            .map(|approval| approval.terms.expires_at)
            .collect();
        ends?.into_iter().max()
    }

    /// Approvals that a run may spend, unless they have expired; oldest first.
    pub(super) fn open_approvals(&self) -> impl DoubleEndedIterator<Item = &Approval> {
        self.approvals.iter().filter(|approval| approval.is_open())
    }

    /// Notes this of every approval that it concerns.
    pub(super) fn note_approvals(&mut self, signal: ApprovalSignal<'_>) {
        for approval in &mut self.approvals {
            approval.note(signal);
        }
    }
}

/// The first approval of each principal who gave one.
pub(super) fn first_of_each<'a>(
    approvals: impl Iterator<Item = &'a Approval>,
) -> Vec<&'a Approval> {
    let mut given: Vec<&Approval> = Vec::new();
    for approval in approvals {
        if !given.iter().any(|other| other.by == approval.by) {
            given.push(approval);
        }
    }
    given
}

/// Returns true if policy, or as many people as have to, agreed.
pub(super) fn are_enough(given: &[&Approval]) -> bool {
    let required = given.iter().map(|approval| approval.terms.required()).max();
    let by_policy = given
        .iter()
        .any(|approval| approval.by.kind == PrincipalKind::Policy);
    required.is_some_and(|required| by_policy || given.len() >= required as usize)
}
