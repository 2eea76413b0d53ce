//! Counts what happens in runs. It sees what is durable, so it counts nothing that did not happen.

use super::prometheus::{name, tool_label};
use planwright_core::id::{AttemptNo, RunId, StepId};
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent};
use planwright_core::status::StepStatus;
use planwright_core::time::Timestamp;
use planwright_engine::Observer;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls of one run that have not come back.
type Calls = BTreeMap<(StepId, AttemptNo), (String, Timestamp)>;

/// A run that this process executes.
struct Executing {
    /// People started it. A child run is the work of a step, and no run of its own in the figures.
    counted: bool,
    calls: Calls,
}

#[derive(Default)]
pub(super) struct RunMetrics {
    runs: Mutex<BTreeMap<RunId, Executing>>,
}

impl Observer for RunMetrics {
    fn executing(&self, run: &Run) {
        let counted = run.start().parent.is_none();
        if counted {
            metrics::counter!(name::RUNS_BEGUN).increment(1);
            metrics::gauge!(name::RUNS_EXECUTING).increment(1.0);
        }
        self.runs().insert(
            run.id().clone(),
            Executing {
                counted,
                calls: Calls::new(),
            },
        );
    }

    fn left(&self, run: &RunId) {
        let Some(left) = self.runs().remove(run) else {
            return;
        };
        if left.counted {
            metrics::gauge!(name::RUNS_EXECUTING).decrement(1.0);
        }
        metrics::gauge!(name::CALLS_OPEN).decrement(f64::from(
            u32::try_from(left.calls.len()).unwrap_or(u32::MAX),
        ));
    }

    fn committed(&self, took: Duration) {
        metrics::histogram!(name::COMMITS).record(took);
    }

    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        use RunEvent as E;
        if let E::AttemptStarted {
            step,
            attempt,
            tool,
            ..
        } = &entry.event
        {
            metrics::gauge!(name::CALLS_OPEN).increment(1.0);
            if let Some(executing) = self.runs().get_mut(run.id()) {
                executing.calls.insert(
                    (step.clone(), *attempt),
                    (tool_label(&tool.to_string()), entry.at),
                );
            }
        }
        let ended = |step: &StepId, attempt: AttemptNo, outcome: &'static str| {
            self.call_ended(run.id(), (step.clone(), attempt), entry.at, outcome);
        };
        let state = match &entry.event {
            E::AttemptStarted { .. } => "started",
            E::AttemptSucceeded { step, attempt, .. } => {
                ended(step, *attempt, "ok");
                StepStatus::Completed.as_str()
            }
            E::AttemptFailed {
                step,
                attempt,
                retry_at,
                ..
            } => {
                ended(step, *attempt, StepStatus::Failed.as_str());
                if retry_at.is_some() {
                    StepStatus::RetryDue.as_str()
                } else {
                    StepStatus::Failed.as_str()
                }
            }
            E::AttemptInterrupted { step, attempt, .. } => {
                ended(step, *attempt, "lost");
                "interrupted"
            }
            E::AttemptCancelled { step, attempt } => {
                ended(step, *attempt, StepStatus::Cancelled.as_str());
                StepStatus::Cancelled.as_str()
            }
            E::OutcomeLost { step, attempt, .. } => {
                ended(step, *attempt, "lost");
                StepStatus::OutcomeUnknown.as_str()
            }
            E::InputRequested {
                step,
                attempt,
                held,
                ..
            } => {
                if let Some(attempt) = attempt.as_ref().filter(|_| !held) {
                    ended(step, *attempt, "asked");
                }
                StepStatus::AwaitingInput.as_str()
            }
            E::ChildParked { step, attempt, .. } => {
                ended(step, *attempt, "parked");
                "awaiting_child"
            }
            E::StepFailed { .. } => StepStatus::Failed.as_str(),
            E::StepSkipped { .. } => StepStatus::Skipped.as_str(),
            E::ApprovalRequested { .. } => StepStatus::AwaitingApproval.as_str(),
            E::ApprovalDenied { .. } => StepStatus::Denied.as_str(),
            E::StepUndone { .. } => StepStatus::Undone.as_str(),
            E::RunCompleted { .. } | E::RunFailed { .. } | E::RunCancelled { .. } => {
                if run.start().parent.is_none() {
                    metrics::counter!(name::RUNS_ENDED, "status" => run.status().as_str())
                        .increment(1);
                }
                return;
            }
            _ => return,
        };
        metrics::counter!(name::STEPS, "state" => state).increment(1);
    }
}

impl RunMetrics {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Executing>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call_ended(
        &self,
        run: &RunId,
        call: (StepId, AttemptNo),
        at: Timestamp,
        outcome: &'static str,
    ) {
        let begun = self
            .runs()
            .get_mut(run)
            .and_then(|executing| executing.calls.remove(&call));
        if let Some((tool, begun)) = begun {
            metrics::gauge!(name::CALLS_OPEN).decrement(1.0);
            let took = at.since(begun);
            metrics::histogram!(name::CALLS, "gen_ai_tool_name" => tool, "outcome" => outcome)
                .record(took);
        }
    }
}
