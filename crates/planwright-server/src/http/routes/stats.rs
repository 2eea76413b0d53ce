//! Figures over all plans and runs.

use crate::http::body::Params;
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::StatsResult;
use planwright_core::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(stats))
}

/// From when on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct StatsParams {
    /// Counts what happened from then on, as `2026-01-31T00:00:00Z`; everything when absent.
    #[param(format = "date-time")]
    since: Option<String>,
}

/// Figures: tools, approvals, predictions, and how many plans and runs stand where.
#[utoipa::path(get, path = "/stats", operation_id = "stats", tag = "service",
    params(StatsParams),
    responses((status = 200, description = "The figures.", body = StatsResult)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn stats(
    State(http): State<Http>,
    Params(StatsParams { since }): Params<StatsParams>,
) -> HttpResult<Json<StatsResult>> {
    let since = since.map(|text| {
        let bad = |_| {
            Problem::bad_request(format!(
                "`since`: `{text}` is no instant, as 2026-01-31T00:00:00Z"
            ))
        };
        serde_json::from_value::<Timestamp>(Value::String(text.clone())).map_err(bad)
    });
    let since = since.transpose()?;
    let figures = http.service.engine.journals().stats(since).await?;
    Ok(Json(StatsResult::new(
        &figures,
        since.map(|at| at.to_string()),
    )))
}
