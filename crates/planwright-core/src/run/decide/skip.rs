//! Skipping a step: its tool is not there, or a person says so.

use crate::plan::StepIx;
use crate::principal::{Principal, PrincipalKind};
use crate::run::{Refusal, Run, RunEvent, StepEvent};

impl Run {
    pub(super) fn decide_skip(&self, ix: StepIx, reason: &str) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        match self.step(ix).after(&StepEvent::Skipped { reason }) {
            Some(_) => Ok(vec![RunEvent::StepSkipped {
                step,
                reason: reason.to_owned(),
                by: None,
            }]),
            None => Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            }),
        }
    }

    /// A person leaves out a step that has not begun. What depends on it goes on without.
    pub(super) fn decide_leave_out(
        &self,
        step: &str,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let ix = self.find_step(step)?;
        if by.kind != PrincipalKind::Person {
            return Err(Refusal::MayNotAnswer(by.clone()));
        }
        // Who may not agree to what waits for the step may not let it go on without the step either.
        let consent = self.start.consent.as_deref();
        let proposed_by = consent.and_then(|consent| consent.proposed_by.as_ref());
        if self.schedule().is_waited_for(ix) && proposed_by == Some(by) {
            return Err(Refusal::FourEyes(by.clone()));
        }
        let reason = if reason.is_empty() {
            format!("{by} left it out")
        } else {
            reason.to_owned()
        };
        match self.step(ix).after(&StepEvent::Skipped { reason: &reason }) {
            Some(_) => {
                let step = self.step_id(ix).clone();
                Ok(vec![RunEvent::StepSkipped {
                    step,
                    reason,
                    by: Some(by.clone()),
                }])
            }
            None => Err(Refusal::CannotSkip {
                step: step.to_owned(),
                state: self.step(ix).status(),
            }),
        }
    }
}
