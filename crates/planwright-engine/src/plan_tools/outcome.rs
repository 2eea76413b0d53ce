//! The results of plan tools: JSON objects, bounded, that say what came of the call.

use super::Problem;
use crate::context::Context;
use crate::journal::stored_value::read_value;
use crate::run::read_outputs;
use planwright_core::digest::Digest;
use planwright_core::review::Review;
use planwright_core::run::{Run, RunReport, StoredValue};
use planwright_core::status::StepStatus;
use serde_json::{Map, Value, json};

/// The most bytes of one step's value in a result.
const MAX_VALUE: usize = 16 << 10;
/// The most bytes of all values together.
const MAX_VALUES: usize = 128 << 10;

pub(super) fn failure_value(problem: &Problem) -> Value {
    let mut result = json!({ "success": false, "error": problem.message });
    if let Some(plan) = &problem.plan {
        result["planId"] = json!(plan);
    }
    if !problem.findings.is_empty() {
        result["findings"] = json!(problem.findings);
    }
    result
}

/// The plan that was proposed.
pub(super) fn created_value(review: &Review) -> Value {
    let document = &review.current().document;
    let step = |step: &planwright_core::plan::Step| {
        json!({
            "id": step.id, "title": step.title, "tool": step.action_label(), "dependsOn": step.depends_on,
        })
    };
    json!({
        "success": true,
        "planId": review.id(),
        "title": document.title,
        "status": review.state().status(),
        "steps": document.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

/// The result of a plan that a person has to agree to first, and no person did.
pub(super) fn pending(review: &Review, digest: &Digest, refused: bool) -> Value {
    let id = review.id();
    let (status, error) = match refused {
        true => ("not_approved", "the person did not agree to the plan"),
        false => (
            "pending_approval",
            "a person has to agree to the plan before it runs",
        ),
    };
    let mut result = created_value(review);
    result["success"] = json!(false);
    result["status"] = json!(status);
    result["error"] = json!(error);
    result["digest"] = json!(digest);
    result["review"] = json!(format!(
        "planwright show {id}, then planwright approve {id} --digest {digest}"
    ));
    result
}

/// Describes what a run came to so far.
pub(super) async fn executed_value(context: &Context, run: &Run) -> Value {
    let report = RunReport::new(run, context.ports.clock.now());
    let title = run.plan().document().title.clone();
    let mut result = json!({
        "success": report.success,
        "planId": report.plan,
        "runId": report.run,
        "title": title,
        "status": report.status,
        "duration": report.duration.as_secs_f64(),
        "stepsCompleted": run.schedule().completed_steps(),
        "stepsTotal": report.steps.len(),
        "results": results(context, run).await,
    });
    if let Ok(Some(outputs)) = read_outputs(run, &*context.ports.artifacts, MAX_VALUES).await {
        let problems: Vec<String> = outputs.problems.iter().map(ToString::to_string).collect();
        result["outputs"] = Value::Object(outputs.values);
        if !problems.is_empty() {
            result["outputProblems"] = json!(problems);
        }
    }
    if let Some(error) = why(&report) {
        result["error"] = json!(error);
    }
    if !run.state().is_terminal() {
        result["review"] = json!(format!(
            "planwright show {0}, then planwright resume {0}",
            report.plan
        ));
    }
    result
}

/// The first step that stands in the way of success, in words.
fn why(report: &RunReport) -> Option<String> {
    if report.success {
        return None;
    }
    let step = report.steps.iter().find(|step| {
        matches!(
            step.status,
            StepStatus::Failed | StepStatus::Denied | StepStatus::OutcomeUnknown
        )
    });
    let waits = || {
        report.steps.iter().find(|step| {
            matches!(
                step.status,
                StepStatus::AwaitingApproval | StepStatus::AwaitingInput | StepStatus::AwaitingPlan
            )
        })
    };
    Some(match step.or_else(waits) {
        Some(step) => match &step.error {
            Some(error) => format!(
                "step `{}` {}: {}: {}",
                step.id, step.status, error.code, error.message
            ),
            None => format!(
                "step `{}` is {}",
                step.id,
                step.status.as_str().replace('_', " ")
            ),
        },
        None => format!("the run is {}", report.status),
    })
}

/// The values of the steps by result name, else by id, as far as they fit.
async fn results(context: &Context, run: &Run) -> Map<String, Value> {
    let plan = run.plan();
    let mut results = Map::new();
    let mut left = MAX_VALUES;
    for &ix in plan.graph().order() {
        let Some(stored) = run.step(ix).value() else {
            continue;
        };
        let name = plan
            .step(ix)
            .result
            .clone()
            .unwrap_or_else(|| plan.step_id(ix).to_string());
        let (value, bytes) = fitting(context, stored, left.min(MAX_VALUE)).await;
        left = left.saturating_sub(bytes);
        results.insert(name, value);
    }
    results
}

/// The value, or how large it is if that is more than fits.
async fn fitting(context: &Context, stored: &StoredValue, room: usize) -> (Value, usize) {
    let large = |bytes: u64| (json!({ "omitted": format!("{bytes} bytes") }), 0);
    if let StoredValue::Artifact(artifact) = stored
        && artifact.bytes > room as u64
    {
        return large(artifact.bytes);
    }
    match read_value(&*context.ports.artifacts, stored).await {
        Ok(value) => match value.to_string().len() {
            bytes if bytes <= room => (value, bytes),
            bytes => large(bytes as u64),
        },
        Err(error) => (json!({ "omitted": error.to_string() }), 0),
    }
}
