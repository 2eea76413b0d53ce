//! A call that was in flight too often when the process died: it is made alone, so that one which
//! ends the process fails, and those that were only beside it do not.

use crate::plan::StepIx;
use crate::run::{Refusal, Run, RunEvent};

/// Counts the deaths of the process while a call of the step was in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crashes {
    /// Over all attempts.
    pub all: u16,
    /// While it was the only call in flight.
    pub alone: u16,
}

impl Run {
    /// A step is called alone once the process has died so often while a call of it was in flight.
    pub const ISOLATED_AFTER: u16 = 3;

    /// The most the process may die while a call of one step is in flight, alone or not.
    pub const MAX_CRASHES: u16 = 100;

    pub(super) fn decide_isolate(&self, ix: StepIx) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        if self.schedule().needs_isolation(ix).is_none() {
            return Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        }
        if self.isolated == Some(ix) {
            return Ok(Vec::new());
        }
        Ok(vec![RunEvent::StepIsolated { step }])
    }

    pub(super) fn decide_end_isolation(&self) -> Vec<RunEvent> {
        let ended = |ix| RunEvent::IsolationEnded {
            step: self.step_id(ix).clone(),
        };
        self.schedule()
            .isolated_step()
            .map(ended)
            .into_iter()
            .collect()
    }
}
