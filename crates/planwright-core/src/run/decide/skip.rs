//! Skipping a step whose tool is not there.

use crate::plan::StepIx;
use crate::run::{Refusal, Run, RunEvent, StepEvent};

impl Run {
    pub(super) fn decide_skip(&self, ix: StepIx, reason: &str) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        match self.step(ix).after(&StepEvent::Skipped { reason }) {
            Some(_) => Ok(vec![RunEvent::StepSkipped { step, reason: reason.to_owned() }]),
            None => Err(Refusal::CannotStart { step: step.to_string(), state: self.step(ix).name() }),
        }
    }
}
