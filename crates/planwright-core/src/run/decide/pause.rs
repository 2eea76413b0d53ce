//! Pausing and resuming.

use crate::principal::Principal;
use crate::run::{Refusal, Run, RunEvent, RunState};

impl Run {
    pub(super) fn decide_pause(&self, by: &Principal) -> Result<Vec<RunEvent>, Refusal> {
        match self.state {
            RunState::Running => Ok(vec![RunEvent::RunPaused { by: by.clone() }]),
            RunState::Paused => Ok(Vec::new()),
            RunState::Stalled { .. }
            | RunState::Stopping { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => Err(Refusal::CannotPause {
                status: self.status(),
            }),
        }
    }

    pub(super) fn decide_resume(&self, by: &Principal) -> Result<Vec<RunEvent>, Refusal> {
        match self.state {
            RunState::Paused | RunState::Stalled { .. } => {
                Ok(vec![RunEvent::RunResumed { by: by.clone() }])
            }
            RunState::Running
            | RunState::Stopping { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => Err(Refusal::NotPaused),
        }
    }
}
