//! The status of a step.

use super::words::status_words;

status_words! {
    /// The status of a step of a run that reports and events show.
    pub enum StepStatus {
        /// The run has begun and the step has not. Only events say this.
        Queued = "queued",
        /// Waits for the steps it depends on.
        Pending = "pending",
        /// A step it depends on will never succeed.
        Blocked = "blocked",
        /// Nothing is in its way.
        Ready = "ready",
        /// A person has to approve it first.
        AwaitingApproval = "awaiting_approval",
        /// A person approved it and it has not started. Only events say this.
        Approved = "approved",
        /// A person has to give values.
        AwaitingInput = "awaiting_input",
        /// The run of its sub-plan waits for a person.
        AwaitingPlan = "awaiting_plan",
        /// Its call is in flight.
        Running = "running",
        /// The last attempt failed and another is due.
        RetryDue = "retry_due",
        /// It has a value.
        Completed = "completed",
        /// Its last attempt failed.
        Failed = "failed",
        /// A person said no.
        Denied = "denied",
        /// It was left out, and nothing is wrong.
        Skipped = "skipped",
        /// The run ended before it did.
        Cancelled = "cancelled",
        /// Its call may or may not have happened.
        OutcomeUnknown = "outcome_unknown",
        /// It completed and was taken back.
        Undone = "undone",
    }
}

impl StepStatus {
    /// Returns whether nothing more happens to the step in its run.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed
            | Self::Failed
            | Self::Denied
            | Self::Skipped
            | Self::Blocked
            | Self::Cancelled
            | Self::Undone => true,
            Self::Queued
            | Self::Pending
            | Self::Ready
            | Self::AwaitingApproval
            | Self::Approved
            | Self::AwaitingInput
            | Self::AwaitingPlan
            | Self::Running
            | Self::RetryDue
            | Self::OutcomeUnknown => false,
        }
    }
}
