//! The status of a plan, over its review and its latest run.

use super::RunStatus;
use super::words::status_words;

status_words! {
    /// The status of a plan that lists and other programs see: that of its latest run while the
    /// run says more than the review, else that of the review.
    pub enum PlanStatus {
        /// Its author still works on it.
        Draft = "draft",
        /// People are asked about it.
        Proposed = "proposed",
        /// Enough people, or policy, agreed.
        Approved = "approved",
        /// An approver said no.
        Rejected = "rejected",
        /// Rejected too often: a person has to step in.
        NeedsReview = "needs_review",
        /// An approver wants something changed first.
        ChangesRequested = "changes_requested",
        /// It was not touched for too long.
        Expired = "expired",
        /// Its latest run executes.
        Executing = "executing",
        /// Its latest run waits for a person.
        Waiting = "waiting",
        /// Its latest run is paused.
        Paused = "paused",
        /// No process executes its latest run any more.
        Stalled = "stalled",
        /// Its latest run completed.
        Completed = "completed",
        /// Its latest run completed, without steps that matter.
        CompletedWithFailures = "completed_with_failures",
        /// Its latest run failed.
        Failed = "failed",
        /// Its latest run was cancelled.
        Cancelled = "cancelled",
        /// It was put away. Figures count it so; lists show the status it had.
        Archived = "archived",
        /// It was deleted.
        Deleted = "deleted",
    }
}

impl PlanStatus {
    /// Returns whether nothing of the plan is waited for any more. Only such plans are archived.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Completed
            | Self::CompletedWithFailures
            | Self::Failed
            | Self::Cancelled
            | Self::Rejected
            | Self::NeedsReview
            | Self::ChangesRequested
            | Self::Expired => true,
            Self::Draft
            | Self::Proposed
            | Self::Approved
            | Self::Executing
            | Self::Waiting
            | Self::Paused
            | Self::Stalled
            | Self::Archived
            | Self::Deleted => false,
        }
    }

    /// Returns whether a run of the plan has begun and has not ended.
    pub const fn is_executing(self) -> bool {
        match self {
            Self::Executing | Self::Waiting | Self::Paused | Self::Stalled => true,
            Self::Draft
            | Self::Proposed
            | Self::Approved
            | Self::Rejected
            | Self::NeedsReview
            | Self::ChangesRequested
            | Self::Expired
            | Self::Completed
            | Self::CompletedWithFailures
            | Self::Failed
            | Self::Cancelled
            | Self::Archived
            | Self::Deleted => false,
        }
    }

    /// Returns the status of the latest run, if that is what the plan shows.
    pub const fn run_status(self) -> Option<RunStatus> {
        match self {
            Self::Executing => Some(RunStatus::Executing),
            Self::Waiting => Some(RunStatus::Waiting),
            Self::Paused => Some(RunStatus::Paused),
            Self::Stalled => Some(RunStatus::Stalled),
            Self::Completed => Some(RunStatus::Completed),
            Self::CompletedWithFailures => Some(RunStatus::CompletedWithFailures),
            Self::Failed => Some(RunStatus::Failed),
            Self::Cancelled => Some(RunStatus::Cancelled),
            Self::Draft
            | Self::Proposed
            | Self::Approved
            | Self::Rejected
            | Self::NeedsReview
            | Self::ChangesRequested
            | Self::Expired
            | Self::Archived
            | Self::Deleted => None,
        }
    }

    /// Returns the status of a plan whose latest run has this one; `None` for a run that was
    /// adjusted, whose plan is proposed again.
    pub const fn of_run(run: RunStatus) -> Option<Self> {
        match run {
            RunStatus::Executing => Some(Self::Executing),
            RunStatus::Waiting => Some(Self::Waiting),
            RunStatus::Paused => Some(Self::Paused),
            RunStatus::Stalled => Some(Self::Stalled),
            RunStatus::Completed => Some(Self::Completed),
            RunStatus::CompletedWithFailures => Some(Self::CompletedWithFailures),
            RunStatus::Failed => Some(Self::Failed),
            RunStatus::Cancelled => Some(Self::Cancelled),
            RunStatus::Adjusted => None,
        }
    }
}
