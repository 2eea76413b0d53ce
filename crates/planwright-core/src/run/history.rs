//! The history of the steps of a run, with times: read from its journal, entry by entry.

use super::{RunEvent, StepError};
use crate::id::{AttemptNo, StepId};
use crate::journal::Entry;
use crate::stats::ModelCosts;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// One call of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptHistory {
    /// Counted from 1.
    pub attempt: AttemptNo,
    /// The tool that was called.
    pub tool: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it came back, or was given up.
    pub ended_at: Option<Timestamp>,
    /// The outcome of it, so far.
    pub outcome: AttemptOutcome,
    /// The error it came back with.
    pub error: Option<StepError>,
    /// Why its outcome is not known, in words for people.
    pub reason: Option<String>,
    /// When it is tried again.
    pub retry_at: Option<Timestamp>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It has not come back.
    Running,
    /// It came back with a value.
    Succeeded,
    /// It came back with an error, or took too long.
    Failed,
    /// It was stopped with the process, and is made again.
    Interrupted,
    /// It was stopped on request.
    Cancelled,
    /// Its outcome was lost.
    Unknown,
}

impl AttemptOutcome {
    /// Returns the word for it in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// The history of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepHistory {
    /// Its calls, the first one first.
    pub attempts: Vec<AttemptHistory>,
    /// When its first call began.
    pub started_at: Option<Timestamp>,
    /// When its latest call came back.
    pub ended_at: Option<Timestamp>,
    /// Use of models.
    pub models: ModelCosts,
}

/// The histories of the steps of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepHistories(BTreeMap<StepId, StepHistory>);

impl StepHistories {
    /// The most calls of one step that are kept: the latest.
    pub const MAX_ATTEMPTS: usize = 1_000;

    /// Returns what happened to a step, or to an element of one.
    pub fn get(&self, step: &StepId) -> Option<&StepHistory> {
        self.0.get(step)
    }

    /// Takes the next entry of the run's journal.
    pub fn record(&mut self, entry: &Entry<RunEvent>) {
        use AttemptOutcome as O;
        if let RunEvent::ModelUsed {
            step: Some(step),
            used,
        } = &entry.event
        {
            self.of(step).models.record(used);
        } else if let RunEvent::AttemptStarted {
            step,
            attempt,
            tool,
            ..
        } = &entry.event
        {
            self.of(step).begin(*attempt, tool.to_string(), entry.at);
        } else if let RunEvent::AttemptSucceeded { step, .. } = &entry.event {
            self.of(step).end(entry.at, O::Succeeded);
        } else if let RunEvent::AttemptFailed {
            step,
            error,
            retry_at,
            ..
        } = &entry.event
        {
            if let Some(call) = self.of(step).end(entry.at, O::Failed) {
                call.error = Some(error.clone());
                call.retry_at = *retry_at;
            }
        } else if let RunEvent::AttemptInterrupted { step, reason, .. } = &entry.event {
            if let Some(call) = self.of(step).end(entry.at, O::Interrupted) {
                call.reason = Some(reason.clone());
            }
        } else if let RunEvent::AttemptCancelled { step, .. } = &entry.event {
            self.of(step).end(entry.at, O::Cancelled);
        } else if let RunEvent::OutcomeLost { step, reason, .. } = &entry.event
            && let Some(call) = self.of(step).end(entry.at, O::Unknown)
        {
            call.reason = Some(reason.clone());
        }
    }

    fn of(&mut self, step: &StepId) -> &mut StepHistory {
        self.0.entry(step.clone()).or_default()
    }
}

impl StepHistory {
    fn begin(&mut self, attempt: AttemptNo, tool: String, at: Timestamp) {
        if self.attempts.len() >= StepHistories::MAX_ATTEMPTS {
            self.attempts.remove(0);
        }
        self.started_at.get_or_insert(at);
        self.ended_at = None;
        self.attempts.push(AttemptHistory {
            attempt,
            tool,
            started_at: at,
            ended_at: None,
            outcome: AttemptOutcome::Running,
            error: None,
            reason: None,
            retry_at: None,
        });
    }

    fn end(&mut self, at: Timestamp, outcome: AttemptOutcome) -> Option<&mut AttemptHistory> {
        self.ended_at = Some(at);
        let call = self.attempts.last_mut()?;
        call.ended_at = Some(at);
        call.outcome = outcome;
        Some(call)
    }
}
