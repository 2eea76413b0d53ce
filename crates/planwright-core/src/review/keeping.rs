//! What time does to a plan that nobody touches, and putting plans away.

use super::{Approval, Refusal, Review, ReviewEvent, ReviewState};
use crate::journal::Entry;
use crate::principal::Principal;
use crate::run::Corrupt;
use crate::time::Timestamp;
use std::time::Duration;

impl Review {
    /// Whether the plan was put away. It is kept, and left out of lists.
    pub fn is_archived(&self) -> bool {
        self.archived
    }

    /// The word that is kept beside the journal, so that lists need not fold it.
    pub fn word(&self) -> &'static str {
        if self.archived && self.state != ReviewState::Deleted { "archived" } else { self.state.as_str() }
    }

    /// A plan that waits for somebody and was not touched for so many days is not waited for any more. Templates wait
    /// for nobody.
    pub(super) fn decide_expire(
        &self,
        after_days: u32,
        latest_run: Option<&str>,
        now: Timestamp,
    ) -> Vec<ReviewEvent> {
        let status = self.status(latest_run);
        let waits =
            matches!(status.as_str(), "proposed" | "approved") && !self.current().document.is_template();
        let due = self.updated_at.plus(days(after_days)) <= now;
        if after_days == 0 || !waits || !due || self.archived {
            return Vec::new();
        }
        vec![ReviewEvent::PlanExpired { version: self.current().number, after_days }]
    }

    /// Writes down that an approval was not used in time. It is void from that moment on, written down or not.
    pub(super) fn decide_expire_approvals(&self, now: Timestamp) -> Vec<ReviewEvent> {
        if self.state != ReviewState::Approved {
            return Vec::new();
        }
        let version = self.current().number;
        let open = || self.approvals.iter().filter(|approval| approval.is_open());
        if open().any(|approval| !approval.has_expired(now)) {
            return Vec::new();
        }
        let digest = open().next_back().map(|approval: &Approval| approval.digest);
        digest.map(|digest| ReviewEvent::ApprovalExpired { version, digest }).into_iter().collect()
    }

    /// When the last of the approvals that count runs out, if all of them do.
    pub fn approval_expires_at(&self) -> Option<Timestamp> {
        if self.state != ReviewState::Approved {
            return None;
        }
        let open = self.approvals.iter().filter(|approval| approval.is_open());
        let ends: Option<Vec<Timestamp>> = open.map(|approval| approval.terms.expires_at).collect();
        ends?.into_iter().max()
    }

    pub(super) fn decide_archive(
        &self,
        by: &Principal,
        latest_run: Option<&str>,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        if self.state == ReviewState::Deleted {
            return Err(Refusal::Deleted);
        }
        if self.archived {
            return Ok(Vec::new());
        }
        let status = self.status(latest_run);
        if !status.is_over() {
            return Err(Refusal::NotOver(status.as_str().to_owned()));
        }
        Ok(vec![ReviewEvent::PlanArchived { by: by.clone() }])
    }

    /// Notes an entry about time and the archive.
    pub(super) fn note_keeping(&mut self, entry: &Entry<ReviewEvent>) -> Result<(), Corrupt> {
        let (seq, status) = (entry.seq, self.state.as_str());
        let cannot_follow = |event| Err(Corrupt::RunTransition { seq, event, status });
        let deleted = self.state == ReviewState::Deleted;
        match &entry.event {
            ReviewEvent::PlanExpired { version, .. } => {
                if !self.may_run() || *version != self.current().number {
                    return cannot_follow("plan_expired");
                }
                // What is proposed again one day is agreed to again.
                self.take_back();
                self.state = ReviewState::Expired;
            }
            ReviewEvent::ApprovalExpired { version, .. } => {
                if self.state != ReviewState::Approved || *version != self.current().number {
                    return cannot_follow("approval_expired");
                }
                self.state = ReviewState::Proposed;
            }
            ReviewEvent::PlanArchived { .. } if deleted || self.archived => {
                return cannot_follow("plan_archived");
            }
            ReviewEvent::PlanArchived { .. } => self.archived = true,
            ReviewEvent::PlanUnarchived { .. } if deleted || !self.archived => {
                return cannot_follow("plan_unarchived");
            }
            ReviewEvent::PlanUnarchived { .. } => self.archived = false,
            _ => return cannot_follow("keeping"),
        }
        Ok(())
    }

    pub(super) fn decide_unarchive(&self, by: &Principal) -> Result<Vec<ReviewEvent>, Refusal> {
        match self.state {
            ReviewState::Deleted => Err(Refusal::Deleted),
            _ if !self.archived => Err(Refusal::NotArchived),
            _ => Ok(vec![ReviewEvent::PlanUnarchived { by: by.clone() }]),
        }
    }
}

/// So many days.
pub(super) fn days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}
