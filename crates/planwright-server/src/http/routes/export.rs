//! A plan as a file.

use crate::documents::write_markdown;
use crate::http::body::{Params, PathId};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use planwright_core::id::PlanId;
use planwright_core::review::ReviewRefusal;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(export_plan))
}

/// The form of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    /// To read and to edit, as `plan.md` is.
    #[default]
    Md,
    /// The whole document, with its large values.
    Json,
}

/// What is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ExportParams {
    /// The form; Markdown when absent.
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
    /// The version; the current one when absent.
    #[param(minimum = 1)]
    version: Option<u32>,
}

/// Writes a plan as a file, as Markdown or as JSON.
#[utoipa::path(get, path = "/plan/{id}/export", operation_id = "exportPlan", tag = "plans",
    params(("id" = String, Path, description = "The plan."), ExportParams),
    responses((status = 200, description = "The file.",
        content((String = "text/markdown"), (serde_json::Value = "application/json")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn export_plan(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(ExportParams { format, version }): Params<ExportParams>,
) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    let engine = &http.service.engine;
    let number = version.unwrap_or_else(|| review.current().number);
    let loaded = engine.plans().load_version(&review, number).await?;
    let loaded = loaded.ok_or(ReviewRefusal::NoSuchVersion(number))?;
    let (kind, ending, text) = match format {
        ExportFormat::Md => {
            let page = write_markdown(engine, &review, &loaded, None).await?;
            ("text/markdown; charset=utf-8", "md", page)
        }
        ExportFormat::Json => {
            let whole = engine.plans().whole_document(&loaded.document).await?;
            let text = serde_json::to_string_pretty(&whole).map_err(|error| {
                tracing::error!(%error, "a plan cannot be written");
                Problem::of(ProblemCode::Internal, "the plan cannot be written")
            })?;
            ("application/json", "json", text)
        }
    };
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // An id has letters, digits, `.`, `_` and `-` only.
    if let Ok(name) = HeaderValue::try_from(format!("attachment; filename=\"{id}.{ending}\"")) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
