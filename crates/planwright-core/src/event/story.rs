//! An event while it is being told.

use super::{ErrorSummary, EventName, PlanEvent, ResultSummary, StepDetails};
use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::trace::TraceId;

/// An event before it has its place.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) name: EventName,
    pub(super) summary: String,
    pub(super) step: Option<StepDetails>,
    pub(super) attempt: Option<u32>,
    pub(super) result: Option<ResultSummary>,
    pub(super) error: Option<ErrorSummary>,
    pub(super) version: Option<u32>,
    pub(super) digest: Option<Digest>,
    pub(super) by: Option<Principal>,
    pub(super) reason: Option<String>,
}

impl Story {
    pub(super) fn new(name: EventName, summary: impl Into<String>) -> Self {
        Self {
            name,
            summary: summary.into(),
            step: None,
            attempt: None,
            result: None,
            error: None,
            version: None,
            digest: None,
            by: None,
            reason: None,
        }
    }

    pub(super) fn by(self, by: &Principal) -> Self {
        Self {
            by: Some(by.clone()),
            ..self
        }
    }

    pub(super) fn into_event(
        self,
        plan_id: PlanId,
        run_id: Option<RunId>,
        trace_id: TraceId,
        occurred_at: Timestamp,
        seq: u64,
    ) -> PlanEvent {
        let Self {
            name,
            summary,
            step,
            attempt,
            result,
            error,
            version,
            digest,
            by,
            reason,
        } = self;
        PlanEvent {
            event: name,
            alias: name.alias(step.as_ref().map(|step| step.state)),
            trace_id,
            plan_id,
            step,
            occurred_at,
            run_id,
            attempt,
            result,
            error,
            version,
            digest,
            by,
            reason,
            summary,
            seq,
        }
    }
}
