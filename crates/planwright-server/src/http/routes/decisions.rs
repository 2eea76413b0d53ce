//! What people decide about plans.

use super::Seen;
use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBody, PathId};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::PlanDecided;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::Finding;
use planwright_core::policy::LateChoice;
use planwright_core::review::Review;
use planwright_core::run::Shown;
use planwright_engine::GivenApproval;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(approve_plan))
        .routes(routes!(reject_plan))
        .routes(routes!(request_changes))
}

/// The one word that approves.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Yes {
    Approve,
}

/// The one word that rejects.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum No {
    Reject,
}

/// A yes to exactly what was shown: name the digest or the version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "decision": "approve", "version": 1 }))]
struct ApprovePlan {
    #[expect(dead_code, reason = "its presence is what counts")]
    decision: Yes,
    version: Option<u32>,
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: Option<String>,
    /// What holds for arguments that are only known later, by step: `any`, `ask` or a CEL predicate.
    #[serde(default)]
    late: BTreeMap<String, String>,
    /// Values of variables that the run will be given.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
}

/// Approves a plan.
#[utoipa::path(post, path = "/plan/{id}/approve", operation_id = "approvePlan", tag = "decisions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = ApprovePlan,
    responses((status = 200, description = "The approval is recorded.", body = PlanDecided),
        (status = 422, description = "The plan has errors, in `findings`. It is not approved.")),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn approve_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(body): JsonBody<ApprovePlan>,
) -> HttpResult<Json<PlanDecided>> {
    let ApprovePlan {
        version,
        digest,
        late,
        variables,
        ..
    } = body;
    let shown = Seen { version, digest }.shown()?;
    approve(&http, &caller, (&id, shown), (&late, &variables), trace).await
}

/// Records an approval of exactly what was shown.
pub(super) async fn approve(
    http: &Http,
    caller: &Caller,
    (id, shown): (&PlanId, Shown),
    (late, variables): (&BTreeMap<String, String>, &Map<String, Value>),
    trace: String,
) -> HttpResult<Json<PlanDecided>> {
    let (review, head) = super::load_with_head(http, id).await?;
    let late = read_choices(late)?;
    let given = GivenApproval {
        shown,
        by: caller.principal.clone(),
        assurance: caller.assurance,
        late,
    };
    let plans = http.service.engine.plans();
    let shown_plan = plans.compile_shown_plan(review, head, variables).await?;
    let compiled = shown_plan.candidate.digest;
    let findings = shown_plan.candidate.findings.clone();
    let review = plans
        .approve_shown_plan(shown_plan, variables, &given)
        .await?;
    http.service.write_files(review.id()).await;
    // The digest that was approved: after a change by another caller the plan was compiled again.
    let approved = review.approvals().last();
    let digest = approved.map_or(compiled, |approval| approval.digest);
    standing(http, &review, (&digest, findings), trace).await
}

/// Reads what is to hold for arguments that are only known later.
pub(super) fn read_choices(
    late: &BTreeMap<String, String>,
) -> HttpResult<BTreeMap<String, LateChoice>> {
    let read = |(step, choice): (&String, &String)| match choice.parse() {
        Ok(choice) => Ok((step.clone(), choice)),
        Err(error) => Err(Problem::of(
            ProblemCode::BadLateChoice,
            format!("`late` of step `{step}`: {error}"),
        )),
    };
    late.iter().map(read).collect()
}

/// A no to exactly what was shown, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "decision": "reject", "version": 1, "reason": "step 2 deletes too much" }))]
pub(super) struct RejectPlan {
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "a word that is none of ours is refused when it is read"
    )]
    decision: Option<No>,
    pub(super) version: Option<u32>,
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    pub(super) digest: Option<String>,
    #[serde(default)]
    #[schema(max_length = 10_000)]
    pub(super) reason: String,
}

/// The most characters of a reason.
const MAX_REASON: usize = 10_000;

pub(super) fn check_reason(reason: &str) -> HttpResult<()> {
    if reason.chars().count() <= MAX_REASON {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "the reason has more than {MAX_REASON} characters"
    )))
}

/// Rejects a plan. After the third rejection a person has to step in.
#[utoipa::path(post, path = "/plan/{id}/reject", operation_id = "rejectPlan", tag = "decisions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = RejectPlan,
    responses((status = 200, description = "The rejection is recorded.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn reject_plan(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(body): JsonBody<RejectPlan>,
) -> HttpResult<Json<PlanDecided>> {
    let RejectPlan {
        version,
        digest,
        reason,
        ..
    } = body;
    let shown = Seen { version, digest }.shown()?;
    reject(&http, &caller, (&id, shown), &reason, trace).await
}

/// Records a rejection of exactly what was shown.
pub(super) async fn reject(
    http: &Http,
    caller: &Caller,
    (id, shown): (&PlanId, Shown),
    reason: &str,
    trace: String,
) -> HttpResult<Json<PlanDecided>> {
    check_reason(reason)?;
    super::load(http, id).await?;
    let plans = http.service.engine.plans();
    let review = plans.reject(id, shown, &caller.principal, reason).await?;
    decision_answer(http, &review, &Map::new(), trace).await
}

/// What should be different, in exactly what was shown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "version": 1, "reason": "say which directory" }))]
struct RequestChanges {
    version: Option<u32>,
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: Option<String>,
    #[schema(min_length = 1, max_length = 10_000)]
    reason: String,
}

/// Asks the author to change something. It voids what was approved, and counts for no round of rejections.
#[utoipa::path(post, path = "/plan/{id}/request-changes", operation_id = "requestChanges", tag = "decisions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = RequestChanges,
    responses((status = 200, description = "The request is recorded.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn request_changes(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(RequestChanges {
        version,
        digest,
        reason,
    }): JsonBody<RequestChanges>,
) -> HttpResult<Json<PlanDecided>> {
    let shown = Seen { version, digest }.shown()?;
    check_reason(&reason)?;
    if reason.trim().is_empty() {
        return Err(Problem::bad_request("say what should be different"));
    }
    super::load(&http, &id).await?;
    let review = http
        .service
        .engine
        .plans()
        .request_changes(&id, shown, &caller.principal, &reason)
        .await?;
    decision_answer(&http, &review, &Map::new(), trace).await
}

/// Returns where the plan stands now.
pub(super) async fn decision_answer(
    http: &Http,
    review: &Review,
    variables: &Map<String, Value>,
    trace_id: String,
) -> HttpResult<Json<PlanDecided>> {
    http.service.write_files(review.id()).await;
    let candidate = http
        .service
        .engine
        .plans()
        .candidate(review, variables)
        .await?;
    standing(
        http,
        review,
        (&candidate.digest, candidate.findings),
        trace_id,
    )
    .await
}

/// Returns where the plan stands with those who decide about this digest, with what was found in it.
pub(super) async fn standing(
    http: &Http,
    review: &Review,
    (digest, findings): (&Digest, Vec<Finding>),
    trace_id: String,
) -> HttpResult<Json<PlanDecided>> {
    let engine = &http.service.engine;
    let now = engine.now();
    Ok(Json(PlanDecided {
        id: review.id().to_string(),
        version: review.current().number,
        status: engine.plans().status(review).await?.as_str().to_owned(),
        digest: digest.to_string(),
        approvals: review.given_approvals(digest, now).len(),
        required: engine.policy().approval.required() as usize,
        findings,
        trace_id,
    }))
}
