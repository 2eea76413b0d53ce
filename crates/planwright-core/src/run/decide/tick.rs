//! Time passed: calls that took too long end here, regardless of what they report later, and so do
//! approvals that no person gave.

use crate::run::{Run, RunEvent, StepError, StepErrorCode, StepState};
use crate::time::Timestamp;
use crate::tool::EffectClass;

impl Run {
    pub(super) fn decide_tick(&self, now: Timestamp) -> Vec<RunEvent> {
        let expired = self
            .index
            .expiries
            .iter()
            .take_while(|&&(at, _)| at <= now)
            .map(|&(at, ix)| {
                let error = StepError::new(
                    StepErrorCode::ApprovalExpired,
                    format!("it was not approved before {at}"),
                );
                RunEvent::StepFailed {
                    step: self.step_id(ix).clone(),
                    error,
                }
            });
        let due = self.index.timers.iter().take_while(|&&(at, _)| at <= now);
        due.filter_map(|&(_, ix)| {
            let StepState::Running { tally, class, .. } = self.step(ix) else {
                return None;
            };
            let seconds = self.time_limit(ix).unwrap_or_default().as_secs_f64();
            let default = if self.definition(ix).timeout_seconds.is_none() {
                ", the time limit of calls whose step names none"
            } else {
                ""
            };
            let message = format!("timeout: no answer within {seconds} s{default}");
            Some(match class {
                EffectClass::Safe | EffectClass::Keyed => self.failed(
                    ix,
                    *tally,
                    StepError::new(StepErrorCode::Timeout, message).retryable(true),
                    now,
                ),
                EffectClass::Unsafe => self.report_interruption(ix, *tally, *class, &message),
            })
        })
        .chain(expired)
        .collect()
    }
}
