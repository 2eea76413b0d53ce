//! What the steps of a run came to and were sent, whole: for what is too large for other answers.

use crate::http::auth::Caller;
use crate::http::body::{self, Params};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::ranges::wanted_range;
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use planwright_core::briefing::Briefing;
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, split_instance};
use planwright_core::plan::{Document, StepIx};
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::{Run, StepState, StoredValue};
use planwright_engine::Candidate;
use planwright_engine::port::ArtifactRef;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(get_value))
        .routes(routes!(get_arguments))
        .routes(routes!(get_step_briefing))
        .routes(routes!(get_artifact))
}

/// The plan, the run and the step in the path.
type Place = Path<(String, String, String)>;

pub(super) async fn load_place(
    http: &Http,
    (plan, run): (&str, &str),
) -> HttpResult<(Review, Run)> {
    let plan: PlanId = body::id(plan)?;
    let review = super::load(http, &plan).await?;
    let run = super::load_run(http, &review, Some(run)).await?;
    Ok((review, run))
}

/// Reads the value of a step, or of one element of it (`step[0]`), whole.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/steps/{step}/value", operation_id = "getStepValue", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), ("step" = String, Path, description = "The step.")),
    responses((status = 200, description = "The value.", body = serde_json::Value),
        (status = 206, description = "The part of it that the header `Range` asks for.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_value(
    State(http): State<Http>,
    caller: Caller,
    Path((plan, run, step)): Place,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let (_, run) = load_place(&http, (&plan, &run)).await?;
    let unknown = || {
        Problem::of(
            ProblemCode::UnknownStep,
            format!("plan `{plan}` has no step `{step}`"),
        )
    };
    let ix = run.find(&step).ok_or_else(unknown)?;
    let value = run.step(ix).value().cloned();
    let value = value
        .ok_or_else(|| Problem::of(ProblemCode::NoValue, format!("step `{step}` has no value")))?;
    send_stored(&http, &caller, &value, &headers).await
}

/// How a value is sent.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DownloadParams {
    /// Has browsers keep it as a file.
    #[serde(default)]
    download: bool,
}

/// Reads a large value of a run by its digest, whole or in part.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/artifacts/{digest}", operation_id = "getArtifact", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."),
        ("digest" = String, Path, description = "The digest, as `sha256:…`."), DownloadParams,
        ("Range" = Option<String>, Header, description = "Only these bytes, as `bytes=0-65535`.")),
    responses((status = 200, description = "The value, or the bytes of a picture or a file within one.",
            content((serde_json::Value = "application/json"), (String = "application/octet-stream"))),
        (status = 206, description = "The part of it that the header `Range` asks for.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_artifact(
    State(http): State<Http>,
    caller: Caller,
    Path((plan, run, digest)): Place,
    Params(DownloadParams { download }): Params<DownloadParams>,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let (_, run) = load_place(&http, (&plan, &run)).await?;
    let wanted: Digest = body::id(&digest)?;
    let is_wanted = |value: &&StoredValue| match value {
        StoredValue::Artifact(artifact) => artifact.digest == wanted,
        StoredValue::Inline(_) => false,
    };
    // Only what belongs to the run is served: a digest is no key to the rest of the store.
    let value = run.stored_values().find(is_wanted).cloned();
    let unknown = || {
        Problem::of(
            ProblemCode::NoValue,
            format!("run `{}` has no value `{wanted}`", run.id()),
        )
    };
    let Some(value) = value else {
        let part = find_part(&run, &wanted).ok_or_else(unknown)?;
        return send_part(&http, &caller, &part).await;
    };
    let mut response = send_stored(&http, &caller, &value, &headers).await?;
    if download {
        let name = format!("attachment; filename=\"{}.json\"", digest.replace(':', "-"));
        if let Ok(name) = HeaderValue::try_from(name) {
            response.headers_mut().insert(CONTENT_DISPOSITION, name);
        }
    }
    Ok(response)
}

/// Finds the bytes of a picture, a sound or a file that a tool returned within a value: `{"artifact": …, "bytes": …}`.
fn find_part(run: &Run, wanted: &Digest) -> Option<ArtifactRef> {
    let digest = wanted.to_string();
    let mut values = run.stored_values().filter_map(|value| match value {
        StoredValue::Inline(value) => Some(value),
        StoredValue::Artifact(_) => None,
    });
    let bytes = values.find_map(|value| bytes_of_part(value, &digest))?;
    Some(ArtifactRef {
        digest: *wanted,
        bytes,
    })
}

fn bytes_of_part(value: &Value, digest: &str) -> Option<u64> {
    match value {
        Value::Object(fields) => {
            let named = fields.get("artifact").is_some_and(|part| part == digest);
            // A value names its first artifact too; how large that is stands with the block.
            let own = fields
                .get("bytes")
                .filter(|_| named)
                .and_then(Value::as_u64);
            let mut within = fields.values();
            own.or_else(|| within.find_map(|value| bytes_of_part(value, digest)))
        }
        Value::Array(items) => items.iter().find_map(|value| bytes_of_part(value, digest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Sends bytes of which only their maker says what they are: they are never shown by a browser on its own.
async fn send_part(http: &Http, caller: &Caller, part: &ArtifactRef) -> HttpResult<Response> {
    let length = usize::try_from(part.bytes).unwrap_or(usize::MAX);
    let held = http.limits.hold_answer(caller, length)?;
    let bytes = http.service.engine.journals().read_artifact(part).await?;
    let mut response = held.response(bytes).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, kind);
    let disposition = HeaderValue::from_static("attachment");
    headers.insert(CONTENT_DISPOSITION, disposition);
    Ok(response)
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
    let unknown = || {
        Problem::of(
            ProblemCode::UnknownStep,
            format!("plan `{plan}` has no step `{step}`"),
        )
    };
    let ix = run.find(&step).ok_or_else(unknown)?;
    if let StepState::AwaitingApproval {
        call: Some(asked), ..
    } = run.step(ix)
    {
        return send_stored(&http, &caller, &asked.args, &HeaderMap::new()).await;
    }
    let journals = http.service.engine.journals();
    let id = run.step_id(ix);
    let sent = journals.arguments_sent_by(run.id(), review, id).await?;
    let sent = sent.ok_or_else(|| {
        Problem::of(
            ProblemCode::NothingSent,
            format!("no call of step `{step}` is known to have been sent"),
        )
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
    let unknown = || {
        Problem::of(
            ProblemCode::UnknownStep,
            format!("plan `{plan}` has no step `{step}`"),
        )
    };
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
    let engine = &http.service.engine;
    let document = Document::clone(run.plan().document());
    let candidate = Candidate {
        digest: run.start().digest,
        ..engine.plans().compile(document).await?
    };
    let version = run.start().version;
    let covered = engine
        .briefings()
        .brief_candidate(&candidate, version, None, viewer)
        .await;
    // The elements of a loop are described with the step that has it.
    let step = run.step_id(ix).as_str();
    let step = split_instance(step).map_or(step, |(step, _)| step);
    Ok(covered.only_step(step))
}

/// Sends a value, or the part of it that is asked for, from where it is kept, without reading it into
/// anything else.
async fn send_stored(
    http: &Http,
    caller: &Caller,
    stored: &StoredValue,
    headers: &HeaderMap,
) -> HttpResult<Response> {
    let bytes = match stored {
        StoredValue::Inline(value) => value.to_string().into_bytes(),
        StoredValue::Artifact(artifact) => {
            let length = usize::try_from(artifact.bytes).unwrap_or(usize::MAX);
            let range = wanted_range(headers, length)?;
            let held = http.limits.hold_answer(caller, length)?;
            let journals = http.service.engine.journals();
            let bytes = journals.read_artifact(artifact).await?;
            let Some(range) = range else {
                return Ok(accept_ranges(held.response(bytes)));
            };
            // The bytes that are not sent are let go of at once.
            drop(held);
            return Ok(partial_response(&bytes, range));
        }
    };
    match wanted_range(headers, bytes.len())? {
        Some(range) => Ok(partial_response(&bytes, range)),
        None => {
            let response = ([(CONTENT_TYPE, "application/json")], bytes).into_response();
            Ok(accept_ranges(response))
        }
    }
}

fn accept_ranges(mut response: Response) -> Response {
    let bytes = HeaderValue::from_static("bytes");
    response.headers_mut().insert(ACCEPT_RANGES, bytes);
    response
}

fn partial_response(bytes: &[u8], range: Range<usize>) -> Response {
    let last = range.end.saturating_sub(1);
    let place = format!("bytes {}-{last}/{}", range.start, bytes.len());
    let part = bytes.get(range).unwrap_or_default().to_vec();
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CONTENT_RANGE, place),
    ];
    accept_ranges((StatusCode::PARTIAL_CONTENT, headers, part).into_response())
}
