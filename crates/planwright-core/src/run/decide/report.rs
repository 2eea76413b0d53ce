//! A call came back, or will not: retry, end, or ask a person.

use super::CallReport;
use crate::digest::Digest;
use crate::id::AttemptNo;
use crate::plan::StepIx;
use crate::run::{
    AgentWork, Asked, CallEffect, Refusal, Run, RunEvent, RunState, StepError, StepErrorCode,
    StepState, Tally,
};
use crate::time::Timestamp;
use crate::tool::EffectClass;

/// The longest part of a question in the reason of a lost outcome.
const MAX_QUOTED: usize = 200;

/// The reason why the outcome of a call is unknown whose server asked and got no answer.
fn asked_in_vain(asked: &Asked) -> String {
    let question = asked.questions.first();
    let question = question.map_or("", |question| question.message.as_str());
    let quoted: String = question.chars().take(MAX_QUOTED).collect();
    format!(
        "its server asked in the middle of the call and no person answered: \"{quoted}\"; what it \
         did before is unknown, so it is not asked again by itself"
    )
}

impl Run {
    pub(super) fn decide_report(
        &self,
        ix: StepIx,
        attempt: AttemptNo,
        answer: &CallReport,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        let Some((tally, class)) = self
            .in_flight(ix)
            .filter(|(tally, _)| tally.attempts == attempt)
        else {
            return Err(Refusal::NotInFlight {
                step: step.to_string(),
                attempt,
            });
        };
        let event = match answer {
            CallReport::Succeeded(_) if self.is_only_a_word(ix) => {
                self.failed(ix, tally, StepError::nothing_done(), now)
            }
            CallReport::Succeeded(value) => RunEvent::AttemptSucceeded {
                step,
                attempt,
                value: value.clone(),
            },
            // What happened must not be taken for failed: a person who reads that would do it again.
            CallReport::Failed(error)
                if class == EffectClass::Unsafe && error.effect == CallEffect::Done =>
            {
                let reason = format!(
                    "the call was made, and its answer cannot be used: {} ({})",
                    error.message, error.code
                );
                self.report_interruption(ix, tally, class, &reason)
            }
            CallReport::Failed(error) => self.failed(ix, tally, error.clone(), now),
            // A child that waits is cancelled with its parent.
            CallReport::Parked { .. } if self.state == RunState::Cancelling => {
                RunEvent::AttemptCancelled { step, attempt }
            }
            CallReport::Parked { run } => RunEvent::ChildParked {
                step,
                attempt,
                run: run.clone(),
            },
            CallReport::Asked(asked) => self.decide_asked(ix, tally, asked, now),
            CallReport::Holds(asked) => return self.decide_hold(ix, tally, asked),
            // Asking again would do again what was done before the question.
            CallReport::AskedMidway(asked) if class == EffectClass::Unsafe => {
                self.report_interruption(ix, tally, class, &asked_in_vain(asked))
            }
            CallReport::AskedMidway(asked) => self.decide_asked(ix, tally, asked, now),
            CallReport::NotMade if self.state == RunState::Cancelling => {
                RunEvent::AttemptCancelled { step, attempt }
            }
            CallReport::NotMade => {
                self.report_interruption(ix, tally, EffectClass::Safe, "the call was not made")
            }
            CallReport::Lost { reason } => self.report_interruption(ix, tally, class, reason),
        };
        Ok(vec![event])
    }

    /// Returns whether a model says that the work of an agent step is done and no call was made
    /// for it, although it could have made some.
    fn is_only_a_word(&self, ix: StepIx) -> bool {
        let Some(agent) = self.definition(ix).agent.as_deref() else {
            return false;
        };
        let could_call = agent.max_calls() > 0 && !self.plan.document().agent_tools().is_empty();
        // What a program of the operator's does besides its calls cannot be seen.
        let by_model = agent.executor.is_none();
        let made_calls = self.agent_work(ix).is_some_and(AgentWork::made_calls);
        // In a conversation an answer is the work.
        by_model && !agent.converse && could_call && !made_calls
    }

    pub(super) fn in_flight(&self, ix: StepIx) -> Option<(Tally, EffectClass)> {
        if let StepState::Running { tally, class, .. } = self.step(ix) {
            Some((*tally, *class))
        } else {
            None
        }
    }

    /// A failed attempt: tried again if the plan says so, the call can be repeated, and the run
    /// still goes on.
    pub(super) fn failed(
        &self,
        ix: StepIx,
        tally: Tally,
        error: StepError,
        now: Timestamp,
    ) -> RunEvent {
        let goes_on =
            matches!(self.state, RunState::Running | RunState::Paused) && !self.is_stopped(ix);
        let retry_at = if goes_on {
            self.retry_at(ix, tally, &error, now)
        } else {
            None
        };
        RunEvent::AttemptFailed {
            step: self.step_id(ix).clone(),
            attempt: tally.attempts,
            error,
            retry_at,
        }
    }

    fn retry_at(
        &self,
        ix: StepIx,
        tally: Tally,
        error: &StepError,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let retry = self.definition(ix).retry.as_deref()?;
        // A plan can say that trying again is worth it, but not that it does no harm.
        if self.is_unsafe(ix) && error.effect != CallEffect::None {
            return None;
        }
        let worth_it = if retry.on.is_empty() {
            error.retryable
        } else {
            retry.on.iter().any(|word| word == error.code.as_str())
        };
        if !worth_it || u32::from(tally.failures) >= retry.max {
            return None;
        }
        let failures = u32::from(tally.failures) + 1;
        Some(now.plus(retry.pause_after(failures, self.noise(ix, failures))))
    }

    fn is_unsafe(&self, ix: StepIx) -> bool {
        let unsafe_call = |(_, class)| class == EffectClass::Unsafe;
        self.in_flight(ix).is_some_and(unsafe_call)
    }

    /// A number in 0..1 that looks random and is the same in every replay.
    fn noise(&self, ix: StepIx, failures: u32) -> f64 {
        let digest = Digest::of_parts(&[
            self.id.as_str().as_bytes(),
            &ix.index().to_le_bytes(),
            &failures.to_le_bytes(),
        ]);
        f64::from(u16::from_le_bytes([
            digest.as_bytes()[0],
            digest.as_bytes()[1],
        ])) / f64::from(u16::MAX)
    }

    /// A lost outcome: what may be repeated is repeated, within limits; for the rest a person is
    /// asked. What the end of a process interrupted is counted apart.
    pub(super) fn report_interruption(
        &self,
        ix: StepIx,
        tally: Tally,
        class: EffectClass,
        reason: &str,
    ) -> RunEvent {
        let crashes = self.crashes.get(&ix).copied().unwrap_or_default();
        let lost = tally.interruptions.saturating_sub(crashes.all);
        let repeatable = class != EffectClass::Unsafe && self.state != RunState::Cancelling;
        if repeatable && lost >= Self::MAX_INTERRUPTIONS {
            self.interrupted_too_often(ix, tally, &format!("{} times", lost + 1), reason)
        } else {
            self.settle_lost(ix, tally, class, reason)
        }
    }

    pub(super) fn interrupted_too_often(
        &self,
        ix: StepIx,
        tally: Tally,
        times: &str,
        reason: &str,
    ) -> RunEvent {
        let message = format!("interrupted {times}, last: {reason}");
        RunEvent::AttemptFailed {
            step: self.step_id(ix).clone(),
            attempt: tally.attempts,
            error: StepError::new(StepErrorCode::Interrupted, message),
            retry_at: None,
        }
    }

    pub(super) fn settle_lost(
        &self,
        ix: StepIx,
        tally: Tally,
        class: EffectClass,
        reason: &str,
    ) -> RunEvent {
        let step = self.step_id(ix).clone();
        let attempt = tally.attempts;
        match class {
            EffectClass::Unsafe => RunEvent::OutcomeLost {
                step,
                attempt,
                reason: reason.to_owned(),
            },
            EffectClass::Safe | EffectClass::Keyed => match self.state {
                RunState::Cancelling => RunEvent::AttemptCancelled { step, attempt },
                RunState::Running
                | RunState::Paused
                | RunState::Stalled { .. }
                | RunState::Stopping { .. }
                | RunState::Completed
                | RunState::Failed { .. }
                | RunState::GivenUp
                | RunState::Adjusted { .. }
                | RunState::Cancelled => RunEvent::AttemptInterrupted {
                    step,
                    attempt,
                    reason: reason.to_owned(),
                },
            },
        }
    }
}
