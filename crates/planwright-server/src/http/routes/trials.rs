//! Trying on paper: nothing here calls a tool, and nothing is stored.

use super::decisions::read_choices;
use super::patching::Patch;
use crate::http::auth::Caller;
use crate::http::body::{JsonBody, JsonBytes, OptionalBody, PathId, json, read_value};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Request, State};
use planwright_api::{
    DiffResult, DryRunStep, EditPreviewResult, ExpressionResult, PolicyExplanation, RunResult,
    StepVerdict, ValidationResult, dry_run_result,
};
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document};
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_engine::{Candidate, CheckedDocument};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(validate_plan))
        .routes(routes!(dry_run))
        .routes(routes!(preview_edit))
        .routes(routes!(check_expression))
        .routes(routes!(explain_policy))
}

/// Says everything that is wrong with a plan, at once. Nothing is stored.
///
/// What cannot be read as a plan at all is a finding too.
#[utoipa::path(post, path = "/validate", operation_id = "validatePlan", tag = "trials",
    request_body(content = ref("#/components/schemas/NewPlan"), content_type = "application/json"),
    responses((status = 200, description = "What was found.", body = ValidationResult)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn validate_plan(
    State(http): State<Http>,
    JsonBytes(bytes): JsonBytes,
) -> HttpResult<Json<ValidationResult>> {
    let document = match Document::from_json(json(&bytes)?, &Bounds::for_untrusted()) {
        Ok(document) => document,
        Err(error) => {
            let findings = vec![error.into_finding()];
            return Ok(Json(ValidationResult::new(None, None, findings)));
        }
    };
    let trials = http.service.engine.trials();
    let CheckedDocument {
        plan,
        digest,
        findings,
    } = trials.check_document(document).await?;
    Ok(Json(ValidationResult::new(plan.as_ref(), digest, findings)))
}

/// With which values.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct DryRun {
    /// Values of variables that the run would be given.
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
}

/// Goes through a run of a plan on paper: what every step would send, and what consent and the guards would say.
///
/// Nothing is called.
#[utoipa::path(post, path = "/plan/{id}/dry-run", operation_id = "dryRun", tag = "trials",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<DryRun>,
    responses(
        (status = 200, description = "The run on paper.", body = RunResult<DryRunStep>),
        (status = 422, description = "The plan could not run: `findings` says why.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn dry_run(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    OptionalBody(DryRun { variables }): OptionalBody<DryRun>,
) -> HttpResult<Json<RunResult<DryRunStep>>> {
    let review = super::load(&http, &id).await?;
    let plans = http.service.engine.plans();
    let candidate = plans.candidate(&review, &variables).await?;
    let preview = http.service.engine.trials().preview_run(&candidate)?;
    let version = review.current().number;
    Ok(Json(dry_run_result(&candidate.plan, version, &preview)))
}

/// Says what an edit would come to: what differs, what is wrong with it, and the digest. Nothing is stored.
#[utoipa::path(post, path = "/plan/{id}/edits/preview", operation_id = "previewEdit", tag = "trials",
    params(("id" = String, Path, description = "The plan.")),
    request_body(content(
        (ref("#/components/schemas/PlanEdits") = "application/json"),
        (ref("#/components/schemas/MergePatch") = "application/merge-patch+json"),
    )),
    responses((status = 200, description = "What it would come to.", body = ref("#/components/schemas/EditPreview"))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn preview_edit(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
    request: Request,
) -> HttpResult<Json<EditPreviewResult>> {
    let patch = Patch::read(request, &http).await?;
    let review = super::load(&http, &id).await?;
    let (document, _) = patch.apply(&review)?;
    let trials = http.service.engine.trials();
    let previewed = trials
        .preview_edit(&review, document, &caller.principal)
        .await?;
    let diff = DiffResult::new(id, review.current().number, None, previewed.diff);
    Ok(Json(EditPreviewResult::new(
        diff,
        previewed.digest,
        previewed.findings,
    )))
}

/// A condition as steps, rules and approvals have them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "expression": "args.amount < 100", "values": { "args": { "amount": 5 } } }))]
struct CheckExpression {
    /// In CEL. One of more than 2,048 bytes cannot be read.
    expression: String,
    /// Decides it with these values, by name.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    values: Option<Map<String, Value>>,
}

/// Says whether a CEL expression can be read, which names it uses and, with values, what it comes to.
#[utoipa::path(post, path = "/expressions/check", operation_id = "checkExpression", tag = "trials",
    request_body = CheckExpression,
    responses((status = 200, description = "What is to be said about it.", body = ExpressionResult)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn check_expression(
    JsonBody(CheckExpression { expression, values }): JsonBody<CheckExpression>,
) -> Json<ExpressionResult> {
    Json(ExpressionResult::new(&expression, values.as_ref()))
}

/// What is asked about: a stored plan or a document, and the policy of the service or another one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "deploy", "policy": { "rules": [{ "tool": "shell.*", "then": "deny" }] } }))]
struct ExplainPolicy {
    /// A stored plan.
    id: Option<String>,
    /// A plan that is not stored.
    #[schema(value_type = Option<Object>)]
    document: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
    /// What would hold for arguments that are only known later, by step: `any`, `ask` or a CEL predicate.
    #[serde(default)]
    late: BTreeMap<String, String>,
    /// What if this were the policy: `[policy]` of planwright.toml, as JSON.
    #[schema(value_type = Option<Object>)]
    policy: Option<Value>,
}

/// Says for every step of a plan which rule of the policy decides, and why; also of a policy that is not in force.
#[utoipa::path(post, path = "/policy/explain", operation_id = "explainPolicy", tag = "trials",
    request_body = ExplainPolicy,
    responses((status = 200, description = "What the policy says.", body = PolicyExplanation)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn explain_policy(
    State(http): State<Http>,
    JsonBody(asked): JsonBody<ExplainPolicy>,
) -> HttpResult<Json<PolicyExplanation>> {
    let chosen = read_choices(&asked.late)?;
    let policy = asked.policy.as_ref().map(read_policy).transpose()?;
    let candidate = asked_plan(&http, &asked).await?;
    let trials = http.service.engine.trials();
    let explained = trials.explain(&candidate, &chosen, policy.as_ref())?;
    Ok(Json(PolicyExplanation {
        plan_id: candidate.plan.id().to_string(),
        digest: candidate.digest.to_string(),
        policy_version: explained.policy_version,
        verdict: explained.verdict.as_str().to_owned(),
        steps: StepVerdict::of(&explained.judged, &explained.late),
    }))
}

/// Compiles the plan that is asked about.
async fn asked_plan(http: &Http, asked: &ExplainPolicy) -> HttpResult<Candidate> {
    let plans = http.service.engine.plans();
    match (&asked.id, &asked.document) {
        (Some(id), None) => {
            let id: PlanId = id
                .parse()
                .map_err(|error| Problem::of(ProblemCode::BadId, format!("`id`: {error}")))?;
            let review = super::load(http, &id).await?;
            Ok(plans.candidate(&review, &asked.variables).await?)
        }
        (None, Some(document)) => {
            let mut document = Document::from_json(document.clone(), &Bounds::for_untrusted())?;
            document.number_steps();
            document.identify();
            document.variables.extend(asked.variables.clone());
            Ok(plans.compile(document).await?)
        }
        (None, None) | (Some(_), Some(_)) => Err(Problem::bad_request(
            "say which plan: either `id` or `document`",
        )),
    }
}

/// Reads a policy that is only asked about.
pub(super) fn read_policy(value: &Value) -> HttpResult<Policy> {
    let document: PolicyDocument =
        read_value(value.clone()).map_err(|error| unreadable_policy(&error))?;
    Policy::read(&document).map_err(|error| unreadable_policy(&error))
}

fn unreadable_policy(error: &dyn std::error::Error) -> Problem {
    Problem::of(ProblemCode::PolicyUnreadable, format!("`policy`: {error}"))
}
