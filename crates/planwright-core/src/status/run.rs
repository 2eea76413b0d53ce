//! The status of a run.

use super::words::status_words;

status_words! {
    /// The status of a run that lists and other programs see.
    pub enum RunStatus {
        /// Calls are in flight, or can be made.
        Executing = "executing",
        /// Nothing can start until a person decides.
        Waiting = "waiting",
        /// A person stopped it for now.
        Paused = "paused",
        /// No process executes it any more.
        Stalled = "stalled",
        /// Every step came to a good end.
        Completed = "completed",
        /// Every step ended, and some that matter failed: the plan said to go on without them.
        CompletedWithFailures = "completed_with_failures",
        /// A step failed, or a person declared the run failed.
        Failed = "failed",
        /// The plan was adjusted: the work continues in another run.
        Adjusted = "adjusted",
        /// A person cancelled it.
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    /// Returns whether the run has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed
            | Self::CompletedWithFailures
            | Self::Failed
            | Self::Adjusted
            | Self::Cancelled => true,
            Self::Executing | Self::Waiting | Self::Paused | Self::Stalled => false,
        }
    }
}
