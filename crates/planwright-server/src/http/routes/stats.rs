//! Figures over all plans and runs.

use crate::documents::load_dispatch_stats;
use crate::http::body::Params;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::{DayLine, StatsResult};
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
    /// Counts what happened from the beginning of that hour on, as `2026-01-31T00:00:00Z`; everything when absent.
    #[param(format = "date-time")]
    since: Option<String>,
}

/// Figures: tools, approvals, predictions, how many plans and runs stand where, and what happened day by day.
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
            Problem::of(
                ProblemCode::BadParameter,
                format!("`since`: `{text}` is no instant, as 2026-01-31T00:00:00Z"),
            )
        };
        serde_json::from_value::<Timestamp>(Value::String(text.clone())).map_err(bad)
    });
    let since = since.transpose()?;
    let figures = http.service.engine.overview().figures(since).await?;
    let since = figures.since.map(|at| at.to_string());
    let workers = http.service.engine.workers();
    let mut result = StatsResult::new(&figures.total, since);
    result.dispatch = load_dispatch_stats(&workers).await;
    result.days = figures.days.iter().map(DayLine::new).collect();
    Ok(Json(result))
}
