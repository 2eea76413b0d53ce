//! A person says what became of a call whose outcome was lost.

use crate::principal::Principal;
use crate::run::{Refusal, Resolution, Run, RunEvent, StepError, StepErrorCode, StepState};
use crate::time::Timestamp;

impl Run {
    pub(super) fn decide_resolve(
        &self,
        step: &str,
        by: &Principal,
        resolution: &Resolution,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let ix = self.find_step(step)?;
        if !by.may_approve() {
            return Err(Refusal::MayNotApprove(by.clone()));
        }
        let StepState::OutcomeUnknown { tally, .. } = self.step(ix) else {
            return Err(Refusal::NothingToResolve {
                step: step.to_owned(),
                state: self.step(ix).status(),
            });
        };
        let resolved = RunEvent::OutcomeResolved {
            step: self.step_id(ix).clone(),
            resolution: resolution.clone(),
            by: by.clone(),
        };
        Ok(match resolution {
            Resolution::Happened { .. } | Resolution::RunAgain => vec![resolved],
            Resolution::DidNotHappen => {
                let message = format!("{by} says that the call had no effect");
                let error = StepError::new(StepErrorCode::DidNotHappen, message).retryable(true);
                vec![resolved, self.failed(ix, *tally, error, now)]
            }
        })
    }
}
