//! Plans: proposing, listing, looking at, changing and deleting them.

use crate::documents::{History, load_plan_details};
use crate::http::auth::{Caller, Trace};
use crate::http::body::{self, JsonBytes, Params, PathId, json, media_type, unsupported_type};
use crate::http::page::{Cursor, PageBuilder, PageParams};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use crate::http::{etag, patch};
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{ETAG, LOCATION};
use planwright_api::{Created, CreatedPlan, Page, PlanLine};
use planwright_core::briefing::Briefing;
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document, Edit};
use planwright_core::review::{Review, ReviewRefusal, ReviewState};
use planwright_core::status::{CachedStatus, UnknownStatus};
use planwright_engine::chat::is_listed;
use planwright_engine::port::StreamInfo;
use planwright_engine::{Editing, LoadError, ReviewError, with_causes};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;
use utoipa_axum::routes;

/// The most characters of a goal.
const MAX_GOAL: usize = 10_000;

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
/// it has no steps until a caller adds them.
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
        let review = super::planner::create(&http, goal, caller.principal, &trace).await?;
        return created(&http, &review, trace).await;
    }
    let (review, _) = engine
        .plans()
        .create_plan(document, &caller.principal, only_a_goal, trace.parse().ok())
        .await?;
    created(&http, &review, trace).await
}

/// The answer to the caller who brought the plan.
async fn created(http: &Http, review: &Review, trace: String) -> HttpResult<Response> {
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
            trace_id: trace,
        }),
    )
        .into_response())
}

/// A goal says something, and not too much.
fn check_goal(value: &Value) -> Result<(), Problem> {
    match value.get("goal") {
        None => Ok(()),
        Some(Value::String(goal)) if goal.trim().is_empty() => {
            Err(Problem::bad_request("the goal is empty"))
        }
        Some(Value::String(goal)) if goal.chars().count() > MAX_GOAL => Err(Problem::bad_request(
            format!("the goal has more than {MAX_GOAL} characters"),
        )),
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(Problem::bad_request("the goal has to be a text")),
    }
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
    /// Only plans that stand there, as `proposed` or `executing`.
    status: Option<String>,
    /// Only plans with this label on one of their steps. Conversations are labelled `chat`.
    label: Option<String>,
    /// Deleted plans and conversations too.
    #[serde(default)]
    all: bool,
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
    if let Some(wanted) = &params.status {
        // No plan has a status that there is not.
        let found = match wanted.parse() {
            Ok(status) => engine.inbox().plans_with_status(status).await?,
            Err(UnknownStatus(_)) => Vec::new(),
        };
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
    let (plan, label) = (&info.status.plan, &info.status.label);
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
async fn get_plan(State(http): State<Http>, PathId(id): PathId<PlanId>) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    plan_answer(&http, &review).await
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
    let plans = http.service.engine.plans();
    let candidate = plans.candidate(&review, &Map::new()).await?;
    Ok(Json(
        plans.brief(&review, &candidate, &caller.principal).await,
    ))
}

/// A plan with all that is known about it.
pub(super) async fn plan_answer(http: &Http, review: &Review) -> HttpResult<Response> {
    let engine = &http.service.engine;
    let status = engine.plans().status(review).await?;
    let candidate = engine.plans().candidate(review, &Map::new()).await?;
    let details =
        load_plan_details(engine, review, &candidate, status.as_str(), History::Newest).await?;
    Ok(([(ETAG, etag::of(review))], Json(details)).into_response())
}

/// Changes a plan: a new version, if it is still as its editor saw it.
#[utoipa::path(patch, path = "/plan/{id}", operation_id = "patchPlan", tag = "plans",
    params(("id" = String, Path, description = "The plan."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the plan as it was read. Without it: 428.")),
    request_body(content(
        (ref("#/components/schemas/JsonPatch") = "application/json-patch+json"),
        (ref("#/components/schemas/MergePatch") = "application/merge-patch+json"),
        (ref("#/components/schemas/Edits") = "application/json"),
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
    request: Request,
) -> HttpResult<Response> {
    let headers = request.headers().clone();
    let kind = media_type(&headers);
    let kind = Patch::of(kind.as_deref())?;
    let value = json(&body::read(request, &http).await?)?;
    let review = super::load(&http, &id).await?;
    etag::check(&headers, &review)?;
    let document = patched(&review.current().document, kind, value)?;
    if document.id.as_ref() != Some(&id) {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the id of a plan never changes",
        ));
    }
    let editing = Editing {
        based_on: review.current().number,
        by: caller.principal,
        reason: None,
    };
    let edited = http
        .service
        .engine
        .plans()
        .edit(&id, document, &editing)
        .await;
    let (review, _) = edited.map_err(|error| match error {
        ReviewError::Refused(refusal @ ReviewRefusal::Conflict { .. }) => {
            Problem::new(StatusCode::PRECONDITION_FAILED, refusal.to_string())
        }
        error => error.into(),
    })?;
    http.service.write_files(&id).await;
    plan_answer(&http, &review).await
}

/// The ways to say what changes.
#[derive(Debug, Clone, Copy)]
enum Patch {
    Json,
    Merge,
    Edits,
}

impl Patch {
    fn of(kind: Option<&str>) -> HttpResult<Self> {
        match kind {
            Some("application/json-patch+json") => Ok(Self::Json),
            Some("application/merge-patch+json") => Ok(Self::Merge),
            Some("application/json") => Ok(Self::Edits),
            Some(_) | None => Err(unsupported_type(
                "application/json-patch+json, application/merge-patch+json or application/json with edits",
            )),
        }
    }
}

/// Edits of a plan, in their order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    edits: Vec<Edit>,
}

/// The document after the change, within the same bounds as one that was just posted.
fn patched(document: &Document, kind: Patch, value: Value) -> HttpResult<Document> {
    let bounds = Bounds::for_untrusted();
    if let Patch::Edits = kind {
        let Edits { edits } = serde_json::from_value(value)
            .map_err(|error| Problem::bad_request(format!("these are no edits: {error}")))?;
        return document
            .with_edits(&edits, &bounds)
            .map_err(|error| ReviewError::from(error).into());
    }
    let mut document = serde_json::to_value(document)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    match kind {
        Patch::Json => patch::json_patch(&mut document, value, bounds.max_document_bytes)?,
        Patch::Merge if value.is_object() => patch::merge_patch(&mut document, value),
        Patch::Merge | Patch::Edits => {
            return Err(Problem::bad_request(
                "a merge patch of a plan has to be a JSON object",
            ));
        }
    }
    check_goal(&document)?;
    let text = serde_json::to_vec(&document).unwrap_or_default();
    Ok(Document::read(&text, &bounds)?)
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
