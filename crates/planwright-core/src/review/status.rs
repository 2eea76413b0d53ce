//! The one word a list shows for a plan.

use super::{Review, ReviewState};

/// Where a plan stands, over its review and its latest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStatus(String);

impl PlanStatus {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Nobody waits for anything of this plan any more.
    pub fn is_over(&self) -> bool {
        matches!(
            self.0.as_str(),
            "completed"
                | "failed"
                | "cancelled"
                | "rejected"
                | "needs_review"
                | "changes_requested"
                | "expired"
        )
    }

    /// A run of the plan has begun and has not ended.
    pub fn is_executing(&self) -> bool {
        matches!(self.0.as_str(), "executing" | "paused" | "waiting" | "stalled")
    }
}

impl Review {
    /// The plan's status, given the status of its latest run. A decision or a new version that came after that run
    /// began says more than the run does, except that a run which goes on is always shown.
    pub fn status(&self, latest_run: Option<&str>) -> PlanStatus {
        let unended = |status: &str| PlanStatus(status.to_owned()).is_executing();
        let of_run = match (latest_run, self.runs.last()) {
            (Some(status), Some(run)) => {
                // What was adjusted goes on once somebody agreed: the plan is proposed again.
                let decided = self.state != ReviewState::Proposed
                    || run.version != self.current().number
                    || status == "adjusted";
                (unended(status) || !decided).then_some(status)
            }
            (None, _) | (Some(_), None) => None,
        };
        PlanStatus(of_run.unwrap_or(self.state.as_str()).to_owned())
    }
}
