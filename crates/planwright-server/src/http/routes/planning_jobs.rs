//! Plans that are written in the background: ordered, followed, cancelled.

use crate::events::{Wanted, full, job_stream, negotiate_format};
use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBody, PathId};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use planwright_api::PlanningJob;
use planwright_core::model::ModelRole;
use planwright_core::policy::Permission;
use planwright_engine::{CreateOrder, PlannerOptions};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(order_plan))
        .routes(routes!(get_order, cancel_order))
        .routes(routes!(order_events))
}

/// What the plan is for, and how it is written.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "goal": "Ship the next milestone" }))]
struct OrderPlan {
    #[schema(min_length = 1, max_length = 10_000, pattern = "\\S")]
    goal: String,
    /// A configured model by name; the planner's own when absent.
    #[serde(default)]
    #[schema(max_length = 200)]
    model: Option<String>,
    /// Keep it as a draft instead of putting it forward.
    #[serde(default)]
    draft: bool,
}

/// Has the configured model write a plan in the background.
///
/// The order can be looked at, followed and cancelled until the service stops. The plan is stored when it is written.
#[utoipa::path(post, path = "/planning", operation_id = "orderPlan", tag = "planning",
    request_body = OrderPlan,
    responses((status = 202, description = "The plan is being written.", body = PlanningJob,
        headers(("Location" = String, description = "Where the order is.")))),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn order_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    JsonBody(OrderPlan { goal, model, draft }): JsonBody<OrderPlan>,
) -> HttpResult<Response> {
    super::patching::check_goal(&serde_json::json!({ "goal": goal }))?;
    let engine = &http.service.engine;
    engine
        .model()
        .resolve(ModelRole::Planner, model.as_deref())?;
    let taken = http
        .planning_jobs
        .take(engine, (&caller.principal, &goal), &http.stop)?;
    let mut order = CreateOrder::new(goal, caller.principal);
    order.draft = draft;
    order.trace = trace.parse().ok();
    order.options = PlannerOptions {
        model,
        told: taken.told.sink(),
        cancelled: taken.cancel.clone(),
        ..PlannerOptions::default()
    };
    http.share_planning(&taken, &order.by).await;
    let place = [(LOCATION, format!("/planning/{}", taken.id))];
    let answer = (StatusCode::ACCEPTED, place, Json(taken.told.document())).into_response();
    let writer = http.clone();
    tokio::spawn(async move {
        let written = super::planner::write_plan(&writer, order).await;
        let ended = match written {
            Ok(plan) => {
                writer.service.write_files(plan.review.id()).await;
                Ok(plan.review.id().to_string())
            }
            Err(problem) => Err(problem),
        };
        taken.told.end(ended, taken.cancel.is_cancelled());
    });
    Ok(answer)
}

/// Says how far an order is: what the model was asked and answered, and the plan once it is written.
#[utoipa::path(get, path = "/planning/{order}", operation_id = "getOrder", tag = "planning",
    params(("order" = String, Path, description = "The order.")),
    responses((status = 200, description = "The order.", body = PlanningJob)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_order(
    State(http): State<Http>,
    PathId(order): PathId<String>,
) -> HttpResult<Json<PlanningJob>> {
    if let Some(told) = http.planning_jobs.find(&order) {
        return Ok(Json(told.document()));
    }
    Ok(Json(http.find_job_elsewhere(&order).await?.job))
}

/// Cancels an order. One that is over stays as it is.
#[utoipa::path(delete, path = "/planning/{order}", operation_id = "cancelOrder", tag = "planning",
    params(("order" = String, Path, description = "The order.")),
    responses((status = 202, description = "It is being cancelled.")),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn cancel_order(
    State(http): State<Http>,
    caller: Caller,
    PathId(order): PathId<String>,
) -> HttpResult<StatusCode> {
    let is_admin = caller.role.includes(Permission::Administer);
    let here = http.planning_jobs.find_cancel(&order);
    let by = match &here {
        Some((by, _)) => by.clone(),
        None => http.find_job_elsewhere(&order).await?.by,
    };
    if by != caller.principal && !is_admin {
        return Err(Problem::forbidden(
            "only the author of the order, or an admin, cancels it",
        ));
    }
    match here {
        Some((_, cancel)) => cancel.cancel(),
        None => http.cancel_job_elsewhere(&order).await?,
    }
    Ok(StatusCode::ACCEPTED)
}

/// Tells how far an order is, whenever there is more to tell, until it is over.
///
/// Each event is named `planning` and has the whole order. Who does not accept an event stream gets the order itself.
#[utoipa::path(get, path = "/planning/{order}/events", operation_id = "orderEvents", tag = "planning",
    params(("order" = String, Path, description = "The order.")),
    responses((status = 200, description = "The order, as it grows.",
        content((PlanningJob = "application/json"), (String = "text/event-stream")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn order_events(
    State(http): State<Http>,
    caller: Caller,
    PathId(order): PathId<String>,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let here = http.planning_jobs.find(&order);
    let told = match here {
        Some(told) => told,
        None => {
            let found = http.find_job_elsewhere(&order).await?;
            http.follow_job_elsewhere(&order, found)
        }
    };
    match negotiate_format(&headers) {
        Some(Wanted::Stream) => {}
        Some(Wanted::List) => return Ok(Json(told.document()).into_response()),
        None => {
            return Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                "an order comes as text/event-stream or application/json",
            ));
        }
    }
    let permit = http.events.enter(&caller).ok_or_else(full)?;
    Ok(job_stream(&http.events, permit, told))
}
