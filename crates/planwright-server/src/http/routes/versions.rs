//! The versions of a plan: which there are, how they differ, and going back to one.

use crate::http::auth::{Caller, Trace};
use crate::http::body::{self, JsonBody, OptionalBody, Params, PathId, PathStep};
use crate::http::linked_page::{self, LinkedPage, LinkedParams};
use crate::http::problem::HttpResult;
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::{DiffResult, PlanDecided, VersionDocument, VersionLine};
use planwright_core::id::PlanId;
use planwright_core::review::{Review, ReviewRefusal, VersionSummary};
use planwright_engine::Editing;
use serde::Deserialize;
use serde_json::Map;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_versions))
        .routes(routes!(get_version))
        .routes(routes!(diff_versions))
        .routes(routes!(restore_version))
        .routes(routes!(propose_draft))
        .routes(routes!(archive_plan))
}

/// Lists the versions of a plan, the first one first.
#[utoipa::path(get, path = "/plan/{id}/versions", operation_id = "listVersions", tag = "versions",
    params(("id" = String, Path, description = "The plan."), LinkedParams),
    responses((status = 200, description = "A page of versions, without their documents.", body = Vec<VersionLine>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_versions(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    let (mut page, last) = LinkedPage::open(format!("/plan/{id}/versions"), params)?;
    let review = super::load(&http, &id).await?;
    let is_named = |version: &VersionSummary, name: &str| version.number.to_string() == name;
    for version in linked_page::after(review.versions(), last.as_deref(), is_named)? {
        if !page.put(version.number, &VersionLine::new(&review, version))? {
            break;
        }
    }
    Ok(page)
}

/// Shows one version of a plan, with its document.
#[utoipa::path(get, path = "/plan/{id}/versions/{version}", operation_id = "getVersion", tag = "versions",
    params(("id" = String, Path, description = "The plan."),
        ("version" = u32, Path, description = "The version.", minimum = 1)),
    responses((status = 200, description = "The version.", body = ref("#/components/schemas/PlanVersion"))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_version(
    State(http): State<Http>,
    PathStep(id, number): PathStep<PlanId>,
) -> HttpResult<Json<VersionDocument>> {
    let number: u32 = body::id(&number)?;
    let review = super::load(&http, &id).await?;
    let plans = http.service.engine.plans();
    let unknown = ReviewRefusal::NoSuchVersion(number);
    let summary = review.version(number).ok_or_else(|| unknown.clone())?;
    let line = VersionLine::new(&review, summary);
    let version = plans.load_version(&review, number).await?;
    let version = version.ok_or(unknown)?;
    let document = plans.whole_document(&version.document).await?;
    Ok(Json(VersionDocument { line, document }))
}

/// Which versions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DiffParams {
    /// The earlier version; the one before the later one when absent.
    #[param(minimum = 1)]
    from: Option<u32>,
    /// The later version; the current one when absent.
    #[param(minimum = 1)]
    to: Option<u32>,
}

/// Says what differs between two versions, and whether it changes what is executed.
#[utoipa::path(get, path = "/plan/{id}/diff", operation_id = "diffVersions", tag = "versions",
    params(("id" = String, Path, description = "The plan."), DiffParams),
    responses((status = 200, description = "The difference.", body = ref("#/components/schemas/Diff"))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn diff_versions(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(DiffParams { from, to }): Params<DiffParams>,
) -> HttpResult<Json<DiffResult>> {
    let review = super::load(&http, &id).await?;
    let to = to.unwrap_or_else(|| review.current().number);
    let from = from.unwrap_or_else(|| to.saturating_sub(1).max(1));
    let diff = http.service.engine.plans().diff(&review, from, to).await?;
    Ok(Json(DiffResult::new(id, from, Some(to), diff)))
}

/// Which version, on top of which one, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RestoreVersion {
    /// The version whose content comes back.
    #[schema(minimum = 1)]
    version: u32,
    /// The version that is current, as far as the caller knows; any version when absent.
    #[serde(default)]
    based_on: Option<u32>,
    #[serde(default)]
    #[schema(max_length = 10_000)]
    reason: Option<String>,
}

/// Makes the content of an earlier version the next one.
#[utoipa::path(post, path = "/plan/{id}/restore", operation_id = "restoreVersion", tag = "versions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = RestoreVersion,
    responses((status = 200, description = "The plan has a new version.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn restore_version(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(RestoreVersion {
        version,
        based_on,
        reason,
    }): JsonBody<RestoreVersion>,
) -> HttpResult<Json<PlanDecided>> {
    super::decisions::check_reason(reason.as_deref().unwrap_or_default())?;
    let review = super::load(&http, &id).await?;
    let based_on = based_on.unwrap_or_else(|| review.current().number);
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let editing = Editing {
        based_on,
        by: caller.principal,
        reason,
    };
    let (review, _) = http
        .service
        .engine
        .plans()
        .restore(&id, version, &editing)
        .await?;
    decided(&http, &review, trace).await
}

async fn decided(http: &Http, review: &Review, trace: String) -> HttpResult<Json<PlanDecided>> {
    super::decisions::decision_answer(http, review, &Map::new(), trace).await
}

/// Puts a draft forward, so that people decide about it.
#[utoipa::path(post, path = "/plan/{id}/propose", operation_id = "proposeDraft", tag = "versions",
    params(("id" = String, Path, description = "The plan.")),
    responses((status = 200, description = "The plan is proposed.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn propose_draft(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Json<PlanDecided>> {
    super::load(&http, &id).await?;
    let review = http
        .service
        .engine
        .plans()
        .propose_draft(&id, &caller.principal)
        .await?;
    decided(&http, &review, trace).await
}

/// Whether the plan goes into the archive or comes out of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct ArchivePlan {
    /// False takes it out.
    archived: bool,
}

impl Default for ArchivePlan {
    fn default() -> Self {
        Self { archived: true }
    }
}

/// Puts a plan away that is over, or takes it out of the archive.
#[utoipa::path(post, path = "/plan/{id}/archive", operation_id = "archivePlan", tag = "plans",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<ArchivePlan>,
    responses((status = 200, description = "It is done.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("delete"))))]
async fn archive_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(ArchivePlan { archived }): OptionalBody<ArchivePlan>,
) -> HttpResult<Json<PlanDecided>> {
    super::load(&http, &id).await?;
    let engine = &http.service.engine;
    let review = if archived {
        engine.plans().archive(&id, &caller.principal).await?
    } else {
        engine.plans().unarchive(&id, &caller.principal).await?
    };
    decided(&http, &review, trace).await
}
