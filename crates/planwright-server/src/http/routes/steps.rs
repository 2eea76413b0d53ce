//! Single steps of a run: what people decide about them and tell them.

use super::Seen;
use super::decisions::{RejectPlan, Yes, check_reason};
use super::runs::{ForkRun, fork};
use crate::http::auth::{Caller, ToldTrace, Trace};
use crate::http::body::{JsonBody, OptionalBody, PathStep};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use planwright_api::{RunAccepted, StepDecided};
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::policy::Permission;
use planwright_core::review::Review;
use planwright_core::run::{Asked, Reply, Resolution, Run, Shown};
use planwright_core::status::StepStatus;
use planwright_engine::{CommandError, RunCommand};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(approve_step))
        .routes(routes!(reject_step))
        .routes(routes!(skip_step))
        .routes(routes!(retry_step))
        .routes(routes!(resolve_step))
        .routes(routes!(answer_step))
}

/// A step of a run. `parent:child` is a step of the run that `parent` is doing.
struct Target {
    review: Review,
    run: Run,
    /// Where the journal of the run ended.
    head: Head,
    step: String,
}

async fn target(http: &Http, plan: &PlanId, step: &str, named: Option<&str>) -> HttpResult<Target> {
    let mut review = super::load(http, plan).await?;
    let (mut run, mut head) = super::load_run_with_head(http, &review, named).await?;
    let mut step = step;
    let unknown = |run: &Run, step: &str| {
        Problem::of(
            ProblemCode::UnknownStep,
            format!("plan `{}` has no step `{step}`", run.plan().id()),
        )
    };
    while let Some((parent, rest)) = step.split_once(':') {
        let ix = run.find(parent).ok_or_else(|| unknown(&run, parent))?;
        let not_begun = || {
            Problem::of(
                ProblemCode::SubPlanNotBegun,
                format!("step `{parent}` has not begun to run another plan"),
            )
        };
        let child = run.child_runs(ix).latest().ok_or_else(not_begun)?;
        let begun = http.service.engine.journals().plan_of_run(&child).await;
        let plan = begun.map_err(|_| not_begun())?;
        review = super::load(http, &plan).await?;
        (run, head) = http.service.engine.runs().load_run(&child, &review).await?;
        step = rest;
    }
    if run.find(step).is_none() && run.plan().find(step).is_none() {
        return Err(unknown(&run, step));
    }
    Ok(Target {
        review,
        run,
        head,
        step: step.to_owned(),
    })
}

/// Gives the command and says where the step stands then.
async fn decide(
    http: &Http,
    target: Target,
    command: RunCommand,
    trace_id: String,
) -> HttpResult<Json<StepDecided>> {
    let Target {
        review,
        mut run,
        head,
        step,
    } = target;
    http.supervisor.command(run.id(), command).await?;
    let runs = http.service.engine.runs();
    runs.bring_up_to_date(&mut run, head).await?;
    http.supervisor.files_are_due(review.id());
    Ok(Json(StepDecided {
        plan_id: review.id().to_string(),
        run_id: run.id().to_string(),
        state: run
            .find(&step)
            .map_or(StepStatus::Pending, |ix| run.step(ix).status())
            .to_string(),
        step,
        status: run.status().to_string(),
        trace_id,
    }))
}

/// A yes to the step, or to the concrete call that was shown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "decision": "approve", "version": 1 }))]
struct ApproveStep {
    #[expect(dead_code, reason = "its presence is what counts")]
    decision: Yes,
    version: Option<u32>,
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: Option<String>,
    #[serde(default)]
    run: Option<String>,
}

/// Approves a step that waits for it.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/approve", operation_id = "approveStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = ApproveStep,
    responses((status = 200, description = "The approval is recorded.", body = StepDecided)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn approve_step(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathStep(id, step): PathStep<PlanId>,
    JsonBody(body): JsonBody<ApproveStep>,
) -> HttpResult<Json<StepDecided>> {
    let shown = Seen {
        version: body.version,
        digest: body.digest,
    }
    .shown()?;
    let place = (&id, step.as_str(), body.run.as_deref());
    approve(&http, caller, place, shown, trace).await
}

/// Records an approval of a step of the run that is named, or of the latest one.
pub(super) async fn approve(
    http: &Http,
    caller: Caller,
    (id, step, run): (&PlanId, &str, Option<&str>),
    shown: Shown,
    trace: String,
) -> HttpResult<Json<StepDecided>> {
    let target = target(http, id, step, run).await?;
    let command = RunCommand::Approve {
        step: target.step.clone(),
        by: caller.principal,
        assurance: caller.assurance,
        shown: shown.into(),
    };
    decide(http, target, command, trace).await
}

/// Rejects a step that waits for approval: it never runs, and what depends on it is blocked.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/reject", operation_id = "rejectStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = RejectPlan,
    responses((status = 200, description = "The rejection is recorded.", body = StepDecided)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn reject_step(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathStep(id, step): PathStep<PlanId>,
    JsonBody(body): JsonBody<RejectPlan>,
) -> HttpResult<Json<StepDecided>> {
    let RejectPlan {
        version,
        digest,
        reason,
        ..
    } = body;
    let shown = Seen { version, digest }.shown()?;
    let place = (&id, step.as_str(), None);
    reject(&http, caller, place, (shown, reason), trace).await
}

/// Records a rejection of a step of the run that is named, or of the latest one.
pub(super) async fn reject(
    http: &Http,
    caller: Caller,
    (id, step, run): (&PlanId, &str, Option<&str>),
    (shown, reason): (Shown, String),
    trace: String,
) -> HttpResult<Json<StepDecided>> {
    check_reason(&reason)?;
    let target = target(http, id, step, run).await?;
    let command = RunCommand::Deny {
        step: target.step.clone(),
        by: caller.principal,
        shown: shown.into(),
        reason,
    };
    decide(http, target, command, trace).await
}

/// Why a step is left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct SkipStep {
    #[schema(max_length = 10_000)]
    reason: String,
    run: Option<String>,
}

/// Leaves out a step that has not begun. What depends on it goes on without.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/skip", operation_id = "skipStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = Option<SkipStep>,
    responses((status = 200, description = "The step is skipped.", body = StepDecided)),
    extensions(("x-planwright-action" = json!("resolve"))))]
async fn skip_step(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathStep(id, step): PathStep<PlanId>,
    OptionalBody(SkipStep { reason, run }): OptionalBody<SkipStep>,
) -> HttpResult<Json<StepDecided>> {
    check_reason(&reason)?;
    let target = target(&http, &id, &step, run.as_deref()).await?;
    // A token may hold less than its principal does.
    let may_approve = caller.role.includes(Permission::Approve);
    target
        .run
        .check_may_leave_out(&target.step, &caller.principal, may_approve)
        .map_err(CommandError::from)?;
    let command = RunCommand::LeaveOut {
        step: target.step.clone(),
        by: caller.principal,
        reason,
    };
    decide(&http, target, command, trace).await
}

/// Which run; the latest one when absent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct RetryStep {
    run: Option<String>,
}

/// Runs a step and all after it again: a new run that takes over the other results of an ended one.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/retry", operation_id = "retryStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = Option<RetryStep>,
    responses((status = 202, description = "A new run began with the step.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("run"))))]
async fn retry_step(
    State(http): State<Http>,
    caller: Caller,
    ToldTrace(told): ToldTrace,
    PathStep(id, step): PathStep<PlanId>,
    OptionalBody(RetryStep { run }): OptionalBody<RetryStep>,
) -> HttpResult<Response> {
    let target = target(&http, &id, &step, run.as_deref()).await?;
    if !target.run.state().is_terminal() {
        let state = target
            .run
            .find(&target.step)
            .map_or(StepStatus::Pending, |ix| target.run.step(ix).status());
        return Err(Problem::of(ProblemCode::RunNotEnded, format!("step `{step}` is {state} and its run has not ended")).hint(
            "a step is retried by itself as its plan says; once the run has ended it can be run again",
        ));
    }
    let body = ForkRun {
        run: Some(target.run.id().to_string()),
        from: vec![target.step],
        variables: target.run.plan().document().variables.clone(),
        late: BTreeMap::new(),
    };
    fork(&http, &caller, target.review.id(), body, told).await
}

/// What became of the call.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum OutcomeWord {
    /// It happened.
    Happened,
    /// It had no effect: the attempt failed.
    DidNotHappen,
    /// Call it again, regardless of what happened before.
    RunAgain,
}

/// What a person found out about a call whose outcome is unknown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResolveStep {
    outcome: OutcomeWord,
    /// What the call returned, if it happened.
    #[serde(default)]
    #[schema(value_type = Value)]
    value: Option<Value>,
    #[serde(default)]
    run: Option<String>,
}

/// Says what became of a call whose outcome is unknown.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/resolve", operation_id = "resolveStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = ResolveStep,
    responses((status = 200, description = "The outcome is recorded.", body = StepDecided)),
    extensions(("x-planwright-action" = json!("resolve"))))]
async fn resolve_step(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathStep(id, step): PathStep<PlanId>,
    JsonBody(ResolveStep {
        outcome,
        value,
        run,
    }): JsonBody<ResolveStep>,
) -> HttpResult<Json<StepDecided>> {
    let target = target(&http, &id, &step, run.as_deref()).await?;
    let resolution = match outcome {
        OutcomeWord::Happened => {
            let value = value.unwrap_or_default();
            let engine = &http.service.engine;
            engine
                .runs()
                .resolution_with_value(target.run.id(), value)
                .await?
        }
        OutcomeWord::DidNotHappen => Resolution::DidNotHappen,
        OutcomeWord::RunAgain => Resolution::RunAgain,
    };
    let command = RunCommand::Resolve {
        step: target.step.clone(),
        by: caller.principal,
        resolution,
    };
    decide(&http, target, command, trace).await
}

/// The answer to what a step asks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerStep {
    /// The digest of the questions that were shown.
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    question: String,
    /// The values asked for, if there is one question.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    values: Option<Map<String, Value>>,
    /// The values for each question, by its key, if there are several.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, BTreeMap<String, Value>>>)]
    answers: Option<BTreeMap<String, Map<String, Value>>>,
    /// The person does not want to say.
    #[serde(default)]
    decline: bool,
    #[serde(default)]
    run: Option<String>,
}

/// Answers what a step asks a person.
#[utoipa::path(post, path = "/plan/{id}/steps/{step}/input", operation_id = "answerStep", tag = "steps",
    params(("id" = String, Path, description = "The plan."), ("step" = String, Path, description = "The step.")),
    request_body = AnswerStep,
    responses((status = 200, description = "The answer is recorded.", body = StepDecided)),
    extensions(("x-planwright-action" = json!("resolve"))))]
async fn answer_step(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathStep(id, step): PathStep<PlanId>,
    JsonBody(body): JsonBody<AnswerStep>,
) -> HttpResult<Json<StepDecided>> {
    let question = body
        .question
        .parse()
        .map_err(|error| Problem::bad_request(format!("`question`: {error}")))?;
    let target = target(&http, &id, &step, body.run.as_deref()).await?;
    let asked = target
        .run
        .find(&target.step)
        .and_then(|ix| target.run.step(ix).question());
    let nothing = || {
        Problem::of(
            ProblemCode::NothingToAnswer,
            format!("step `{step}` asks nothing"),
        )
    };
    let replies = replies(asked.ok_or_else(nothing)?, body)?;
    let command = RunCommand::GiveInput {
        step: target.step.clone(),
        by: caller.principal,
        question,
        replies,
    };
    decide(&http, target, command, trace).await
}

/// One reply per question, in their order.
fn replies(asked: &Asked, body: AnswerStep) -> HttpResult<Vec<Reply>> {
    match (body.values, body.answers, body.decline) {
        (None, None, true) => Ok(vec![Reply::Decline; asked.questions.len()]),
        (Some(values), None, false) if asked.questions.len() == 1 => {
            Ok(vec![Reply::Values(values)])
        }
        (Some(_), None, false) => Err(Problem::bad_request(
            "there are several questions: give `answers`",
        )),
        (None, Some(mut answers), false) => {
            let replies = asked.questions.iter().map(|question| {
                let missing = || {
                    Problem::bad_request(format!("the question `{}` is not answered", question.key))
                };
                answers
                    .remove(&question.key)
                    .map(Reply::Values)
                    .ok_or_else(missing)
            });
            let replies = replies.collect::<HttpResult<Vec<Reply>>>()?;
            match answers.keys().next() {
                None => Ok(replies),
                Some(other) => Err(Problem::bad_request(format!("no step asks `{other}`"))),
            }
        }
        _ => Err(Problem::bad_request(
            "give one of `values`, `answers` and `decline`",
        )),
    }
}
