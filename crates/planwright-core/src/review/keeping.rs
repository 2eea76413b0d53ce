//! The effect of time on a plan that is not touched, and putting plans away.

use super::{Approval, Refusal, Review, ReviewEvent, ReviewState};
use crate::principal::Principal;
use crate::status::{PlanStatus, RunStatus};
use crate::time::Timestamp;
use std::time::Duration;

impl Review {
    /// Returns whether the plan was put away. It is kept, and left out of lists.
    pub fn is_archived(&self) -> bool {
        self.archived
    }

    /// Returns whether nothing was decided since the latest run began: no new version, and no new
    /// consent.
    pub(super) fn is_up_to_its_run(&self) -> bool {
        self.state == ReviewState::Proposed
            && self
                .runs
                .last()
                .is_some_and(|run| run.version == self.current().number)
    }

    /// A plan that waits for an approval or a run and was not touched for so many days is not
    /// waited for any more. Templates do not wait.
    pub(super) fn decide_expire(
        &self,
        after_days: u32,
        latest_run: Option<RunStatus>,
        now: Timestamp,
    ) -> Vec<ReviewEvent> {
        let status = self.status(latest_run);
        let waits = matches!(status, PlanStatus::Proposed | PlanStatus::Approved)
            && !self.current().document.is_template();
        let due = self.updated_at.plus(days(after_days)) <= now;
        if after_days == 0 || !waits || !due || self.archived {
            return Vec::new();
        }
        vec![ReviewEvent::PlanExpired {
            version: self.current().number,
            after_days,
        }]
    }

    /// Writes down that an approval was not used in time. It is void from that moment on, written
    /// down or not.
    pub(super) fn decide_expire_approvals(&self, now: Timestamp) -> Vec<ReviewEvent> {
        if self.state != ReviewState::Approved {
            return Vec::new();
        }
        let version = self.current().number;
        let open = || self.approvals.iter().filter(|approval| approval.is_open());
        if open().any(|approval| !approval.has_expired(now)) {
            return Vec::new();
        }
        let digest = open()
            .next_back()
            .map(|approval: &Approval| approval.digest);
        digest
            .map(|digest| ReviewEvent::ApprovalExpired { version, digest })
            .into_iter()
            .collect()
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
        latest_run: Option<RunStatus>,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        if self.state == ReviewState::Deleted {
            return Err(Refusal::Deleted);
        }
        if self.archived {
            return Ok(Vec::new());
        }
        let status = self.status(latest_run);
        if !status.is_over() {
            return Err(Refusal::NotOver(status));
        }
        Ok(vec![ReviewEvent::PlanArchived { by: by.clone() }])
    }

    /// Notes that this version was not touched for too long. Returns whether that can be.
    pub(super) fn note_expired(&mut self, version: u32) -> bool {
        let waits = self.may_run() && version == self.current().number;
        if waits {
            // What is proposed again one day is agreed to again.
            self.take_back();
            self.state = ReviewState::Expired;
        }
        waits
    }

    /// Notes that no run used the approval in time. Returns whether that can be.
    pub(super) fn note_approval_expired(&mut self, version: u32) -> bool {
        let approved = self.state == ReviewState::Approved && version == self.current().number;
        if approved {
            self.state = ReviewState::Proposed;
        }
        approved
    }

    /// Notes that the plan was put away or taken back. Returns whether that can be.
    pub(super) fn note_archived(&mut self, archived: bool) -> bool {
        let changes = self.archived != archived && self.state != ReviewState::Deleted;
        self.archived = if changes { archived } else { self.archived };
        changes
    }

    pub(super) fn decide_unarchive(&self, by: &Principal) -> Result<Vec<ReviewEvent>, Refusal> {
        if self.state == ReviewState::Deleted {
            return Err(Refusal::Deleted);
        }
        if !self.archived {
            return Err(Refusal::NotArchived);
        }
        Ok(vec![ReviewEvent::PlanUnarchived { by: by.clone() }])
    }
}

/// So many days.
pub(super) fn days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}
