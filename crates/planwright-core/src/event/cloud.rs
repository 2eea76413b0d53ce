//! The CloudEvents envelope, version 1.0.

use super::{EventName, PlanEvent};
use crate::id::PlanId;
use crate::status::StepStatus;
use crate::time::Timestamp;
use crate::trace::TraceParent;
use serde::Serialize;

/// An event in the envelope that other systems know how to route.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CloudEvent<'a> {
    specversion: &'static str,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    /// The step or the run it is about; absent when it is about the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    time: Timestamp,
    datacontenttype: &'static str,
    planid: &'a PlanId,
    seq: u64,
    traceparent: String,
    data: &'a PlanEvent,
}

impl<'a> CloudEvent<'a> {
    /// Wraps an event as a CloudEvent.
    pub fn new(event: &'a PlanEvent) -> Self {
        let id = format!("{}/{}", event.plan_id, event.seq);
        let run = event.run_id.as_ref().map(|run| format!("run/{run}"));
        let subject = match (&event.step, run) {
            (Some(step), Some(run)) => Some(format!("{run}/step/{}", step.id)),
            (Some(step), None) => Some(format!("step/{}", step.id)),
            (None, run) => run,
        };
        Self {
            specversion: "1.0",
            source: format!("/plan/{}", event.plan_id),
            kind: Self::kind(event.event, event.state()),
            subject,
            time: event.occurred_at,
            datacontenttype: "application/json",
            planid: &event.plan_id,
            seq: event.seq,
            traceparent: TraceParent::of_name(event.trace_id, &id).to_string(),
            id,
            data: event,
        }
    }

    /// The type of an event: its name, and for a step the state it is in.
    pub fn kind(name: EventName, state: Option<StepStatus>) -> String {
        match state {
            Some(state) => format!("dev.planwright.{name}.{state}.v1"),
            None => format!("dev.planwright.{name}.v1"),
        }
    }
}
