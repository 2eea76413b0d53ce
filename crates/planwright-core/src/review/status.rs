//! The one word a list shows for a plan.

use super::Review;

/// Where a plan stands, over its review and its latest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStatus(String);

impl PlanStatus {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Nobody waits for anything of this plan any more.
    pub fn is_over(&self) -> bool {
        Self::means_over(&self.0)
    }

    /// Whether a plan that stands at this word is over. Only such plans are archived.
    pub fn means_over(word: &str) -> bool {
        matches!(
            word,
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
        Self::means_executing(&self.0)
    }

    /// Whether a plan, or a run, that stands at this word has begun and has not ended.
    pub fn means_executing(word: &str) -> bool {
        matches!(word, "executing" | "paused" | "waiting" | "stalled")
    }
}

impl Review {
    /// The plan's status, given the status of its latest run. A decision or a new version that came
    /// after that run began says more than the run does, except that a run which goes on is always
    /// shown.
    pub fn status(&self, latest_run: Option<&str>) -> PlanStatus {
        let of_run = latest_run.filter(|status| {
            // What was adjusted goes on once somebody agreed: the plan is proposed again.
            !self.runs.is_empty()
                && (PlanStatus::means_executing(status)
                    || self.is_up_to_its_run() && *status != "adjusted")
        });
        PlanStatus(of_run.unwrap_or(self.state.as_str()).to_owned())
    }
}
