//! Pausing and resuming.

use crate::principal::{Principal, PrincipalKind};
use crate::run::{PauseOrder, Refusal, Run, RunEvent, RunState};

impl Run {
    /// Checks that this principal may go on with a run that stands still: what a person stopped, a
    /// person lets go on.
    pub fn check_may_lift_pause(&self, by: &Principal) -> Result<(), Refusal> {
        // What came with a store from elsewhere was agreed to there, and not here: it is ended, and
        // what is left is agreed to anew.
        if self.held {
            return Err(Refusal::HeldRun);
        }
        match &self.paused {
            Some(paused) if self.is_paused_by_person() && by.kind != PrincipalKind::Person => {
                Err(Refusal::PausedByPerson {
                    paused_by: paused.by.clone(),
                    by: by.clone(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether a person wants the run to stand still.
    pub fn is_paused_by_person(&self) -> bool {
        let by_person = |paused: &PauseOrder| paused.by.kind == PrincipalKind::Person;
        self.paused.as_ref().is_some_and(by_person)
    }

    pub(super) fn decide_pause(&self, by: &Principal) -> Result<Vec<RunEvent>, Refusal> {
        match self.state {
            RunState::Running => Ok(vec![RunEvent::RunPaused { by: by.clone() }]),
            // A person's pause is written down over that of a program, which another could lift.
            RunState::Paused
                if by.kind == PrincipalKind::Person
                    && !self.held
                    && !self.is_paused_by_person() =>
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
                self.check_may_lift_pause(by)?;
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
