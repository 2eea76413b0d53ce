//! Whether the service is alive, whether it can work, its figures, and its own description.

use crate::http::problem::OwnForm;
use crate::http::router::Routes;
use crate::http::state::Http;
use crate::observe::Readiness;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(openapi_json))
}

/// The process is there.
#[derive(Debug, Serialize, ToSchema)]
struct Alive {
    alive: bool,
}

/// Says that the process is alive.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "service",
    responses((status = 200, description = "It is.", body = Alive)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn healthz() -> Json<Alive> {
    Json(Alive { alive: true })
}

/// Says whether the service can do its work, and what is in the way.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "service",
    responses((status = 200, description = "It can.", body = Readiness),
        (status = 503, description = "It cannot.", body = Readiness)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn readyz(State(http): State<Http>) -> Response {
    let readiness = http.health.readiness().await;
    if readiness.ready {
        return Json(readiness).into_response();
    }
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Json(readiness)).into_response();
    response.extensions_mut().insert(OwnForm);
    response
}

/// The figures of this process, for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "service",
    responses((status = 200, description = "The figures.", body = String, content_type = "text/plain")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn metrics(State(http): State<Http>) -> Response {
    http.health.metrics(http.supervisor.stats()).await
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "service",
    responses((status = 200, description = "An OpenAPI 3.1 document.", body = Object)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn openapi_json(State(http): State<Http>) -> Json<Value> {
    let document = http.openapi.get();
    let mut value = document.map_or(Value::Null, |document| document.value.clone());
    if !http.settings.base_path.is_root() {
        value["servers"] = json!([{ "url": http.settings.base_path.to_string() }]);
    }
    Json(value)
}
