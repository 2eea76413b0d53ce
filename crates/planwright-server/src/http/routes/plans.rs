//! Plans: proposing, listing and looking at them.

use crate::http::body::{JsonBytes, PathId, json};
use crate::http::caller::Caller;
use crate::http::problem::{Answer, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use crate::http::trace::TraceId;
use crate::wire::{Created, CreatedPlan};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document};
use planwright_core::review::ReviewState;
use planwright_engine::LoadError;
use serde_json::Value;
use utoipa_axum::routes;

/// The most characters of a goal.
const MAX_GOAL: usize = 10_000;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(create_plan))
}

/// Proposes a plan.
#[utoipa::path(post, path = "/plan", operation_id = "createPlan", tag = "plans",
    request_body = Object,
    responses((status = 201, body = Created)),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn create_plan(
    State(http): State<Http>,
    caller: Caller,
    trace: TraceId,
    JsonBytes(bytes): JsonBytes,
) -> Answer<Response> {
    let value = json(&bytes)?;
    check_goal(&value)?;
    let mut document = Document::from_json(value, &Bounds::untrusted())?;
    let engine = &http.service.engine;
    match &document.id {
        Some(id) => refuse_known(&http, id).await?,
        None => document.id = Some(PlanId::mint(engine.environment().ids.entropy())),
    }
    let (review, _) = engine.propose(document, &caller.principal).await?;
    http.service.write_files(review.id()).await;
    let (id, current) = (review.id().to_string(), review.current());
    let status = engine.status(&review).await?;
    let location = format!("/plan/{id}");
    let plan = CreatedPlan::new(
        &current.document,
        (id, status.as_str()),
        current.number,
        current.digest.to_string(),
    );
    let created = Created { plan, trace_id: trace.to_string() };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(created)).into_response())
}

/// A goal says something, and not too much.
fn check_goal(value: &Value) -> Result<(), Problem> {
    match value.get("goal") {
        None => Ok(()),
        Some(Value::String(goal)) if goal.trim().is_empty() => Err(Problem::bad_request("the goal is empty")),
        Some(Value::String(goal)) if goal.chars().count() > MAX_GOAL => {
            Err(Problem::bad_request(format!("the goal has more than {MAX_GOAL} characters")))
        }
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(Problem::bad_request("the goal has to be a text")),
    }
}

/// A plan that exists is edited, not proposed again.
async fn refuse_known(http: &Http, id: &PlanId) -> Result<(), Problem> {
    match http.service.engine.load_review(id).await {
        Ok((review, _)) if review.state() == ReviewState::Deleted => Ok(()),
        Ok(_) => Err(Problem::conflict(format!("there is a plan `{id}` already"))
            .hint(format!("PATCH /plan/{id} makes a new version of it"))),
        Err(LoadError::NoSuchPlan(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[expect(dead_code, reason = "the next routes read it")]
type OnePlan = PathId<PlanId>;
