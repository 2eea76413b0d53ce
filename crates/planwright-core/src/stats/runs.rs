//! Counts one run for the statistics.

use super::ModelCosts;
use crate::id::StepId;
use crate::journal::Entry;
use crate::model::Cost;
use crate::run::{CallFate, RunEvent};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Counters of one run while its journal is read. Handed over to [`Statistics`](super::Statistics)
/// at its end.
#[derive(Debug, Clone, Default)]
pub struct RunTally {
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) completed: bool,
    /// The time in which nothing was in flight because a person was asked, or had paused it.
    pub(super) waited: Duration,
    /// Answers to calls.
    pub(super) calls: Vec<EndedCall>,
    pub(super) approvals: u64,
    pub(super) denials: u64,
    /// Calls that an executor or a client wanted and that were not made.
    pub(super) refused: u64,
    /// Calls of clients that would not have been made, had the gateway been told to enforce.
    pub(super) let_through: u64,
    /// Use of models.
    pub(super) models: ModelCosts,
    /// Number of reflections on it.
    pub(super) reflections: u64,
    /// Its plan was adjusted.
    pub(super) adjusted: bool,
    in_flight: BTreeMap<StepId, CallInFlight>,
    /// What models were paid for steps that have no answer yet, over all their attempts.
    costs: BTreeMap<StepId, Cost>,
    asked: BTreeSet<StepId>,
    stopped: bool,
    last_at: Option<Timestamp>,
}

/// A call that was answered.
#[derive(Debug, Clone)]
pub(super) struct EndedCall {
    pub(super) tool: String,
    pub(super) took: Duration,
    pub(super) succeeded: bool,
    /// What models were paid for it, as far as their prices are known.
    pub(super) cost: Option<Cost>,
}

#[derive(Debug, Clone)]
struct CallInFlight {
    tool: String,
    started_at: Timestamp,
}

impl RunTally {
    /// Calls are handed over in portions, so that a long run needs no more memory than a short one.
    pub const PORTION: usize = 1000;

    /// Returns whether a portion of calls should be handed over.
    pub fn is_full(&self) -> bool {
        self.calls.len() >= Self::PORTION
    }

    /// Counts one entry of the run's journal.
    pub fn record(&mut self, entry: &Entry<RunEvent>) {
        use RunEvent as E;
        self.advance_to(entry.at);
        match &entry.event {
            E::ModelUsed { step, used } => {
                self.models.record(used);
                if let (Some(step), Some(cost)) = (step, used.cost) {
                    *self.costs.entry(step.clone()).or_default() += cost;
                }
            }
            E::RunReflected { .. } => self.reflections += 1,
            E::CriteriaChecked { used, .. } => {
                used.iter().for_each(|used| self.models.record(used));
            }
            E::RunStarted { .. } => self.started_at = Some(entry.at),
            E::AttemptStarted { step, tool, .. } => {
                let call = CallInFlight {
                    tool: tool.to_string(),
                    started_at: entry.at,
                };
                self.in_flight.insert(step.clone(), call);
            }
            E::AttemptSucceeded { step, .. } => self.end_call(step, entry.at, Some(true)),
            E::AttemptFailed { step, .. } => {
                self.asked.remove(step);
                self.end_call(step, entry.at, Some(false));
            }
            E::AttemptInterrupted { step, .. }
            | E::AttemptCancelled { step, .. }
            | E::ChildParked { step, .. } => self.end_call(step, entry.at, None),
            E::OutcomeLost { step, .. } => {
                self.end_call(step, entry.at, None);
                self.asked.insert(step.clone());
            }
            E::InputRequested { step, held, .. } => {
                if !held {
                    self.end_call(step, entry.at, None);
                }
                self.asked.insert(step.clone());
            }
            E::ApprovalRequested { step, .. } => {
                self.asked.insert(step.clone());
            }
            E::ApprovalGranted { step, .. } => {
                self.approvals += 1;
                self.asked.remove(step);
            }
            E::ApprovalDenied { step, .. } => {
                self.denials += 1;
                self.asked.remove(step);
            }
            E::InputGiven { step, .. }
            | E::OutcomeResolved { step, .. }
            | E::StepFailed { step, .. } => {
                self.asked.remove(step);
            }
            E::RunPaused { .. } | E::RunStalled { .. } => self.stopped = true,
            E::RunResumed { .. } => self.stopped = false,
            E::RunCompleted { failures, .. } => {
                self.completed = *failures == 0;
                self.ended_at = Some(entry.at);
            }
            E::RunFailed { .. } | E::RunCancelled { .. } | E::RunGivenUp { .. } => {
                self.ended_at = Some(entry.at);
            }
            E::RunAdjusted { .. } => {
                self.adjusted = true;
                self.ended_at = Some(entry.at);
            }
            E::AgentTurn { calls, .. } => {
                for call in calls {
                    self.refused += u64::from(matches!(call.fate, CallFate::Refused(_)));
                    self.let_through += u64::from(call.let_through.is_some());
                }
            }
            E::ResultReused { .. }
            | E::RunQueued { .. }
            | E::StepIsolated { .. }
            | E::IsolationEnded { .. }
            | E::ChildResumed { .. }
            | E::StepSkipped { .. }
            | E::LoopOpened { .. }
            | E::LoopClosed { .. }
            | E::CancelRequested { .. }
            | E::UndoOpened { .. }
            | E::StepUndone { .. } => {}
        }
    }

    /// Returns whether the run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Returns the duration of the run without the time in which it waited for people.
    pub(super) fn active_duration(&self) -> Option<Duration> {
        let took = self.ended_at?.since(self.started_at?);
        Some(took.saturating_sub(self.waited))
    }

    fn advance_to(&mut self, at: Timestamp) {
        let waits = self.in_flight.is_empty() && (self.stopped || !self.asked.is_empty());
        if let Some(last) = self.last_at.filter(|_| waits) {
            self.waited = self.waited.saturating_add(at.since(last));
        }
        self.last_at = Some(at);
    }

    fn end_call(&mut self, step: &StepId, at: Timestamp, succeeded: Option<bool>) {
        let Some(call) = self.in_flight.remove(step) else {
            return;
        };
        if let Some(succeeded) = succeeded {
            self.calls.push(EndedCall {
                tool: call.tool,
                took: at.since(call.started_at),
                succeeded,
                cost: self.costs.remove(step),
            });
        }
    }
}
