//! Where a run stands: one enum, and one table that says what may follow what.

use crate::plan::StepIx;
use crate::time::Timestamp;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Steps start as soon as they can.
    Running,
    /// In-flight calls finish; nothing starts until the run is resumed.
    Paused,
    /// It was being executed, and then no process executed it for too long. A person says how it
    /// goes on.
    Stalled {
        /// The time since when no process executes it.
        since: Timestamp,
    },
    /// A critical step failed: in-flight calls finish, nothing starts.
    Stopping {
        /// The step that failed.
        failed: StepIx,
    },
    /// It was cancelled: in-flight calls are being stopped.
    Cancelling,
    /// Every step ended, and none that matters failed.
    Completed,
    /// A critical step failed, and nothing is in flight any more.
    Failed {
        /// The step that failed.
        failed: StepIx,
    },
    /// A person declared it failed, although no step of it was why.
    GivenUp,
    /// The plan was adjusted: the work goes on with this version of it.
    Adjusted {
        /// The version with which the work goes on.
        version: u32,
    },
    /// It ended because it was cancelled.
    Cancelled,
}

/// The events in the life of a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunSignal {
    Paused,
    Resumed,
    CancelRequested,
    CriticalStepFailed(StepIx),
    Completed,
    Failed(StepIx),
    Cancelled,
    Stalled(Timestamp),
    GivenUp,
    Adjusted(u32),
}

impl RunState {
    /// Returns true if it has ended.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Completed
            | Self::Failed { .. }
            | Self::GivenUp
            | Self::Adjusted { .. }
            | Self::Cancelled => true,
            Self::Running
            | Self::Paused
            | Self::Stalled { .. }
            | Self::Stopping { .. }
            | Self::Cancelling => false,
        }
    }

    /// Returns the state that follows, or `None` if the journal may not say this here.
    pub(super) fn after(&self, signal: RunSignal) -> Option<Self> {
        use RunSignal as S;
        Some(match (self, signal) {
            (Self::Running | Self::Paused, S::Paused) => Self::Paused,
            (Self::Running, S::Stalled(since)) => Self::Stalled { since },
            (Self::Paused | Self::Stalled { .. }, S::Resumed) => Self::Running,
            (
                Self::Running | Self::Paused | Self::Stalled { .. } | Self::Stopping { .. },
                S::CancelRequested,
            ) => Self::Cancelling,
            (
                Self::Running | Self::Paused | Self::Stalled { .. },
                S::CriticalStepFailed(failed),
            ) => Self::Stopping { failed },
            (
                Self::Running | Self::Paused | Self::Stalled { .. } | Self::Stopping { .. },
                S::GivenUp,
            ) => Self::GivenUp,
            // Once the run is ending, another failure does not change why.
            (Self::Stopping { failed }, S::CriticalStepFailed(_)) => {
                Self::Stopping { failed: *failed }
            }
            (Self::Cancelling, S::CriticalStepFailed(_)) => Self::Cancelling,
            (Self::Running | Self::Paused, S::Completed) => Self::Completed,
            (Self::Running | Self::Paused | Self::Stopping { .. }, S::Failed(failed)) => {
                Self::Failed { failed }
            }
            (Self::Running | Self::Paused | Self::Stopping { .. }, S::Adjusted(version)) => {
                Self::Adjusted { version }
            }
            (Self::Cancelling, S::Cancelled) => Self::Cancelled,
            _ => return None,
        })
    }
}
