//! Runs: beginning them, stopping them, going on, and taking them back.

use super::Seen;
use super::decisions::read_choices;
use crate::documents::{ListedRun, StepPage, add_step_logs, load_plan_runs, read_run_page};
use crate::http::auth::{Caller, ToldTrace, Trace};
use crate::http::body::{OptionalBody, Params, PathId, PathStep};
use crate::http::linked_page::{self, LinkedPage, LinkedParams};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use planwright_api::{
    CriteriaResult, KeptStep, RunAccepted, RunLine, RunResult, StepResult, UndoPreview, UndoStep,
};
use planwright_core::event::trace_of_plan;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::model::ModelRole;
use planwright_core::plan::Limits;
use planwright_core::review::Review;
use planwright_core::run::{Kept, Reflection, ReflectionWish, Run};
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_core::trace::TraceId;
use planwright_engine::port::AcquireError;
use planwright_engine::{
    GivenApproval, PreparedUndo, RunCommand, RunOptions, StartRunError, UndoCandidate,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(run_plan))
        .routes(routes!(list_runs))
        .routes(routes!(get_run))
        .routes(routes!(pause_run))
        .routes(routes!(resume_run))
        .routes(routes!(cancel_run))
        .routes(routes!(fail_run))
        .routes(routes!(fork_run))
        .routes(routes!(undo_run))
        .routes(routes!(check_criteria))
}

/// How the plan is run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct StartRun {
    /// They win over the plan's, and are part of what was approved.
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
    /// Replaces the plan's own limit.
    #[schema(minimum = 1, maximum = 1000)]
    max_concurrency: Option<u32>,
    /// What has to hold for arguments that are only known later, by step: `any`, `ask` or a CEL predicate. The run is
    /// refused (`approved_wider`) if the approval does not say the same.
    late: BTreeMap<String, String>,
    /// A model looks at the run before it ends. What it would change waits for an approval.
    reflect: bool,
    /// If a step fails for good, the remaining work is planned anew. The new version waits for an approval.
    replan: bool,
    /// How often the work is looked at. Default: what the plan says, else 3.
    #[schema(minimum = 1, maximum = 100)]
    max_cycles: Option<u32>,
    /// Maximum number of replans. Default: the plan's value, or 1.
    #[schema(minimum = 1, maximum = 100)]
    max_replans: Option<u32>,
    /// No model is asked any more once so many tokens were used.
    max_tokens: Option<u64>,
}

impl StartRun {
    /// The bounds within which models look at the run, if they are to.
    fn reflection(&self, http: &Http, limits: &Limits) -> HttpResult<Option<Reflection>> {
        let bounds = 1..=Reflection::MAX_CYCLES;
        if [self.max_cycles, self.max_replans]
            .into_iter()
            .flatten()
            .any(|times| !bounds.contains(&times))
        {
            return Err(Problem::bad_request(
                "`maxCycles` and `maxReplans` are between 1 and 100",
            ));
        }
        let wish = ReflectionWish {
            reflect: self.reflect,
            replan: self.replan,
            max_cycles: self.max_cycles,
            max_replans: self.max_replans,
            max_tokens: self.max_tokens,
        };
        for role in wish.roles() {
            http.service.engine.model().resolve(role, None)?;
        }
        Ok(wish.bounds(limits))
    }
}

/// Begins a run of an approved plan. It goes on in the background.
#[utoipa::path(post, path = "/plan/{id}/run", operation_id = "runPlan", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<StartRun>,
    responses((status = 202, description = "The run began.", body = RunAccepted,
        headers(("Location" = String, description = "Where the run is.")))),
    extensions(("x-planwright-action" = json!("run"))))]
async fn run_plan(
    State(http): State<Http>,
    caller: Caller,
    ToldTrace(told): ToldTrace,
    PathId(id): PathId<PlanId>,
    OptionalBody(body): OptionalBody<StartRun>,
) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    let engine = &http.service.engine;
    let reflection = body.reflection(&http, &review.current().document.limits)?;
    let mut options = options(&caller, body.variables, body.max_concurrency)?;
    options.reflection = reflection;
    options.late = read_choices(&body.late)?;
    let candidate = engine
        .runs()
        .check_runnable(&review, &options.variables)
        .await?;
    options.approval = engine.plans().consent_of_policy(&review, &candidate);
    options.trace = told;
    let run = http.supervisor.start_run(&id, options).await?;
    run_answer(&http, &id, &run, run_trace(told, &review)).await
}

/// The trace of a run: the caller's, or that of the plan.
fn run_trace(told: Option<TraceId>, review: &Review) -> String {
    let plan = || review.current().trace;
    let trace = told.or_else(plan);
    trace
        .unwrap_or_else(|| trace_of_plan(review.id()))
        .to_string()
}

fn options(
    caller: &Caller,
    variables: Map<String, Value>,
    max_concurrency: Option<u32>,
) -> HttpResult<RunOptions> {
    if max_concurrency.is_some_and(|limit| limit == 0 || limit > 1_000) {
        return Err(Problem::bad_request(
            "`maxConcurrency` is between 1 and 1000",
        ));
    }
    Ok(RunOptions {
        variables,
        max_concurrency,
        ..RunOptions::new(caller.principal.clone())
    })
}

/// The run, and where it stands at this moment.
pub(super) async fn run_answer(
    http: &Http,
    plan: &PlanId,
    run: &RunId,
    trace_id: String,
) -> HttpResult<Response> {
    http.service.write_files(plan).await;
    let stream = planwright_core::journal::StreamName::Run(run.clone());
    let info = http.service.engine.journals().info(&stream).await?;
    let status = info.map_or(CachedStatus::Run(RunStatus::Executing), |info| {
        info.status.status
    });
    let location = format!("/plan/{plan}/runs/{run}");
    let body = RunAccepted {
        plan_id: plan.to_string(),
        run_id: run.to_string(),
        status: status.to_string(),
        trace_id,
    };
    Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(body)).into_response())
}

/// Lists the runs of a plan, oldest first, then those that belong to other runs.
#[utoipa::path(get, path = "/plan/{id}/runs", operation_id = "listRuns", tag = "runs",
    params(("id" = String, Path, description = "The plan."), LinkedParams),
    responses((status = 200, description = "A page of runs.", body = Vec<RunLine>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_runs(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    let (mut page, last) = LinkedPage::open(format!("/plan/{id}/runs"), params)?;
    let review = super::load(&http, &id).await?;
    let engine = &http.service.engine;
    let runs = load_plan_runs(engine, &review).await?;
    let is_named = |run: &ListedRun<'_>, name: &str| run.id().as_str() == name;
    for run in linked_page::after(&runs, last.as_deref(), is_named)? {
        if !page.put(run.id(), &run.load_line(engine).await?)? {
            break;
        }
    }
    Ok(page)
}

/// Which steps.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct StepParams {
    /// How many steps at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before.
    #[param(max_length = 256)]
    cursor: Option<String>,
    /// Links values of more bytes than this, and leaves the values of steps out of `variables`, where they are a second
    /// time. At most 262144, which is what holds when it is absent.
    #[param(minimum = 0, maximum = 262_144)]
    inline: Option<usize>,
}

/// Steps of a run in one answer.
const MAX_STEPS: usize = 1_000;

impl StepParams {
    fn page(&self, run: &Run) -> HttpResult<StepPage> {
        let limit = self.limit.unwrap_or(MAX_STEPS);
        if limit == 0 || limit > MAX_STEPS {
            return Err(Problem::of(
                ProblemCode::BadParameter,
                format!("`limit` is between 1 and {MAX_STEPS}"),
            ));
        }
        let first = match &self.cursor {
            None => 0,
            Some(last) => {
                let last = run.plan().find(last).ok_or_else(|| {
                    Problem::of(
                        ProblemCode::BadCursor,
                        "`cursor` is not one that this service gave",
                    )
                })?;
                last.index() + 1
            }
        };
        Ok(StepPage {
            first,
            limit,
            inline: self.inline,
        })
    }
}

/// Shows a run: every step, with what came of it.
///
/// An answer has at most 1,000 steps and about 4 MiB of values; `nextCursor` names the next page. A value of more than
/// 256 KiB is not in it: `largeValue` says how it begins, how long it is and where all of it is.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}", operation_id = "getRun", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), StepParams),
    responses((status = 200, description = "The run.", body = RunResult<StepResult>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_run(
    State(http): State<Http>,
    PathStep(id, run): PathStep<PlanId>,
    Params(params): Params<StepParams>,
) -> HttpResult<Json<RunResult>> {
    let review = super::load(&http, &id).await?;
    let run = super::load_run(&http, &review, Some(&run)).await?;
    let engine = &http.service.engine;
    let page = params.page(&run)?;
    let mut result = read_run_page(&run, page, &**engine.artifacts(), engine.now()).await?;
    let most = <RunResult>::MAX_ARGS;
    let journals = engine.journals();
    let sent = journals.sent_calls(run.id(), review, most).await?;
    result.add_calls(sent.arguments, &sent.histories);
    add_step_logs(&mut result, run.id(), &**engine.step_logs()).await;
    Ok(Json(result))
}

/// Which run; the latest one when absent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct WhichRun {
    run: Option<String>,
}

/// Which run is checked, and who is asked.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct CheckRun {
    /// The latest one when absent.
    run: Option<String>,
    /// A configured model; the reflector's when absent.
    #[schema(max_length = 200)]
    model: Option<String>,
}

/// Finds out whether the success criteria of the plan hold after a run of it, and records it.
#[utoipa::path(post, path = "/plan/{id}/check", operation_id = "checkCriteria", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<CheckRun>,
    responses((status = 200, description = "Each criterion, and what speaks for it or against it.", body = CriteriaResult)),
    extensions(("x-planwright-action" = json!("run"))))]
async fn check_criteria(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    OptionalBody(CheckRun { run, model }): OptionalBody<CheckRun>,
) -> HttpResult<Json<CriteriaResult>> {
    let review = super::load(&http, &id).await?;
    let run = super::load_run(&http, &review, run.as_deref()).await?;
    let engine = &http.service.engine;
    if let Some(model) = &model {
        engine.model().resolve(ModelRole::Reflector, Some(model))?;
    }
    let checked = engine
        .runs()
        .check_criteria(run.id(), model.as_deref())
        .await?;
    http.service.write_files(&id).await;
    Ok(Json(CriteriaResult::new(&checked)))
}

/// Pauses a run: what is in flight finishes, nothing new starts.
#[utoipa::path(post, path = "/plan/{id}/pause", operation_id = "pauseRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<WhichRun>,
    responses((status = 202, description = "The run is paused.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("run")), ("x-planwright-decision" = json!(true))))]
async fn pause_run(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(WhichRun { run }): OptionalBody<WhichRun>,
) -> HttpResult<Response> {
    command(
        &http,
        &id,
        run.as_deref(),
        RunCommand::Pause {
            by: caller.principal,
        },
        trace,
    )
    .await
}

/// Cancels a run: what is in flight is stopped, the rest never runs.
#[utoipa::path(post, path = "/plan/{id}/cancel", operation_id = "cancelRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<WhichRun>,
    responses((status = 202, description = "The run is being cancelled.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("cancel"))))]
async fn cancel_run(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(WhichRun { run }): OptionalBody<WhichRun>,
) -> HttpResult<Response> {
    command(
        &http,
        &id,
        run.as_deref(),
        RunCommand::Cancel {
            by: caller.principal,
        },
        trace,
    )
    .await
}

/// Which run is given up, and why.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct FailRun {
    run: Option<String>,
    #[schema(max_length = 10_000)]
    reason: String,
}

/// Gives a run up: it fails, though no step of it was why.
#[utoipa::path(post, path = "/plan/{id}/fail", operation_id = "failRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<FailRun>,
    responses((status = 202, description = "The run failed.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("cancel"))))]
async fn fail_run(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(FailRun { run, reason }): OptionalBody<FailRun>,
) -> HttpResult<Response> {
    super::decisions::check_reason(&reason)?;
    command(
        &http,
        &id,
        run.as_deref(),
        RunCommand::GiveUp {
            by: caller.principal,
            reason,
        },
        trace,
    )
    .await
}

/// Gives a command to a run that goes on.
pub(super) async fn command(
    http: &Http,
    id: &PlanId,
    named: Option<&str>,
    command: RunCommand,
    trace: String,
) -> HttpResult<Response> {
    let review = super::load(http, id).await?;
    let run = super::load_run(http, &review, named).await?;
    let run = run.id().clone();
    http.service.engine.runs().command(&run, command).await?;
    run_answer(http, id, &run, trace).await
}

/// Goes on with a run that was paused or interrupted.
#[utoipa::path(post, path = "/plan/{id}/resume", operation_id = "resumeRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<WhichRun>,
    responses((status = 202, description = "The run goes on.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("run"))))]
async fn resume_run(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(WhichRun { run }): OptionalBody<WhichRun>,
) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    let run = super::load_run(&http, &review, run.as_deref())
        .await?
        .id()
        .clone();
    let engine = &http.service.engine;
    match engine
        .runs()
        .resume_run(&run, RunOptions::new(caller.principal.clone()))
        .await
    {
        Ok(handle) => http.supervisor.adopt(handle).await,
        // A paused run has an owner for as long as its last calls are in flight: the owner goes on
        // with it.
        Err(StartRunError::Acquire(AcquireError::Held { .. })) => {
            http.supervisor
                .command(
                    &run,
                    RunCommand::Resume {
                        by: caller.principal,
                    },
                )
                .await?;
        }
        Err(error) => return Err(error.into()),
    }
    run_answer(&http, &id, &run, trace).await
}

/// Which steps run again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ForkRun {
    /// The run whose results are reused; the latest one when absent.
    #[serde(default)]
    pub(super) run: Option<String>,
    /// The first steps that run again, with everything after them.
    #[schema(min_items = 1)]
    pub(super) from: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub(super) variables: Map<String, Value>,
    /// As for a run from the beginning.
    #[serde(default)]
    pub(super) late: BTreeMap<String, String>,
}

/// Begins a run that takes over the results of another one.
#[utoipa::path(post, path = "/plan/{id}/fork", operation_id = "forkRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = ForkRun,
    responses((status = 202, description = "The run began.", body = RunAccepted)),
    extensions(("x-planwright-action" = json!("run"))))]
async fn fork_run(
    State(http): State<Http>,
    caller: Caller,
    ToldTrace(told): ToldTrace,
    PathId(id): PathId<PlanId>,
    crate::http::body::JsonBody(body): crate::http::body::JsonBody<ForkRun>,
) -> HttpResult<Response> {
    fork(&http, &caller, &id, body, told).await
}

pub(super) async fn fork(
    http: &Http,
    caller: &Caller,
    id: &PlanId,
    body: ForkRun,
    told: Option<TraceId>,
) -> HttpResult<Response> {
    let ForkRun {
        run,
        from,
        variables,
        late,
    } = body;
    if from.is_empty() {
        return Err(Problem::bad_request("`from` names at least one step"));
    }
    let review = super::load(http, id).await?;
    let source = super::load_run(http, &review, run.as_deref())
        .await?
        .id()
        .clone();
    let engine = &http.service.engine;
    let mut options = options(caller, variables, None)?;
    options.late = read_choices(&late)?;
    let candidate = engine
        .runs()
        .check_runnable(&review, &options.variables)
        .await?;
    let unknown = |step: &String| {
        Problem::of(
            ProblemCode::UnknownStep,
            format!("plan `{id}` has no step `{step}`"),
        )
    };
    let find = |step: &String| {
        candidate
            .plan
            .find(step)
            .map(|ix| candidate.plan.step_id(ix).clone())
    };
    let from = from
        .iter()
        .map(|step| find(step).ok_or_else(|| unknown(step)));
    let from = from.collect::<HttpResult<Vec<StepId>>>()?;
    options.approval = engine.plans().consent_of_policy(&review, &candidate);
    options.trace = told;
    let handle = engine.runs().fork(&source, &from, options).await?;
    let run = handle.run_id().clone();
    http.supervisor.adopt(handle).await;
    run_answer(http, id, &run, run_trace(told, &review)).await
}

/// Consent to the calls that take a run back, or a look at them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct UndoRun {
    /// The run that is taken back; the latest one when absent.
    run: Option<String>,
    /// The digest of the calls that were shown by a dry run.
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: Option<String>,
    /// Only show the calls.
    dry_run: bool,
}

/// Takes back what a run did, by calls that were shown before.
#[utoipa::path(post, path = "/plan/{id}/undo", operation_id = "undoRun", tag = "runs",
    params(("id" = String, Path, description = "The plan.")),
    request_body = UndoRun,
    responses(
        (status = 200, description = "The calls that would take it back.", body = UndoPreview),
        (status = 202, description = "The run is being taken back.", body = RunAccepted),
    ),
    extensions(("x-planwright-action" = json!("run approve"))))]
async fn undo_run(
    State(http): State<Http>,
    caller: Caller,
    ToldTrace(told): ToldTrace,
    PathId(id): PathId<PlanId>,
    OptionalBody(UndoRun {
        run,
        digest,
        dry_run,
    }): OptionalBody<UndoRun>,
) -> HttpResult<Response> {
    let review = super::load(&http, &id).await?;
    let run = super::load_run(&http, &review, run.as_deref())
        .await?
        .id()
        .clone();
    let engine = &http.service.engine;
    let UndoCandidate { original, undo, .. } = engine.runs().plan_undo(&run).await?;
    if dry_run {
        return match undo {
            PreparedUndo::Open(open) => Err(Problem::of(
                ProblemCode::BeingUndone,
                format!("{} is taking it back already", open.id()),
            )),
            PreparedUndo::Fresh {
                candidate,
                steps,
                kept,
            } => {
                let undos = steps.iter().zip(&candidate.plan.document().steps);
                let plan = original.plan();
                let preview = UndoPreview {
                    plan_id: id.to_string(),
                    run_id: run.to_string(),
                    digest: candidate.digest.to_string(),
                    steps: undos
                        .map(|(&ix, undo)| UndoStep::new(plan.step_id(ix), undo))
                        .collect(),
                    kept: kept
                        .iter()
                        .map(|(ix, why)| kept_step(&original, *ix, why))
                        .collect(),
                };
                Ok(Json(preview).into_response())
            }
        };
    }
    let trace = told.or_else(|| original.start().trace);
    let mut options = RunOptions {
        trace,
        ..RunOptions::new(caller.principal.clone())
    };
    if matches!(undo, PreparedUndo::Fresh { .. }) {
        let shown = Seen {
            version: None,
            digest,
        }
        .shown()?;
        options.approval = Some(GivenApproval::new(
            shown,
            caller.principal,
            caller.assurance,
        ));
    }
    let handle = Box::pin(engine.runs().undo(&run, options)).await?;
    let undoing = handle.run_id().clone();
    http.supervisor.adopt(handle).await;
    run_answer(&http, &id, &undoing, run_trace(trace, &review)).await
}

fn kept_step(original: &Run, ix: planwright_core::plan::StepIx, why: &Kept) -> KeptStep {
    let reason = match why {
        Kept::NoUndo => "it says nothing about how to take it back".to_owned(),
        Kept::Reused { from } => format!("{from} did it"),
        Kept::Child { run } => format!("{run} did it"),
    };
    KeptStep {
        step: original.plan().step_id(ix).to_string(),
        reason,
    }
}
