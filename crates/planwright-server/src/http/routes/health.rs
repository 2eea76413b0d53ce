//! Whether the service is alive, and whether it can work.

use crate::http::problem::Answer;
use crate::http::router::Routes;
use crate::http::state::Http;
use crate::http::{Problem, openapi};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(openapi_json))
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    status: &'static str,
}

/// Says that the process is alive.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "service",
    responses((status = 200, body = Health)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Says whether the service can do its work: the store answers, and it is not stopping.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "service",
    responses((status = 200, body = Health)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn readyz(State(http): State<Http>) -> Answer<Json<Health>> {
    if http.stop.is_cancelled() {
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping", 5));
    }
    http.service.tokens.list().await.map_err(|error| {
        tracing::error!(%error, "the store does not answer");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer", 5)
    })?;
    Ok(Json(Health { status: "ready" }))
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "service",
    responses((status = 200, body = Object)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn openapi_json(State(http): State<Http>) -> Json<Value> {
    Json(http.openapi.get().map_or_else(openapi::document, |document| document.value.clone()))
}
