//! Plans that are not waited for any more, because they were not touched for too long.

use crate::review::{Review, ReviewEvent, ReviewState};
use crate::status::{PlanStatus, RunStatus};
use crate::time::Timestamp;
use std::time::Duration;

impl Review {
    /// Only a plan that waits for an approval or a run expires. Templates do not wait.
    pub(super) fn decide_expire(
        &self,
        after_days: u32,
        latest_run: Option<RunStatus>,
        now: Timestamp,
    ) -> Vec<ReviewEvent> {
        let is_active = match self.state {
            ReviewState::Active(_) => true,
            ReviewState::Archived(_) | ReviewState::Deleted => false,
        };
        let waits = matches!(
            self.status(latest_run),
            PlanStatus::Proposed | PlanStatus::Approved
        );
        let is_due = self.updated_at.plus(days(after_days)) <= now;
        let is_template = self.current().document.is_template();
        if after_days == 0 || !is_active || !waits || !is_due || is_template {
            return Vec::new();
        }
        vec![ReviewEvent::PlanExpired {
            version: self.current().number,
            after_days,
        }]
    }
}

/// So many days.
fn days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}
