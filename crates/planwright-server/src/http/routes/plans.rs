//! Plans: proposing, listing, looking at, changing and deleting them.

use super::patching::{Patch, check_goal};
use super::plan_search::{self, PlanSearch};
use crate::documents::{History, load_plan_details};
use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBytes, Params, PathId, json};
use crate::http::etag;
use crate::http::page::{Cursor, PageBuilder, PageParams};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{ETAG, LOCATION};
use planwright_api::{Created, CreatedPlan, Page, PlanLine};
use planwright_core::briefing::Briefing;
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document, Finding};
use planwright_core::review::{Review, ReviewRefusal, ReviewState};
use planwright_core::status::{CachedStatus, PlanStatus, UnknownStatus};
use planwright_engine::chat::is_listed;
use planwright_engine::port::StreamInfo;
use planwright_engine::{Editing, LoadError, PlanQuery, ReviewError, with_causes};
use serde::Deserialize;
use serde_json::Map;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create_plan, list_plans))
        .routes(routes!(get_plan, patch_plan, delete_plan))
        .routes(routes!(get_briefing))
}

/// Proposes a plan.
///
/// A whole plan document is stored as version 1 and waits for approval. For a goal alone,
/// the configured model writes the plan; that can take minutes. Without a model it becomes a draft:
/// it has no steps until a caller adds them. A plan with errors is kept, so that it can be repaired, and
/// `findings` says what they are.
#[utoipa::path(post, path = "/plan", operation_id = "createPlan", tag = "plans",
    request_body(content = ref("#/components/schemas/NewPlan"), content_type = "application/json"),
    responses(
        (status = 201, description = "The plan is stored.", body = Created,
            headers(("Location" = String, description = "Where the plan is."), ("ETag" = String, description = "Its state."))),
        (status = 502, description = "The model gave no valid plan. Nothing is stored."),
    ),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn create_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    JsonBytes(bytes): JsonBytes,
) -> HttpResult<Response> {
    let value = json(&bytes)?;
    check_goal(&value)?;
    let says = |key: &&str| value.get(key).is_some();
    let says_something = value.is_array() || ["goal", "steps", "plan"].iter().any(says);
    let only_a_goal = value
        .as_object()
        .is_some_and(|plan| plan.len() == 1 && plan.contains_key("goal"));
    let mut document = Document::from_json(value, &Bounds::for_untrusted())?;
    if !says_something {
        return Err(Problem::bad_request(
            "a plan has a `goal`, `steps`, or both",
        ));
    }
    let engine = &http.service.engine;
    if let Some(goal) = document
        .goal
        .take_if(|_| only_a_goal && engine.planner().has_planner())
    {
        let planned = super::planner::create(&http, goal, caller.principal, &trace).await?;
        return answer_created(&http, &planned.review, planned.findings, trace).await;
    }
    let (review, findings) = engine
        .plans()
        .create_plan(document, &caller.principal, only_a_goal, trace.parse().ok())
        .await?;
    // That a goal has no steps yet is what a draft is for.
    let findings = if only_a_goal { Vec::new() } else { findings };
    answer_created(&http, &review, findings, trace).await
}

/// The answer to the caller who brought the plan.
pub(super) async fn answer_created(
    http: &Http,
    review: &Review,
    findings: Vec<Finding>,
    trace: String,
) -> HttpResult<Response> {
    http.service.write_files(review.id()).await;
    let id = review.id().to_string();
    let current = review.current();
    let status = http.service.engine.plans().status(review).await?;
    let headers = [(LOCATION, format!("/plan/{id}")), (ETAG, etag::of(review))];
    let plan = CreatedPlan::new(
        &current.document,
        (id, status.as_str()),
        current.number,
        current.digest.to_string(),
    );
    Ok((
        StatusCode::CREATED,
        headers,
        Json(Created {
            plan,
            findings,
            trace_id: trace,
        }),
    )
        .into_response())
}

/// Plans are taken from the store so many at a time.
const LOOKED_AT: usize = 100;

/// Which plans.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListParams {
    /// How many plans at most.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before.
    #[param(max_length = 256)]
    cursor: Option<String>,
    /// Only plans that stand there, as `proposed` or `executing`; several are separated by commas.
    #[param(max_length = 512)]
    status: Option<String>,
    /// Only plans with this label on one of their steps. Conversations are labelled `chat`.
    label: Option<String>,
    /// Deleted plans and conversations too.
    #[serde(default)]
    all: bool,
    /// Only plans with all of these words in their id, title, goal, or the titles and tools of their steps.
    #[param(max_length = 256)]
    q: Option<String>,
    /// Only plans that a principal of this name brought.
    #[param(max_length = 64)]
    author: Option<String>,
    /// Only plans that call this tool or ask for it, as `server.tool` or `tool`.
    #[param(max_length = 256)]
    tool: Option<String>,
    /// Only plans that were put away, or only those that were not.
    archived: Option<bool>,
    /// What comes first; what was brought last when absent. With this or another one of the parameters after
    /// `all`, each plan comes with its progress and its latest activity, and the page with their number.
    #[param(inline)]
    sort: Option<PlanSort>,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PlanSort {
    /// What was brought last.
    Created,
    /// That in which something happened last.
    Activity,
}

impl ListParams {
    /// The search that is asked for; nothing if any list will do.
    fn search(&self) -> Option<PlanSearch> {
        let several = self.status.as_ref().is_some_and(|text| text.contains(','));
        let is_plain = self.q.is_none()
            && self.author.is_none()
            && self.tool.is_none()
            && self.archived.is_none()
            && self.sort.is_none()
            && !several;
        (!is_plain).then(|| PlanSearch {
            statuses: self.status.clone(),
            by_activity: self.sort == Some(PlanSort::Activity),
            query: PlanQuery {
                text: self.q.clone(),
                author: self.author.clone(),
                tool: self.tool.clone(),
                label: self.label.clone(),
                archived: self.archived,
                all: self.all,
                ..PlanQuery::default()
            },
        })
    }
}

/// Lists plans, the newest first. Conversations are left out unless they are asked for.
#[utoipa::path(get, path = "/plan", operation_id = "listPlans", tag = "plans",
    params(ListParams),
    responses((status = 200, description = "A page of plans.", body = Page<PlanLine>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_plans(
    State(http): State<Http>,
    Params(params): Params<ListParams>,
) -> HttpResult<Json<Page<PlanLine>>> {
    let engine = &http.service.engine;
    let which = PageParams {
        limit: params.limit,
        cursor: params.cursor.clone(),
    };
    if let Some(search) = params.search() {
        return plan_search::find(&http, search, &which).await;
    }
    if let Some(wanted) = &params.status {
        let status = wanted.parse().map_err(unknown_status)?;
        let found = engine.inbox().plans_with_status(status).await?;
        let (mut page, plans) = PageBuilder::begin(&which, found)?;
        put_lines(&http, &plans, &params, &mut page).await;
        return Ok(Json(page.finish()));
    }
    let (mut page, mut after) = PageBuilder::open(&which)?;
    loop {
        let plans = engine
            .journals()
            .plans_by_age(after.as_ref().map(Cursor::place), LOOKED_AT)
            .await?;
        after = plans.last().map(Cursor::of);
        if !put_lines(&http, &plans, &params, &mut page).await || plans.len() < LOOKED_AT {
            return Ok(Json(page.finish()));
        }
    }
}

/// A status that no plan can have is a mistake of the caller, and not an empty list.
pub(super) fn unknown_status(UnknownStatus(word): UnknownStatus) -> Problem {
    let known: Vec<&str> = PlanStatus::ALL
        .iter()
        .map(|status| status.as_str())
        .collect();
    Problem::of(
        ProblemCode::BadParameter,
        format!("`status`: there is no status `{word}`"),
    )
    .hint(format!("there are {}", known.join(", ")))
}

/// Puts these plans on the page. False once it is full.
async fn put_lines(
    http: &Http,
    plans: &[StreamInfo],
    wanted: &ListParams,
    page: &mut PageBuilder<PlanLine>,
) -> bool {
    for info in plans {
        let deleted = info.status.status == CachedStatus::Deleted;
        if deleted && wanted.status.is_none() && !wanted.all {
            continue;
        }
        // One damaged plan does not hide the others.
        let line = match line(http, &info.status.plan, wanted).await {
            Ok(line) => line,
            Err(error) => {
                tracing::error!(plan = %info.status.plan, %error, "a plan cannot be read");
                unreadable(info, &error, wanted)
            }
        };
        if !page.put(info, line.into_iter().collect()) {
            return false;
        }
    }
    true
}

/// A plan that cannot be read is listed all the same, unless others are asked for.
fn unreadable(info: &StreamInfo, error: &LoadError, wanted: &ListParams) -> Option<PlanLine> {
    let times = (info.created_at, info.updated_at);
    let plan = &info.status.plan;
    let label = &info.status.label;
    let line = PlanLine::unreadable(plan.as_str(), label, times, with_causes(error));
    let is_wanted = wanted
        .status
        .as_ref()
        .is_none_or(|status| *status == line.status);
    (is_wanted && wanted.label.is_none()).then_some(line)
}

async fn line(
    http: &Http,
    plan: &PlanId,
    wanted: &ListParams,
) -> Result<Option<PlanLine>, LoadError> {
    let (review, _) = http.service.engine.plans().load_review(plan).await?;
    if !is_listed(
        &review.current().document,
        wanted.label.as_deref(),
        wanted.all,
    ) {
        return Ok(None);
    }
    let status = http.service.engine.plans().status(&review).await?;
    let shown = match &wanted.status {
        Some(wanted) => status.as_str() == wanted,
        None => wanted.all || review.state() != ReviewState::Deleted,
    };
    Ok(shown.then(|| PlanLine::new(&review, status.as_str())))
}

/// Shows a plan: its document, where it stands, what the policy says, who agreed, and its runs.
#[utoipa::path(get, path = "/plan/{id}", operation_id = "getPlan", tag = "plans",
    params(("id" = String, Path, description = "The plan.")),
    responses(
        (status = 200, description = "The plan.", body = ref("#/components/schemas/Plan"),
            headers(("ETag" = String, description = "The state of the plan, for `If-Match`."))),
    ),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_plan(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    plan_answer(&http, &caller, &review).await
}

/// Says what an approval of the plan covers.
///
/// Every call as it would be sent, what it does in words, and, for a person who may approve it, files that would be
/// overwritten beside what is there now. What changes something comes first. Values that are only known later are named by the step they come from.
#[utoipa::path(get, path = "/plan/{id}/briefing", operation_id = "getBriefing", tag = "plans",
    params(("id" = String, Path, description = "The plan.")),
    responses(
        (status = 200, description = "What an approval of the current version covers.",
            body = ref("#/components/schemas/Briefing")),
    ),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_briefing(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Json<Briefing>> {
    let review = super::load(&http, &id).await?;
    let engine = &http.service.engine;
    let candidate = engine.plans().candidate(&review, &Map::new()).await?;
    let briefings = engine.briefings();
    let viewer = &caller.principal;
    Ok(Json(briefings.brief(&review, &candidate, viewer).await))
}

/// A plan with all that is known about it.
pub(super) async fn plan_answer(
    http: &Http,
    caller: &Caller,
    review: &Review,
) -> HttpResult<Response> {
    let engine = &http.service.engine;
    let status = engine.plans().status(review).await?;
    let candidate = engine.plans().candidate(review, &Map::new()).await?;
    let reader = caller.reader(engine.policy());
    let mut details = load_plan_details(
        engine,
        review,
        &candidate,
        status.as_str(),
        &reader,
        History::Newest,
    )
    .await?;
    let expected = engine.overview().predict_from_known(&candidate.plan);
    let millis = |time: Duration| u64::try_from(time.as_millis()).ok();
    details.predicted_ms = expected.duration.and_then(millis);
    details.predicted_cost_usd = expected.cost.map(planwright_api::dollars);
    Ok(([(ETAG, etag::of(review))], Json(details)).into_response())
}

/// What is said about a change.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct PatchParams {
    /// Why the plan is changed, for patches that have no room for it. Edits have a `reason` of their own, which may be longer.
    #[param(max_length = 500)]
    reason: Option<String>,
}

/// Changes a plan: a new version, if it is still as its editor saw it.
///
/// By edits, or by a merge patch (RFC 7396). A JSON Patch (RFC 6902, `application/json-patch+json`) is taken as well.
#[utoipa::path(patch, path = "/plan/{id}", operation_id = "patchPlan", tag = "plans",
    params(("id" = String, Path, description = "The plan."),
        PatchParams,
        ("If-Match" = String, Header, description = "The `ETag` of the plan as it was read. Without it: 428.")),
    request_body(content(
        (ref("#/components/schemas/PlanEdits") = "application/json"),
        (ref("#/components/schemas/MergePatch") = "application/merge-patch+json"),
    )),
    responses(
        (status = 200, description = "The plan as it is now.", body = ref("#/components/schemas/Plan"),
            headers(("ETag" = String, description = "The state of the plan, for `If-Match`."))),
    ),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn patch_plan(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
    Params(PatchParams { reason }): Params<PatchParams>,
    request: Request,
) -> HttpResult<Response> {
    let headers = request.headers().clone();
    let patch = Patch::read(request, &http).await?;
    let review = super::load(&http, &id).await?;
    etag::check(&headers, &review)?;
    let (document, said) = patch.apply(&review)?;
    let reason = said.or(reason);
    super::decisions::check_reason(reason.as_deref().unwrap_or_default())?;
    let editing = Editing {
        based_on: review.current().number,
        by: caller.principal.clone(),
        reason: reason.filter(|reason| !reason.trim().is_empty()),
    };
    let edited = http
        .service
        .engine
        .plans()
        .edit(&id, document, &editing)
        .await;
    let (review, _) = edited.map_err(|error| match error {
        ReviewError::Refused(refusal @ ReviewRefusal::Conflict { .. }) => {
            Problem::of(ProblemCode::StateChanged, refusal.to_string())
        }
        error => error.into(),
    })?;
    http.service.write_files(&id).await;
    plan_answer(&http, &caller, &review).await
}

/// Deletes a plan that is not executing. Its journal stays.
#[utoipa::path(delete, path = "/plan/{id}", operation_id = "deletePlan", tag = "plans",
    params(("id" = String, Path, description = "The plan.")),
    responses((status = 204, description = "The plan is deleted.")),
    extensions(("x-planwright-action" = json!("delete"))))]
async fn delete_plan(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
) -> HttpResult<StatusCode> {
    http.service
        .engine
        .plans()
        .delete(&id, &caller.principal)
        .await?;
    http.service.write_files(&id).await;
    Ok(StatusCode::NO_CONTENT)
}
