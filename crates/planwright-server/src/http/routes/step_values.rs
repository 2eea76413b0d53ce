//! What the steps of a run came to and were sent, whole: for what is too large for other answers.

use crate::http::auth::Caller;
use crate::http::body;
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use planwright_core::briefing::Briefing;
use planwright_core::id::{PlanId, split_instance};
use planwright_core::plan::{Document, StepIx};
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::{Run, StepState, StoredValue};
use planwright_engine::Candidate;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(get_value))
        .routes(routes!(get_arguments))
        .routes(routes!(get_step_briefing))
}

/// The plan, the run and the step in the path.
type Place = Path<(String, String, String)>;

async fn load_place(http: &Http, (plan, run): (&str, &str)) -> HttpResult<(Review, Run)> {
    let plan: PlanId = body::id(plan)?;
    let review = super::load(http, &plan).await?;
    let run = super::load_run(http, &review, Some(run)).await?;
    Ok((review, run))
}

/// Reads the value of a step, or of one element of it (`step[0]`), whole.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/steps/{step}/value", operation_id = "getStepValue", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), ("step" = String, Path, description = "The step.")),
    responses((status = 200, description = "The value.", body = serde_json::Value)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_value(
    State(http): State<Http>,
    caller: Caller,
    Path((plan, run, step)): Place,
) -> HttpResult<Response> {
    let (_, run) = load_place(&http, (&plan, &run)).await?;
    let unknown = || Problem::not_found(format!("plan `{plan}` has no step `{step}`"));
    let ix = run.find(&step).ok_or_else(unknown)?;
    let value = run.step(ix).value().cloned();
    let value = value.ok_or_else(|| Problem::not_found(format!("step `{step}` has no value")))?;
    send_stored(&http, &caller, &value).await
}

/// Reads what a step would send, if an approver is asked about it, or what its latest call was sent, whole.
///
/// Secrets stand there by name.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/steps/{step}/arguments", operation_id = "getStepArguments", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), ("step" = String, Path, description = "The step.")),
    responses((status = 200, description = "The arguments.", body = serde_json::Value)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_arguments(
    State(http): State<Http>,
    caller: Caller,
    Path((plan, run, step)): Place,
) -> HttpResult<Response> {
    let (review, run) = load_place(&http, (&plan, &run)).await?;
    let unknown = || Problem::not_found(format!("plan `{plan}` has no step `{step}`"));
    let ix = run.find(&step).ok_or_else(unknown)?;
    if let StepState::AwaitingApproval {
        call: Some(asked), ..
    } = run.step(ix)
    {
        return send_stored(&http, &caller, &asked.args).await;
    }
    let journals = http.service.engine.journals();
    let id = run.step_id(ix);
    let sent = journals.arguments_sent_by(run.id(), review, id).await?;
    let sent = sent.ok_or_else(|| {
        Problem::not_found(format!(
            "no call of step `{step}` is known to have been sent"
        ))
    })?;
    let text = serde_json::to_vec(&sent).unwrap_or_default();
    let held = http.limits.hold_answer(&caller, text.len())?;
    Ok(held.response(text).into_response())
}

/// Says what an approval of a step covers that waits before its arguments are resolved, with the steps of the plan it runs.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/steps/{step}/briefing", operation_id = "getStepBriefing", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), ("step" = String, Path, description = "The step.")),
    responses((status = 200, description = "What the step does.", body = ref("#/components/schemas/Briefing"))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_step_briefing(
    State(http): State<Http>,
    caller: Caller,
    Path((plan, run, step)): Place,
) -> HttpResult<Json<Briefing>> {
    let (_, run) = load_place(&http, (&plan, &run)).await?;
    let unknown = || Problem::not_found(format!("plan `{plan}` has no step `{step}`"));
    let ix = run.find(&step).ok_or_else(unknown)?;
    Ok(Json(
        brief_step(&http, (&run, ix), &caller.principal).await?,
    ))
}

/// Says what a step of a run does, as the run's plan has it and with its sub-plans as they are now.
pub(super) async fn brief_step(
    http: &Http,
    (run, ix): (&Run, StepIx),
    viewer: &Principal,
) -> HttpResult<Briefing> {
    let plans = http.service.engine.plans();
    let document = Document::clone(run.plan().document());
    let candidate = Candidate {
        digest: run.start().digest,
        ..plans.compile(document).await?
    };
    let version = run.start().version;
    let covered = plans
        .brief_candidate(&candidate, version, None, viewer)
        .await;
    // The elements of a loop are described with the step that has it.
    let step = run.step_id(ix).as_str();
    let step = split_instance(step).map_or(step, |(step, _)| step);
    Ok(covered.only_step(step))
}

/// Sends a value from where it is kept, without reading it into anything else.
async fn send_stored(http: &Http, caller: &Caller, stored: &StoredValue) -> HttpResult<Response> {
    match stored {
        StoredValue::Inline(value) => {
            Ok(([(CONTENT_TYPE, "application/json")], value.to_string()).into_response())
        }
        StoredValue::Artifact(artifact) => {
            let bytes = usize::try_from(artifact.bytes).unwrap_or(usize::MAX);
            let held = http.limits.hold_answer(caller, bytes)?;
            let journals = http.service.engine.journals();
            Ok(held.response(journals.read_artifact(artifact).await?))
        }
    }
}
