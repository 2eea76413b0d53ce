//! Plans that a model writes: for a goal, or again.

use crate::http::auth::{Caller, Trace};
use crate::http::body::{OptionalBody, PathId};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::{DiffResult, DiffShape, PlanStatusShape, PlanningLine};
use planwright_core::id::PlanId;
use planwright_core::principal::Principal;
use planwright_engine::{CreateError, CreateOrder, PlannerOptions, RegenerateOrder, WrittenPlan};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// A planner that takes longer is given up: no caller waits that long for an answer.
const PATIENCE: Duration = Duration::from_mins(15);

/// The most steps that are named at once.
const MAX_NAMED: usize = 1_000;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(regenerate_plan))
}

/// Has a plan written for a goal. A caller that goes away, or a service that stops, ends it.
pub(super) async fn create(
    http: &Http,
    goal: String,
    by: Principal,
    trace: &str,
) -> HttpResult<WrittenPlan> {
    let mut order = CreateOrder::new(goal, by);
    order.trace = trace.parse().ok();
    order.options = options(http);
    write_plan(http, order).await
}

/// Has a plan written as ordered.
pub(super) async fn write_plan(http: &Http, order: CreateOrder) -> HttpResult<WrittenPlan> {
    patiently(http.service.engine.planner().create(order)).await
}

fn options(http: &Http) -> PlannerOptions {
    PlannerOptions {
        cancelled: http.stop.child_token(),
        ..PlannerOptions::default()
    }
}

async fn patiently<T>(work: impl Future<Output = Result<T, CreateError>>) -> HttpResult<T> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Problem::of(
            ProblemCode::ModelTimedOut,
            "the model did not write a plan in time",
        )),
    }
}

/// What is to be written again, and what should be different.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct RegeneratePlan {
    /// Only these steps; the whole plan when absent.
    #[schema(max_items = 1_000)]
    steps: Vec<String>,
    #[schema(max_length = 10_000)]
    feedback: Option<String>,
    /// A configured model by name; the planner's own when absent.
    #[schema(max_length = 200)]
    model: Option<String>,
    /// Plan with tools outside the plan's `toolsRequired` too. Those that are used are added to it.
    any_tool: bool,
}

/// The next version, and what changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RegeneratedPlan {
    id: String,
    version: u32,
    #[schema(value_type = PlanStatusShape)]
    status: String,
    digest: String,
    /// Whether there is a new version. The same content again is none.
    changed: bool,
    #[schema(value_type = DiffShape)]
    diff: DiffResult,
    planning: PlanningLine,
    trace_id: String,
}

/// Has a model write a plan, or some of its steps, again: the result is its next version.
///
/// Open comments, rejections and requests for changes are told to the model. Steps that are not
/// named stay exactly as they are. A plan that lists its tools is written again with those only,
/// unless `anyTool` is said.
#[utoipa::path(post, path = "/plan/{id}/regenerate", operation_id = "regeneratePlan", tag = "versions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<RegeneratePlan>,
    responses(
        (status = 200, description = "The plan as it was written again.", body = RegeneratedPlan),
        (status = 502, description = "The model gave no valid plan.")),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn regenerate_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(RegeneratePlan {
        steps,
        feedback,
        model,
        any_tool,
    }): OptionalBody<RegeneratePlan>,
) -> HttpResult<Json<RegeneratedPlan>> {
    super::decisions::check_reason(feedback.as_deref().unwrap_or_default())?;
    if steps.len() > MAX_NAMED {
        return Err(Problem::bad_request(format!(
            "at most {MAX_NAMED} steps are named at once"
        )));
    }
    let before = super::load(&http, &id).await?;
    let order = RegenerateOrder {
        by: caller.principal,
        steps,
        feedback: feedback.filter(|text| !text.trim().is_empty()),
        any_tool,
        options: PlannerOptions {
            model,
            ..options(&http)
        },
    };
    let done = patiently(http.service.engine.planner().regenerate(&id, order)).await?;
    http.service.write_files(&id).await;
    let from = before.current().number;
    let current = done.review.current();
    Ok(Json(RegeneratedPlan {
        version: current.number,
        status: http
            .service
            .engine
            .plans()
            .status(&done.review)
            .await?
            .as_str()
            .to_owned(),
        digest: current.digest.to_string(),
        changed: current.number != from,
        diff: DiffResult::new(id.clone(), from, Some(current.number), done.diff),
        planning: PlanningLine::from(&done.planning),
        id: id.to_string(),
        trace_id: trace,
    }))
}
