//! Opening a step that runs once per element, and closing it with the values of all of them.

use crate::plan::StepIx;
use crate::run::{
    Refusal, Run, RunEvent, RunState, StepError, StepErrorCode, StepState, StoredValue,
};

impl Run {
    pub(super) fn decide_open_loop(
        &self,
        ix: StepIx,
        items: &StoredValue,
        count: usize,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        let ready = matches!(self.step(ix), StepState::Ready { .. });
        if self.state != RunState::Running || !self.loops(ix) || !ready || self.definition(ix).skip
        {
            return Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        }
        let room = Self::MAX_INSTANCES.saturating_sub(self.instances());
        let limit = Self::MAX_ELEMENTS.min(room);
        match u32::try_from(count) {
            Ok(count) if count as usize <= limit => Ok(vec![RunEvent::LoopOpened {
                step,
                items: items.clone(),
                count,
            }]),
            Ok(_) | Err(_) => {
                let message =
                    format!("the list has {count} elements, at most {limit} can be run over here");
                let error = StepError::new(StepErrorCode::TooManyElements, message);
                Ok(vec![RunEvent::StepFailed { step, error }])
            }
        }
    }

    pub(super) fn decide_close_loop(
        &self,
        ix: StepIx,
        value: &StoredValue,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        if !self.is_closable(ix) {
            return Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        }
        Ok(vec![RunEvent::LoopClosed {
            step,
            value: value.clone(),
        }])
    }
}
