//! One public event.

use super::{ErrorSummary, EventName, ResultSummary, StepDetails};
use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::principal::Principal;
use crate::status::StepStatus;
use crate::time::Timestamp;
use crate::trace::TraceId;
use serde::Serialize;

/// Something that happened to a plan, as other programs are told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanEvent {
    /// The event.
    pub event: EventName,
    /// The name that earlier systems have for it, if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<&'static str>,
    /// The trace of the order that led to it.
    pub trace_id: TraceId,
    /// The plan.
    pub plan_id: PlanId,
    /// The step it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepDetails>,
    /// The time at which it was written down.
    pub occurred_at: Timestamp,
    /// The run it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The attempt of the step, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The result of the step, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultSummary>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorSummary>,
    /// The version it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The digest of what was approved, proposed or run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The principal who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The reason, in the words of the principal who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One line for people.
    pub summary: String,
    /// The number of the event among those of its plan.
    pub seq: u64,
}

impl PlanEvent {
    /// The state of the step it is about.
    pub fn state(&self) -> Option<StepStatus> {
        self.step.as_ref().map(|step| step.state)
    }
}
