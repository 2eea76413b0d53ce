//! Approvals that are void before they are used: taken back by the approver, or lost with the
//! approver's access.

use super::{Approval, Refusal, Review, ReviewEvent, ReviewState};
use crate::digest::Digest;
use crate::policy::{Permission, Policy};
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::time::Timestamp;
use std::sync::Arc;

/// The request that the approvals of a principal no longer count.
#[derive(Debug, Clone)]
pub struct Revocation {
    /// Whose approvals.
    pub of: Principal,
    pub by: Principal,
    /// Only those that were given like this; all of them when absent.
    pub given: Option<Assurance>,
    pub reason: Option<String>,
    /// Says who may do this to others.
    pub policy: Arc<Policy>,
}

/// Who said that an approval counts no more, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    pub by: Principal,
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// A token that lets a principal approve: from when, and how it ended if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
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
    /// What is said about an approval that was revoked.
    pub(super) fn words(of: &Principal, by: &Principal) -> String {
        match by == of {
            true => format!("{of} took the approval back before it was used"),
            false => format!("the approval of {of} was revoked by {by} before it was used"),
        }
    }

    /// The approver may revoke, an admin may revoke for them, and so may a rule, which no caller
    /// can act as.
    fn is_allowed(&self) -> bool {
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

    /// Nothing to void is nothing to write down.
    pub(super) fn decide_revoke(
        &self,
        revocation: &Revocation,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let Revocation {
            of,
            by,
            given,
            reason,
            policy: _,
        } = revocation;
        if !revocation.is_allowed() {
            return Err(Refusal::MayNotRevoke {
                of: of.clone(),
                by: by.clone(),
            });
        }
        if let Some(length) = reason
            .as_ref()
            .map(String::len)
            .filter(|&length| length > Self::MAX_REASON)
        {
            return Err(Refusal::ReasonTooLong(length));
        }
        // What was deleted comes back without any consent.
        let is_deleted = self.state == ReviewState::Deleted;
        if is_deleted
            || !self
                .revocable(*given, now)
                .any(|approval| approval.by == *of)
        {
            return Ok(Vec::new());
        }
        let version = self.current().number;
        let of = of.clone();
        let by = by.clone();
        let reason = reason.clone();
        Ok(vec![ReviewEvent::ApprovalRevoked {
            version,
            of,
            by,
            given: *given,
            reason,
        }])
    }

    /// Notes that these approvals count no more. Returns whether that can be.
    pub(super) fn note_revoked(
        &mut self,
        version: u32,
        of: &Principal,
        given: Option<Assurance>,
        revoked: &Revoked,
    ) -> bool {
        let theirs = |approval: &Approval| {
            approval.by == *of && approval.is_given(given) && approval.is_unspent()
        };
        let is_current = version == self.current().number && self.state != ReviewState::Deleted;
        let may = is_current && revoked.by.kind != PrincipalKind::Agent;
        if !may || !self.approvals.iter().any(theirs) {
            return false;
        }
        for approval in self
            .approvals
            .iter_mut()
            .filter(|approval| theirs(approval))
        {
            approval.revoked = Some(revoked.clone());
        }
        if self.state == ReviewState::Approved && !self.is_agreed(revoked.at) {
            self.state = ReviewState::Proposed;
        }
        true
    }

    /// Returns whether what is left is enough for a run of anything.
    fn is_agreed(&self, now: Timestamp) -> bool {
        let mut open = self.approvals.iter().filter(|approval| approval.is_open());
        open.any(|approval| self.usable_approvals(&approval.digest, now).is_some())
    }

    /// Returns whose approval of this digest was revoked, and by whom, if no approval was given
    /// since.
    pub(super) fn last_revoked(&self, digest: Digest) -> Option<(&Principal, &Principal)> {
        let of_digest = |approval: &&Approval| approval.digest == digest && !approval.superseded;
        let last = self.approvals.iter().rev().find(of_digest)?;
        last.revoked.as_ref().map(|revoked| (&last.by, &revoked.by))
    }
}

impl Approval {
    fn is_given(&self, given: Option<Assurance>) -> bool {
        given.is_none_or(|given| self.assurance == given)
    }
}
