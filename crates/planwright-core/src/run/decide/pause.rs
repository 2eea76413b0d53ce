//! Pausing and resuming.

use crate::principal::{Principal, PrincipalKind};
use crate::run::{Refusal, Run, RunEvent, RunState};

impl Run {
    pub(super) fn decide_pause(&self, by: &Principal) -> Result<Vec<RunEvent>, Refusal> {
        match self.state {
            RunState::Running => Ok(vec![RunEvent::RunPaused { by: by.clone() }]),
            // A person's pause is written down over that of a program, which another could lift.
            RunState::Paused
                if by.kind == PrincipalKind::Person
                    && !self.held
                    && !self.pause().is_by_person() =>
            {
                Ok(vec![RunEvent::RunPaused { by: by.clone() }])
            }
            // A rule that holds the run does so also where a person or a program has paused it.
            RunState::Paused if by.kind == PrincipalKind::Policy && !self.held => {
                Ok(vec![RunEvent::RunPaused { by: by.clone() }])
            }
            RunState::Stalled { .. } if by.kind == PrincipalKind::Policy => Ok(vec![
                RunEvent::RunResumed { by: by.clone() },
                RunEvent::RunPaused { by: by.clone() },
            ]),
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
                self.pause().check_may_lift(by)?;
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
