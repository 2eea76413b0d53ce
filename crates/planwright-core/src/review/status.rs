//! The status of a plan, over its review and its latest run.

use super::{Review, ReviewStage, ReviewState};
use crate::status::{CachedStatus, PlanStatus, RunStatus};

impl Review {
    /// Returns the plan's status, given that of its latest run. A decision or a new version that
    /// came after that run began says more than the run does, except that a run which has not ended
    /// is always shown.
    pub fn status(&self, latest_run: Option<RunStatus>) -> PlanStatus {
        let of_run = latest_run
            .filter(|_| !self.runs.is_empty())
            .filter(|run| !run.is_terminal() || self.is_up_to_its_run());
        // A run that was adjusted says nothing: its plan is proposed again.
        of_run
            .and_then(PlanStatus::of_run)
            .unwrap_or_else(|| self.state.status())
    }

    /// Returns the status that is kept beside the journal, so that lists need not fold it.
    /// `opened`: a run of the current version used the approval up, so that the run says where the
    /// plan stands, and the plan waits for no decision.
    pub fn cached_status(&self) -> CachedStatus {
        if self.is_archived() {
            return CachedStatus::Archived;
        }
        if self.is_up_to_its_run() {
            return CachedStatus::Opened;
        }
        self.state.status().into()
    }

    /// Returns true if nothing was decided since the latest run began: no new version, and no new
    /// consent.
    fn is_up_to_its_run(&self) -> bool {
        self.stage() == Some(ReviewStage::Proposed)
            && self
                .runs
                .last()
                .is_some_and(|run| run.version == self.current().number)
    }
}

impl ReviewState {
    /// Returns the status that lists and other programs see: for an archived plan, the one it had.
    pub const fn status(self) -> PlanStatus {
        match self {
            Self::Active(stage) | Self::Archived(stage) => stage.status(),
            Self::Deleted => PlanStatus::Deleted,
        }
    }
}

impl ReviewStage {
    /// Returns the status that lists and other programs see.
    pub const fn status(self) -> PlanStatus {
        match self {
            Self::Draft => PlanStatus::Draft,
            Self::Proposed => PlanStatus::Proposed,
            Self::Approved => PlanStatus::Approved,
            Self::Rejected => PlanStatus::Rejected,
            Self::NeedsReview => PlanStatus::NeedsReview,
            Self::ChangesRequested => PlanStatus::ChangesRequested,
            Self::Expired => PlanStatus::Expired,
        }
    }
}
