//! Starting a step: consent must cover the call, and the guards have the last word.

use super::agent::guard_error;
use super::consent::Covered;
use crate::digest::Digest;
use crate::plan::StepIx;
use crate::run::{CallFacts, Refusal, Run, RunEvent, RunState, StepError, StepEvent, StepState};
use crate::time::Timestamp;
use crate::tool::{EffectClass, ToolName};

impl Run {
    pub(super) fn decide_start(
        &self,
        ix: StepIx,
        (tool, class, call): (&ToolName, EffectClass, Digest),
        facts: Option<&CallFacts>,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        if !self.may_start(ix, now) {
            return Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        }
        let covered = self.check_consent(ix, tool, call, facts);
        if let Covered::No(error) = covered {
            return Ok(vec![RunEvent::StepFailed { step, error }]);
        }
        let caps = facts.map(|facts| facts.caps.as_slice()).unwrap_or_default();
        let guards = match self.definition(ix).is_for_model() {
            true => self.check_tokens(0).and_then(|()| self.check_seconds(now)),
            false => self.check_guards(tool, &call, caps, now),
        };
        if let Err(block) = guards {
            return Ok(vec![RunEvent::StepFailed {
                step,
                error: guard_error(&block),
            }]);
        }
        if let Covered::Ask(asked) = covered {
            return Ok(vec![self.approval_requested(ix, Some(asked), now)]);
        }
        let attempt = self.step(ix).tally().attempts + 1;
        Ok(vec![RunEvent::AttemptStarted {
            step,
            attempt,
            tool: tool.clone(),
            class,
            call,
        }])
    }

    pub(super) fn decide_fail(
        &self,
        ix: StepIx,
        error: &StepError,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        match self.step(ix).after(&StepEvent::FailedWithoutCall { error }) {
            Some(_) => Ok(vec![RunEvent::StepFailed {
                step,
                error: error.clone(),
            }]),
            None => Err(Refusal::CannotStart {
                step: step.to_string(),
                state: self.step(ix).status(),
            }),
        }
    }

    fn may_start(&self, ix: StepIx, now: Timestamp) -> bool {
        if self.state != RunState::Running
            || self.schedule().free_slots() == 0
            || self.loops(ix)
            || self.definition(ix).asks_person()
        {
            return false;
        }
        if self.definition(ix).skip {
            return false;
        }
        if let StepState::RetryDue { due_at, .. } = self.step(ix) {
            return *due_at <= now;
        }
        let gated = self.needs_approval(ix);
        matches!(self.step(ix), StepState::Ready { approved, .. } if *approved || !gated)
    }
}
