//! Templates: plans with inputs, to be used again.

use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBody, Params, PathId};
use crate::http::page::{Cursor, PageBuilder, PageParams};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use planwright_api::{Created, Page, TemplateLine};
use planwright_core::id::PlanId;
use planwright_core::plan::FromTemplate;
use planwright_core::review::Review;
use planwright_engine::{FoundPlans, PlanQuery};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_templates))
        .routes(routes!(get_template))
        .routes(routes!(use_template))
}

/// Which templates.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct TemplateParams {
    /// How many at most.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before.
    #[param(max_length = 256)]
    cursor: Option<String>,
    /// Only templates with all of these words in them.
    #[param(max_length = 256)]
    q: Option<String>,
}

/// Lists templates, with the inputs that they take.
#[utoipa::path(get, path = "/templates", operation_id = "listTemplates", tag = "templates",
    params(TemplateParams),
    responses((status = 200, description = "A page of templates, the newest first.", body = Page<TemplateLine>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_templates(
    State(http): State<Http>,
    Params(TemplateParams { limit, cursor, q }): Params<TemplateParams>,
) -> HttpResult<Json<Page<TemplateLine>>> {
    let which = PageParams { limit, cursor };
    let (page, after) = PageBuilder::<TemplateLine>::open(&which)?;
    let query = PlanQuery {
        text: q,
        templates: true,
        archived: Some(false),
        limit: page.limit(),
        after: after.map(|cursor| {
            let (at, plan) = cursor.place();
            (at, plan.clone())
        }),
        ..PlanQuery::default()
    };
    let engine = &http.service.engine;
    let FoundPlans { plans, total, more } = engine.overview().find_plans(&query).await?;
    let last = plans.last().filter(|_| more);
    let cursor = last.map(|plan| Cursor::new(plan.created_at, plan.id.clone()));
    let mut items = Vec::with_capacity(plans.len());
    for plan in &plans {
        items.push(TemplateLine::new(&super::load(&http, &plan.id).await?));
    }
    Ok(Json(Page {
        items,
        next_cursor: cursor.map(|cursor| cursor.encode()),
        total: Some(total),
    }))
}

/// Shows a template and its inputs.
#[utoipa::path(get, path = "/templates/{id}", operation_id = "getTemplate", tag = "templates",
    params(("id" = String, Path, description = "The template.")),
    responses((status = 200, description = "The template.", body = TemplateLine)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_template(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Json<TemplateLine>> {
    Ok(Json(TemplateLine::new(&load_template(&http, &id).await?)))
}

async fn load_template(http: &Http, id: &PlanId) -> HttpResult<Review> {
    let review = super::load(http, id).await?;
    if review.current().document.is_template() {
        return Ok(review);
    }
    Err(Problem::not_found(format!(
        "plan `{id}` takes no inputs, so it is no template"
    )))
}

/// With which inputs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UseTemplate {
    /// By name, as the template's schema has them.
    #[serde(default)]
    #[schema(value_type = Object)]
    inputs: Map<String, Value>,
    /// The id of the plan; a fresh one when absent.
    #[serde(default)]
    #[schema(max_length = 64)]
    id: Option<String>,
}

/// Makes a plan from a template. It waits for approval like any other.
#[utoipa::path(post, path = "/templates/{id}/use", operation_id = "useTemplate", tag = "templates",
    params(("id" = String, Path, description = "The template.")),
    request_body = UseTemplate,
    responses(
        (status = 201, description = "The plan is stored.", body = Created,
            headers(("Location" = String, description = "Where the plan is."), ("ETag" = String, description = "Its state."))),
        (status = 422, description = "The inputs do not fit: `findings` says why.")),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn use_template(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(UseTemplate { inputs, id: named }): JsonBody<UseTemplate>,
) -> HttpResult<Response> {
    let review = load_template(&http, &id).await?;
    let origin = FromTemplate {
        id: review.id().clone(),
        version: review.current().number,
    };
    let filled = review.current().document.fill(origin, &inputs);
    let mut document = filled.map_err(|findings| {
        let words = format!("template `{id}` does not take these inputs");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, words).findings(findings)
    })?;
    let named = named.map(|text| text.parse::<PlanId>()).transpose();
    document.id = named.map_err(|error| Problem::bad_request(format!("`id`: {error}")))?;
    let plans = http.service.engine.plans();
    let (review, findings) = plans
        .create_plan(document, &caller.principal, false, trace.parse().ok())
        .await?;
    super::plans::answer_created(&http, &review, findings, trace).await
}
