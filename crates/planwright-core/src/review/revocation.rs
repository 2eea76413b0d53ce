//! Approvals that are void before they are used: taken back by the approver, or lost with the
//! approver's access.

use super::state::{ApprovalSignal, ReviewSignal};
use super::{Approval, ApprovalState, Review, VersionSummary};
use crate::digest::Digest;
use crate::policy::{Permission, Policy};
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::time::Timestamp;
use std::sync::Arc;

/// The request that the approvals of a principal no longer count.
#[derive(Debug, Clone)]
pub struct Revocation {
    /// The approver.
    pub of: Principal,
    /// The principal who asks for it.
    pub by: Principal,
    /// Only those that were given like this; all of them when absent.
    pub given: Option<Assurance>,
    /// The reason, in their words.
    pub reason: Option<String>,
    /// Says who may do this to others.
    pub policy: Arc<Policy>,
}

/// The principal who revoked an approval, with the reason and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The approver, an administrator or a rule.
    pub by: Principal,
    /// The reason, in their words.
    pub reason: Option<String>,
    /// The time at which it was said.
    pub at: Timestamp,
}

/// A token that lets a principal approve: from when, and how it ended if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The time at which the token was made.
    pub created_at: Timestamp,
    /// The time at which it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// The time at which it was taken away.
    pub revoked_at: Option<Timestamp>,
}

impl Access {
    fn is_open(&self, at: Timestamp) -> bool {
        let ended = |end: Option<Timestamp>| end.is_some_and(|end| end <= at);
        self.created_at <= at && !ended(self.expires_at) && !ended(self.revoked_at)
    }
}

/// Returns true if an approval that a principal gave with a token still counts. They had access
/// when they gave it, and it was not taken away since: after each later revocation another token of
/// theirs was open. So a token that is replaced or that merely expires takes nothing with it, and
/// access that is given again brings nothing back.
pub fn access_holds(tokens: &[Access], given_at: Timestamp) -> bool {
    let is_open = |at| tokens.iter().any(|token| token.is_open(at));
    let mut revoked = tokens
        .iter()
        .filter_map(|token| token.revoked_at)
        .filter(|&at| at >= given_at);
    is_open(given_at) && revoked.all(is_open)
}

impl Revocation {
    /// Describes an approval that was revoked.
    pub(super) fn describe(of: &Principal, by: &Principal) -> String {
        match by == of {
            true => format!("{of} revoked the approval before it was used"),
            false => format!("the approval of {of} was revoked by {by} before it was used"),
        }
    }

    /// Returns true for the approver, for an admin, and for a rule, which no caller can act as.
    pub(super) fn is_allowed(&self) -> bool {
        let Self { of, by, policy, .. } = self;
        by == of
            || by.kind == PrincipalKind::Policy
            || policy.roles.permits(by, Permission::Administer)
    }
}

impl Review {
    /// The approvals given like this that a revocation would void. An approval that an edit voided
    /// is one of them: nothing is to build on it either.
    pub fn revocable(
        &self,
        given: Option<Assurance>,
        now: Timestamp,
    ) -> impl Iterator<Item = &Approval> {
        let counts =
            move |approval: &&Approval| approval.is_given(given) && !approval.has_expired(now);
        self.approvals
            .iter()
            .filter(move |approval| approval.is_unspent() && counts(approval))
    }

    /// Notes that these approvals count no more, if there are any.
    pub(super) fn note_revoked(
        &mut self,
        version: u32,
        of: &Principal,
        given: Option<Assurance>,
        revoked: &Revoked,
    ) -> Option<()> {
        let next = self.state.after(ReviewSignal::ApprovalsRevoked)?;
        let is_concerned = |approval: &Approval| {
            approval.by == *of && approval.is_given(given) && approval.is_unspent()
        };
        let may = version == self.current().number && revoked.by.kind != PrincipalKind::Agent;
        if !may || !self.approvals.iter().any(is_concerned) {
            return None;
        }
        let approvals = self.approvals.iter_mut();
        for approval in approvals.filter(|approval| is_concerned(approval)) {
            approval.note(ApprovalSignal::Revoked(revoked));
        }
        self.state = next;
        if !self.is_agreed(revoked.at) {
            self.note_signal(ReviewSignal::NoLongerAgreed);
        }
        Some(())
    }

    /// Returns true if the approvals that are left are enough for a run of anything.
    fn is_agreed(&self, now: Timestamp) -> bool {
        self.open_approvals()
            .any(|approval| self.usable_approvals(&approval.digest, now).is_some())
    }

    /// Returns whose approval of this digest was revoked, and by whom, if no approval was given
    /// and the plan did nothing else since.
    pub(super) fn last_revoked(&self, digest: Digest) -> Option<(&Principal, &Principal)> {
        let mut approvals = self.approvals.iter().rev();
        let last = approvals.find(|approval| approval.digest == digest)?;
        let keeps_content = |version: &VersionSummary| version.digest == digest && !version.draft;
        let mut later = self.versions.iter().skip(last.version as usize);
        match &last.state {
            ApprovalState::Revoked(revoked) if later.all(keeps_content) => {
                Some((&last.by, &revoked.by))
            }
            ApprovalState::Revoked(_)
            | ApprovalState::Open
            | ApprovalState::Spent
            | ApprovalState::Expired
            | ApprovalState::Withdrawn
            | ApprovalState::Superseded => None,
        }
    }
}

impl Approval {
    fn is_given(&self, given: Option<Assurance>) -> bool {
        given.is_none_or(|given| self.assurance == given)
    }
}
