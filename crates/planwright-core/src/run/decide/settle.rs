//! Ending the run once nothing is left to do.

use crate::run::{Run, RunEvent, RunState};

impl Run {
    pub(super) fn decide_settle(&self) -> Vec<RunEvent> {
        // Before it ends the reflector looks at it, unless it is cancelled.
        if !self.index.running.is_empty() || self.reflection().next_look().is_some() {
            return Vec::new();
        }
        if self.stopping_on().is_some() {
            return vec![RunEvent::RunFailed {
                steps_digest: self.steps_digest(),
            }];
        }
        match self.state {
            RunState::Cancelling => vec![RunEvent::RunCancelled {
                steps_digest: self.steps_digest(),
            }],
            RunState::Running | RunState::Paused if self.index.open == 0 => {
                let steps_digest = self.steps_digest();
                match self.failed_step() {
                    Some(_) => vec![RunEvent::RunFailed { steps_digest }],
                    None => vec![RunEvent::RunCompleted {
                        steps_digest,
                        failures: self.count_failures(),
                    }],
                }
            }
            RunState::Running
            | RunState::Paused
            | RunState::Stopping { .. }
            | RunState::Stalled { .. }
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => Vec::new(),
        }
    }
}
