//! Noting what happened to a plan.

use super::{
    Approval, Comment, OpenedRun, Rejection, Resolved, Review, ReviewEvent, ReviewState, Revoked,
    Version,
};
use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::journal::Entry;
use crate::run::Corrupt;
use crate::time::Timestamp;

impl Review {
    /// Begins a plan's life from its first entry.
    pub fn open(id: PlanId, first: &Entry<ReviewEvent>) -> Result<Self, Corrupt> {
        let ReviewEvent::PlanProposed { version: 1, .. } = &first.event else {
            return Err(Corrupt::NoStart);
        };
        let mut review = Self {
            id,
            seq: first.seq - 1,
            versions: Vec::new(),
            state: ReviewState::Proposed,
            approvals: Vec::new(),
            rejections: Vec::new(),
            change_requests: Vec::new(),
            threads: Vec::new(),
            archived: false,
            runs: Vec::new(),
            updated_at: first.at,
        };
        review.apply(first)?;
        Ok(review)
    }

    /// Notes one entry. An entry that cannot follow leaves the plan as it was.
    pub fn apply(&mut self, entry: &Entry<ReviewEvent>) -> Result<(), Corrupt> {
        if entry.seq != self.seq + 1 {
            return Err(Corrupt::Gap {
                last: self.seq,
                found: entry.seq,
            });
        }
        let cannot_follow = |event, state: ReviewState| Corrupt::PlanTransition {
            seq: entry.seq,
            event,
            status: state.status(),
        };
        match &entry.event {
            ReviewEvent::PlanProposed {
                version,
                document,
                digest,
                by,
                reason,
                restored_from,
                draft,
                trace: _,
                planning,
            } => {
                let restores = restored_from.is_none_or(|earlier| (1..*version).contains(&earlier));
                if *version as usize != self.versions.len() + 1 || !restores {
                    return Err(cannot_follow("plan_proposed", self.state));
                }
                self.versions.push(Version {
                    number: *version,
                    document: document.clone(),
                    digest: *digest,
                    by: by.clone(),
                    at: entry.at,
                    reason: reason.clone(),
                    restored_from: *restored_from,
                    planning: planning.clone(),
                });
                self.archived = false;
                self.supersede(digest, *draft);
                let agreed = self.usable_approvals(digest, entry.at).is_some();
                self.state = match (*draft, agreed) {
                    (true, _) => ReviewState::Draft,
                    (false, true) => ReviewState::Approved,
                    (false, false) => ReviewState::Proposed,
                };
            }
            ReviewEvent::DraftProposed { version, by: _ } => {
                if self.state != ReviewState::Draft || *version != self.current().number {
                    return Err(cannot_follow("draft_proposed", self.state));
                }
                self.state = ReviewState::Proposed;
            }
            ReviewEvent::PlanApproved {
                version,
                digest,
                by,
                assurance,
                terms,
            } => {
                let decidable = match self.state {
                    ReviewState::Proposed | ReviewState::Approved | ReviewState::NeedsReview => {
                        true
                    }
                    ReviewState::Draft
                    | ReviewState::Rejected
                    | ReviewState::ChangesRequested
                    | ReviewState::Expired
                    | ReviewState::Deleted => false,
                };
                if !decidable
                    || self.archived
                    || *version != self.current().number
                    || !by.may_approve()
                {
                    return Err(cannot_follow("plan_approved", self.state));
                }
                self.approvals.push(Approval {
                    version: *version,
                    digest: *digest,
                    by: by.clone(),
                    assurance: *assurance,
                    at: entry.at,
                    terms: terms.clone(),
                    spent_by: Vec::new(),
                    taken_back: false,
                    revoked: None,
                    superseded: false,
                });
                // One of several who have to agree leaves the plan where it is.
                if self.usable_approvals(digest, entry.at).is_some() {
                    self.state = ReviewState::Approved;
                }
            }
            ReviewEvent::PlanRejected {
                version,
                by,
                reason,
            } => {
                if !self.may_run() || *version != self.current().number || !by.may_approve() {
                    return Err(cannot_follow("plan_rejected", self.state));
                }
                self.take_back();
                let by = by.clone();
                let reason = reason.clone();
                self.rejections.push(Rejection {
                    version: *version,
                    by,
                    reason,
                    at: entry.at,
                });
                let too_often = self.rejections.len() >= Self::MAX_REJECTIONS;
                self.state = if too_often {
                    ReviewState::NeedsReview
                } else {
                    ReviewState::Rejected
                };
            }
            ReviewEvent::RunOpened {
                run,
                version,
                digest,
            } => {
                let current = self.current().number;
                let state = self.state;
                if *version != current || !self.may_run() || !self.spend(run, digest, entry.at) {
                    return Err(cannot_follow("run_opened", state));
                }
                self.runs.push(OpenedRun {
                    run: run.clone(),
                    version: *version,
                    digest: *digest,
                    at: entry.at,
                });
                // Usually the consent is used up; whether the plan is executing is the run's to
                // say.
                let again = self.usable_approvals(digest, entry.at).is_some();
                self.state = if again {
                    ReviewState::Approved
                } else {
                    ReviewState::Proposed
                };
            }
            ReviewEvent::PlanDeleted { .. } if self.state == ReviewState::Deleted => {
                return Err(cannot_follow("plan_deleted", self.state));
            }
            ReviewEvent::PlanDeleted { .. } => {
                // What is proposed again one day is agreed to again.
                self.take_back();
                self.state = ReviewState::Deleted;
            }
            ReviewEvent::ChangesRequested {
                version,
                by,
                reason,
            } => {
                if !self.may_run() || *version != self.current().number || !by.may_approve() {
                    return Err(cannot_follow("changes_requested", self.state));
                }
                self.take_back();
                let by = by.clone();
                let reason = reason.clone();
                self.change_requests.push(Rejection {
                    version: *version,
                    by,
                    reason,
                    at: entry.at,
                });
                self.state = ReviewState::ChangesRequested;
            }
            ReviewEvent::PlanExpired { version, .. } => {
                if !self.note_expired(*version) {
                    return Err(cannot_follow("plan_expired", self.state));
                }
            }
            ReviewEvent::ApprovalExpired { version, .. } => {
                if !self.note_approval_expired(*version) {
                    return Err(cannot_follow("approval_expired", self.state));
                }
            }
            ReviewEvent::ApprovalRevoked {
                version,
                of,
                by,
                given,
                reason,
            } => {
                let revoked = Revoked {
                    by: by.clone(),
                    reason: reason.clone(),
                    at: entry.at,
                };
                if !self.note_revoked(*version, of, *given, &revoked) {
                    return Err(cannot_follow("approval_revoked", self.state));
                }
            }
            ReviewEvent::PlanArchived { .. } => {
                if !self.note_archived(true) {
                    return Err(cannot_follow("plan_archived", self.state));
                }
            }
            ReviewEvent::PlanUnarchived { .. } => {
                if !self.note_archived(false) {
                    return Err(cannot_follow("plan_unarchived", self.state));
                }
            }
            ReviewEvent::CommentAdded {
                comment,
                on,
                version,
                reply_to,
                by,
                text,
            } => {
                let id = comment.clone();
                let by = by.clone();
                let text = text.clone();
                let said = Comment {
                    id,
                    by,
                    text,
                    version: *version,
                    at: entry.at,
                };
                if !self.note_comment(said, on.as_ref(), reply_to.as_ref()) {
                    return Err(cannot_follow("comment_added", self.state));
                }
            }
            ReviewEvent::CommentResolved { comment, by } => {
                if !self.note_settled(
                    comment,
                    Some(Resolved {
                        by: by.clone(),
                        at: entry.at,
                    }),
                ) {
                    return Err(cannot_follow("comment_resolved", self.state));
                }
            }
            ReviewEvent::CommentReopened { comment, .. } => {
                if !self.note_settled(comment, None) {
                    return Err(cannot_follow("comment_reopened", self.state));
                }
            }
        }
        self.seq = entry.seq;
        self.updated_at = entry.at;
        Ok(())
    }

    /// Uses every approval that counts for this digest once. Returns whether they were enough.
    fn spend(&mut self, run: &RunId, digest: &Digest, at: Timestamp) -> bool {
        if self.usable_approvals(digest, at).is_none() {
            return false;
        }
        for approval in &mut self.approvals {
            if approval.is_open() && approval.digest == *digest && !approval.has_expired(at) {
                approval.spent_by.push(run.clone());
            }
        }
        true
    }

    /// Voids every approval that no run has used.
    pub(super) fn take_back(&mut self) {
        for approval in self
            .approvals
            .iter_mut()
            .filter(|approval| approval.is_open())
        {
            approval.taken_back = true;
        }
    }

    /// Voids the approvals of anything but what the next version does: consent is bound to a
    /// digest, not to words.
    fn supersede(&mut self, digest: &Digest, draft: bool) {
        for approval in self
            .approvals
            .iter_mut()
            .filter(|approval| draft || approval.digest != *digest)
        {
            approval.superseded = true;
        }
    }

    /// Put forward, and neither sent back, expired nor put away.
    pub(super) fn may_run(&self) -> bool {
        match self.state {
            ReviewState::Proposed | ReviewState::Approved => !self.archived,
            ReviewState::Draft
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested
            | ReviewState::Expired
            | ReviewState::Deleted => false,
        }
    }
}
