//! The reflector looked at the run before its end: the consequences of what it says.

use crate::adjust::{Assessment, Reflected};
use crate::model::ModelUse;
use crate::plan::Bounds;
use crate::principal::Principal;
use crate::run::{Look, Refusal, Run, RunEvent};

impl Run {
    /// Records what was said. A failed step stays a failure regardless of what was said; where a
    /// change is asked for and cannot be made, the run fails and says why.
    pub(super) fn decide_reflect(
        &self,
        reflected: &Reflected,
        used: &[ModelUse],
        problem: Option<&str>,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let (Some(Look::Reflect), Some(reflection)) =
            (self.reflection().next_look(), &self.start.reflection)
        else {
            return Err(Refusal::NothingToReflectOn {
                status: self.status(),
            });
        };
        let Reflected {
            assessment,
            reasoning,
            adjustments,
        } = reflected;
        let mut events = uses(used);
        events.push(RunEvent::RunReflected {
            cycle: reflection.cycles + 1,
            assessment: *assessment,
            reasoning: reasoning.clone(),
            adjustments: adjustments.clone(),
        });
        let failed = self.failed_step().is_some();
        let reason = match (assessment.asks_for_change(), adjustments.is_empty()) {
            (true, false)
                if reflection
                    .tried
                    .contains(&self.reflection().fingerprint(adjustments)) =>
            {
                Some("no progress: the same was tried before, and the same failed".to_owned())
            }
            (true, false) => {
                let state = self.reflection().adjustable();
                let checked =
                    self.plan
                        .document()
                        .apply_adjustments(adjustments, &state, &Bounds::default());
                let problem = checked
                    .err()
                    .map(|error| error.to_string())
                    .or_else(|| problem.map(str::to_owned));
                problem.map(|problem| format!("the adjustments cannot be made: {problem}"))
            }
            (true, true) if failed && self.reflection().may_replan() => None,
            (true, true) => Some(said(*assessment, reasoning)),
            (false, _) if *assessment == Assessment::Failed && !failed => {
                Some(said(*assessment, reasoning))
            }
            (false, _) => None,
        };
        events.extend(reason.map(|reason| self.given_up(reason)));
        Ok(events)
    }

    /// Ends the run, because the plan has a version with which the work goes on.
    pub(super) fn decide_adjust(
        &self,
        version: u32,
        replanned: bool,
        used: &[ModelUse],
    ) -> Result<Vec<RunEvent>, Refusal> {
        let due = if replanned {
            Look::Replan
        } else {
            Look::Adjust
        };
        if self.reflection().next_look() != Some(due) {
            return Err(Refusal::NothingToReflectOn {
                status: self.status(),
            });
        }
        let mut events = uses(used);
        events.push(RunEvent::RunAdjusted {
            version,
            replanned,
            steps_digest: self.steps_digest(),
        });
        Ok(events)
    }

    /// Ends the run as failed, because what was to be done about it cannot be done.
    pub(super) fn decide_abandon(
        &self,
        reason: &str,
        used: &[ModelUse],
    ) -> Result<Vec<RunEvent>, Refusal> {
        match self.reflection().next_look() {
            Some(Look::Adjust | Look::Replan) => {
                let mut events = uses(used);
                events.push(self.given_up(reason.to_owned()));
                Ok(events)
            }
            Some(Look::Reflect) | None => Err(Refusal::NothingToReflectOn {
                status: self.status(),
            }),
        }
    }

    fn given_up(&self, reason: String) -> RunEvent {
        RunEvent::RunGivenUp {
            by: Principal::reflector(),
            reason,
            steps_digest: self.steps_digest(),
        }
    }
}

fn uses(used: &[ModelUse]) -> Vec<RunEvent> {
    used.iter()
        .map(|used| RunEvent::ModelUsed {
            step: None,
            used: used.clone(),
        })
        .collect()
}

fn said(assessment: Assessment, reasoning: &str) -> String {
    let word = assessment.as_str().replace('_', " ");
    if reasoning.is_empty() {
        word
    } else {
        format!("{word}: {reasoning}")
    }
}
