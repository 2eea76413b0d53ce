//! What a listener is told that has to begin anew: where everything stands.

use super::hub::Hub;
use planwright_core::id::PlanId;
use planwright_engine::LoadError;
use serde_json::{Value, json};

/// Why a listener has to begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It missed more than is sent again.
    TooOld,
    /// It names an event that never was.
    UnknownId,
}

impl Reason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TooOld => "too_old",
            Self::UnknownId => "unknown_id",
        }
    }
}

/// Returns where a plan and its latest run stand. Events after `last` may tell again what is in it.
pub(super) async fn snapshot(
    hub: &Hub,
    plan: &PlanId,
    last: u64,
    reason: Reason,
) -> Result<Value, LoadError> {
    let engine = &hub.engine;
    let (review, _) = engine.plans().load_review(plan).await?;
    let status = engine.plans().status(&review).await?;
    let run = match review.runs().last() {
        Some(opened) => Some(engine.runs().load_run(&opened.run, &review).await?.0),
        None => None,
    };
    let steps = run.as_ref().map(|run| {
        let ids = run
            .plan()
            .indices()
            .map(|ix| (run.step_id(ix), run.step(ix).status()));
        ids.map(|(id, state)| json!({ "id": id, "state": state }))
            .collect::<Vec<_>>()
    });
    Ok(json!({
        "event": "reset",
        "reason": reason.as_str(),
        "planId": plan,
        "seq": last,
        "status": status.as_str(),
        "version": review.current().number,
        "runId": run.as_ref().map(|run| run.id()),
        "steps": steps,
    }))
}
