//! Workers, what waits for them, and the queues of the broker.

use crate::documents::{load_dead_notices, load_workers, queue_line};
use crate::http::auth::Caller;
use crate::http::body::Params;
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use planwright_api::{DeadNoticeList, PurgedNotices, QueueList, RequeuedNotices, WorkerList};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// The notices of one answer, unless the client wants fewer.
const MAX_LISTED: u16 = 1_000;
const LISTED: u16 = 50;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_workers))
        .routes(routes!(list_queues))
        .routes(routes!(list_dead_notices, purge_dead_notices))
        .routes(routes!(requeue_notice))
}

/// Lists the workers, what they do, and the steps that wait for one.
#[utoipa::path(get, path = "/workers", operation_id = "listWorkers", tag = "service",
    responses((status = 200, description = "The workers.", body = WorkerList),
        (status = 409, description = "The store cannot have workers: it is no database.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_workers(State(http): State<Http>) -> HttpResult<Json<WorkerList>> {
    let workers = http.service.engine.workers();
    Ok(Json(load_workers(&workers).await?))
}

/// Lists the queues of the broker, one for each capability whose steps workers carry out.
#[utoipa::path(get, path = "/queues", operation_id = "listQueues", tag = "service",
    responses((status = 200, description = "The queues.", body = QueueList),
        (status = 409, description = "No broker is configured.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_queues(State(http): State<Http>) -> HttpResult<Json<QueueList>> {
    let queues = http.service.engine.workers().queues().await?;
    Ok(Json(QueueList {
        queues: queues.into_iter().map(queue_line).collect(),
    }))
}

/// How much is listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DeadParams {
    /// How many notices at most; 50 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// Lists the notices of a capability that were given up, the oldest first.
#[utoipa::path(get, path = "/queues/{capability}/dead", operation_id = "listDeadNotices", tag = "service",
    params(("capability" = String, Path, description = "The capability."), DeadParams),
    responses((status = 200, description = "The notices.", body = DeadNoticeList),
        (status = 404, description = "Workers carry out no steps with this capability.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "No broker is configured.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_dead_notices(
    State(http): State<Http>,
    Path(capability): Path<String>,
    Params(DeadParams { limit }): Params<DeadParams>,
) -> HttpResult<Json<DeadNoticeList>> {
    let limit = limit.unwrap_or(LISTED).clamp(1, MAX_LISTED);
    let workers = http.service.engine.workers();
    Ok(Json(
        load_dead_notices(&workers, capability, limit.into()).await?,
    ))
}

/// Sends a notice again that was given up.
#[utoipa::path(post, path = "/queues/{capability}/dead/{id}/requeue", operation_id = "requeueNotice", tag = "service",
    params(("capability" = String, Path, description = "The capability."), ("id" = String, Path, description = "The notice, as the list names it.")),
    responses((status = 200, description = "It was sent again.", body = RequeuedNotices),
        (status = 404, description = "There is no such notice, or workers carry out no steps with this capability.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "No broker is configured.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("administer"))))]
async fn requeue_notice(
    State(http): State<Http>,
    caller: Caller,
    Path((capability, id)): Path<(String, String)>,
) -> HttpResult<Json<RequeuedNotices>> {
    let workers = http.service.engine.workers();
    workers.requeue(&capability, &id).await?;
    tracing::info!(capability, notice = id, by = %caller.principal, "a notice was sent again");
    Ok(Json(RequeuedNotices { requeued: 1 }))
}

/// Forgets the notices of a capability that were given up. Their steps are offered again by the owners of the runs.
#[utoipa::path(delete, path = "/queues/{capability}/dead", operation_id = "purgeDeadNotices", tag = "service",
    params(("capability" = String, Path, description = "The capability.")),
    responses((status = 200, description = "They are forgotten.", body = PurgedNotices),
        (status = 404, description = "Workers carry out no steps with this capability.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "No broker is configured.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The broker does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("administer"))))]
async fn purge_dead_notices(
    State(http): State<Http>,
    caller: Caller,
    Path(capability): Path<String>,
) -> HttpResult<Json<PurgedNotices>> {
    let purged = http.service.engine.workers().purge(&capability).await?;
    tracing::info!(capability, purged, by = %caller.principal, "notices that were given up are forgotten");
    Ok(Json(PurgedNotices { purged }))
}
