//! The names of events.

use crate::status::StepStatus;
use serde::{Serialize, Serializer};
use std::fmt;

/// The kinds of events. The words are promised to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventName {
    /// The first version was written, as a draft or not.
    PlanCreated,
    /// A version was put forward.
    PlanProposed,
    /// A later version was written.
    PlanEdited,
    /// A person or policy agreed.
    PlanApproved,
    /// An approver sent the plan back.
    PlanRejected,
    /// An approver asked for changes.
    PlanChangesRequested,
    /// The plan was not touched for too long.
    PlanExpired,
    /// No run used the approval in time.
    PlanApprovalExpired,
    /// Approvals were revoked before a run used them.
    PlanApprovalRevoked,
    /// A run is wanted as soon as the plan is approved.
    PlanRunRequested,
    /// The plan was put away.
    PlanArchived,
    /// The plan was brought back.
    PlanUnarchived,
    /// A principal said something about the plan.
    PlanCommented,
    /// A thread was settled.
    PlanCommentResolved,
    /// A thread is open again.
    PlanCommentReopened,
    /// The plan was deleted.
    PlanDeleted,
    /// A step of the plan or of a run moved on.
    PlanStep,
    /// A run began.
    RunStarted,
    /// The service executes as many runs as it may, and this one waits.
    RunQueued,
    /// The run was paused.
    RunPaused,
    /// The run goes on.
    RunResumed,
    /// No process executes the run any more.
    RunStalled,
    /// A principal cancelled the run, and its calls are being stopped.
    RunCancelling,
    /// A principal ordered that the run is taken back.
    RunUndoing,
    /// The run completed.
    RunCompleted,
    /// The run failed.
    RunFailed,
    /// The run ended because it was cancelled.
    RunCancelled,
    /// The progress of a run was assessed.
    PlanReflected,
    /// The plan was adjusted: the work goes on in another run.
    PlanAdjusted,
}

impl EventName {
    /// Every name, in the order of a plan's life.
    pub const ALL: [Self; 29] = [
        Self::PlanCreated,
        Self::PlanProposed,
        Self::PlanEdited,
        Self::PlanApproved,
        Self::PlanRejected,
        Self::PlanChangesRequested,
        Self::PlanExpired,
        Self::PlanApprovalExpired,
        Self::PlanApprovalRevoked,
        Self::PlanRunRequested,
        Self::PlanArchived,
        Self::PlanUnarchived,
        Self::PlanCommented,
        Self::PlanCommentResolved,
        Self::PlanCommentReopened,
        Self::PlanDeleted,
        Self::PlanStep,
        Self::RunStarted,
        Self::RunQueued,
        Self::RunPaused,
        Self::RunResumed,
        Self::RunStalled,
        Self::RunCancelling,
        Self::RunUndoing,
        Self::RunCompleted,
        Self::RunFailed,
        Self::RunCancelled,
        Self::PlanReflected,
        Self::PlanAdjusted,
    ];

    /// The name of earlier systems for an event, given the state of the step it is about.
    pub fn alias(self, state: Option<StepStatus>) -> Option<&'static str> {
        if self.ends_run() {
            return Some("plan_execution_complete");
        }
        if self == Self::PlanStep {
            let state = state?;
            return if state == StepStatus::Running {
                Some("plan_step_ready")
            } else {
                state.is_final().then_some("plan_step_complete")
            };
        }
        let known = [
            (Self::RunStarted, "plan_execution_start"),
            (Self::PlanReflected, "reflection_complete"),
            (Self::PlanAdjusted, "adjustment_applied"),
        ];
        known
            .into_iter()
            .find_map(|(name, alias)| (name == self).then_some(alias))
    }

    /// Returns the word that other programs know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlanCreated => "plan.created",
            Self::PlanProposed => "plan.proposed",
            Self::PlanEdited => "plan.edited",
            Self::PlanApproved => "plan.approved",
            Self::PlanRejected => "plan.rejected",
            Self::PlanChangesRequested => "plan.changes_requested",
            Self::PlanExpired => "plan.expired",
            Self::PlanApprovalExpired => "plan.approval_expired",
            Self::PlanApprovalRevoked => "plan.approval_revoked",
            Self::PlanRunRequested => "plan.run_requested",
            Self::PlanArchived => "plan.archived",
            Self::PlanUnarchived => "plan.unarchived",
            Self::PlanCommented => "plan.commented",
            Self::PlanCommentResolved => "plan.comment_resolved",
            Self::PlanCommentReopened => "plan.comment_reopened",
            Self::PlanDeleted => "plan.deleted",
            Self::PlanStep => "plan.step",
            Self::RunStarted => "run.started",
            Self::RunQueued => "run.queued",
            Self::RunPaused => "run.paused",
            Self::RunResumed => "run.resumed",
            Self::RunStalled => "run.stalled",
            Self::RunCancelling => "run.cancelling",
            Self::RunUndoing => "run.undoing",
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::PlanReflected => "plan.reflected",
            Self::PlanAdjusted => "plan.adjusted",
        }
    }

    /// Returns whether nothing more happens in the run that the event is about.
    pub fn ends_run(self) -> bool {
        match self {
            Self::RunCompleted | Self::RunFailed | Self::RunCancelled => true,
            Self::PlanCreated
            | Self::PlanProposed
            | Self::PlanEdited
            | Self::PlanApproved
            | Self::PlanRejected
            | Self::PlanChangesRequested
            | Self::PlanExpired
            | Self::PlanApprovalExpired
            | Self::PlanApprovalRevoked
            | Self::PlanRunRequested
            | Self::PlanArchived
            | Self::PlanUnarchived
            | Self::PlanCommented
            | Self::PlanCommentResolved
            | Self::PlanCommentReopened
            | Self::PlanDeleted
            | Self::PlanStep
            | Self::RunStarted
            | Self::RunQueued
            | Self::RunPaused
            | Self::RunResumed
            | Self::RunStalled
            | Self::RunCancelling
            | Self::RunUndoing
            | Self::PlanReflected
            | Self::PlanAdjusted => false,
        }
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
