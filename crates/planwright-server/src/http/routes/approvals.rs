//! The inbox: everything that waits for a person.

use crate::documents::{AnswerSize, step_href};
use crate::http::auth::Caller;
use crate::http::body::Params;
use crate::http::page::{PageBuilder, PageParams};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::{Page, Waiting, WrittenCall};
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::StepIx;
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::{Run, StepState};
use planwright_core::status::PlanStatus;
use planwright_engine::AwaitingPeople;
use planwright_engine::chat::listens;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(list_approvals))
}

/// Which page, and of what.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct InboxParams {
    /// How many things at most.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before.
    #[param(max_length = 256)]
    cursor: Option<String>,
    /// Conversations too in which it is the person's turn to say something.
    #[serde(default)]
    all: bool,
}

/// Lists what waits for a person: plans to approve, calls to approve, questions, and calls with an unknown outcome.
///
/// Each comes with what it covers: the briefing of a plan, with the steps of its sub-plans, or the call as it would be
/// sent. A briefing that the answer has no room for is named by `largeBriefing`, with its size.
/// That holds for the calls of conversations as well. A conversation that only waits for what the person at its terminal
/// says next is left out unless `all` is asked for.
#[utoipa::path(get, path = "/approvals", operation_id = "listApprovals", tag = "decisions",
    params(InboxParams),
    responses((status = 200, description = "What waits, the newest plans first.", body = Page<Waiting>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_approvals(
    State(http): State<Http>,
    caller: Caller,
    Params(InboxParams { limit, cursor, all }): Params<InboxParams>,
) -> HttpResult<Json<Page<Waiting>>> {
    let AwaitingPeople { plans, runs } =
        http.service.engine.inbox().plans_awaiting_people().await?;
    let (mut page, plans) = PageBuilder::begin(&PageParams { limit, cursor }, plans)?;
    let mut size = AnswerSize::default();
    for info in &plans {
        let plan = &info.status.plan;
        if size.is_spent() && !page.is_empty() {
            page.break_off();
            break;
        }
        // One damaged plan does not hide the others.
        let runs = runs.get(plan).map_or(&[][..], Vec::as_slice);
        let asked = Asked {
            http: &http,
            viewer: &caller.principal,
        };
        let waiting = match waiting(&asked, plan, (runs, all), &mut size).await {
            Ok(waiting) => waiting,
            Err(problem) => {
                tracing::error!(%plan, problem = problem.detail, "a plan cannot be looked at");
                Vec::new()
            }
        };
        if !page.put(info, waiting) {
            break;
        }
    }
    Ok(Json(page.finish()))
}

/// The service, and the principal who asks it what waits.
struct Asked<'a> {
    http: &'a Http,
    viewer: &'a Principal,
}

async fn waiting(
    asked: &Asked<'_>,
    plan: &PlanId,
    (runs, all): (&[RunId], bool),
    size: &mut AnswerSize,
) -> HttpResult<Vec<Waiting>> {
    let engine = &asked.http.service.engine;
    let (review, _) = engine.plans().load_review(plan).await?;
    let mut waiting = Vec::new();
    let status = engine.plans().status(&review).await?;
    if matches!(status, PlanStatus::Proposed | PlanStatus::NeedsReview)
        && review.state() != ReviewState::Deleted
    {
        waiting.push(of_plan(asked, &review, size).await?);
    }
    for run in runs {
        let (run, _) = engine.runs().load_run(run, &review).await?;
        for ix in run.waiting().filter(|&ix| all || !listens(&run, ix)) {
            waiting.extend(of_step(asked, &review, (&run, ix), size).await?);
        }
    }
    Ok(waiting)
}

async fn of_plan(
    asked: &Asked<'_>,
    review: &Review,
    size: &mut AnswerSize,
) -> Result<Waiting, Problem> {
    let plans = asked.http.service.engine.plans();
    let candidate = plans.candidate(review, &Map::new()).await?;
    let current = review.current();
    let covered = plans.brief(review, &candidate, asked.viewer).await;
    let href = || format!("/plan/{}/briefing", review.id());
    let (briefing, large_briefing) = size.place_briefing(&covered, href);
    Ok(Waiting {
        kind: "plan",
        since: current.at.to_string(),
        proposed_by: Some(current.by.clone()),
        briefing,
        large_briefing,
        ..empty(review, current.number, candidate.digest.to_string())
    })
}

fn empty(review: &Review, version: u32, digest: String) -> Waiting {
    Waiting {
        kind: "",
        plan_id: review.id().to_string(),
        title: review.current().document.title.clone().unwrap_or_default(),
        version,
        digest,
        since: String::new(),
        proposed_by: None,
        run_id: None,
        step: None,
        expires_at: None,
        call: None,
        written: None,
        briefing: None,
        large_briefing: None,
        questions: Vec::new(),
        reason: None,
    }
}

fn written(run: &Run, ix: StepIx) -> WrittenCall {
    let step = run.definition(ix);
    WrittenCall {
        title: step.title.clone().unwrap_or_default(),
        tool: step.action_label().to_owned(),
        args: Value::Object(step.args.clone()),
    }
}

/// What one step waits for; nothing if it waits for the run of a sub-plan, which is listed itself.
async fn of_step(
    asked: &Asked<'_>,
    review: &Review,
    (run, ix): (&Run, StepIx),
    size: &mut AnswerSize,
) -> Result<Option<Waiting>, Problem> {
    let start = run.start();
    let common = Waiting {
        run_id: Some(run.id().to_string()),
        step: Some(run.step_id(ix).to_string()),
        ..empty(review, start.version, start.digest.to_string())
    };
    Ok(match run.step(ix) {
        StepState::AwaitingApproval {
            asked_at,
            call,
            expires_at,
            ..
        } => {
            let artifacts = asked.http.service.engine.artifacts();
            let call = match call {
                Some(call) => {
                    let step = run.step_id(ix).as_str();
                    let href = || step_href(run.plan().id(), run.id(), step, "arguments");
                    Some(size.place_asked_call(call, href, &**artifacts).await?)
                }
                None => None,
            };
            let (mut written_call, mut briefing, mut large_briefing) = (None, None, None);
            if call.is_none() {
                written_call = Some(written(run, ix));
                let covered = super::step_values::brief_step(asked.http, (run, ix), asked.viewer);
                let covered = covered.await?;
                let step = run.step_id(ix).as_str();
                let href = || step_href(run.plan().id(), run.id(), step, "briefing");
                (briefing, large_briefing) = size.place_briefing(&covered, href);
            }
            let digest = call
                .as_ref()
                .map_or(common.digest, |call| call.digest.clone());
            let since = asked_at.to_string();
            let expires_at = expires_at.map(|at| at.to_string());
            Some(Waiting {
                kind: "step",
                since,
                digest,
                call,
                written: written_call,
                briefing,
                large_briefing,
                expires_at,
                ..common
            })
        }
        StepState::AwaitingInput {
            asked_at,
            asked: questions_asked,
            ..
        } => {
            let questions = questions_asked.questions.iter();
            let questions =
                questions.map(|question| serde_json::to_value(question).unwrap_or(Value::Null));
            Some(Waiting {
                kind: "input",
                since: asked_at.to_string(),
                digest: questions_asked.digest().to_string(),
                questions: questions.collect(),
                ..common
            })
        }
        StepState::OutcomeUnknown { reason, .. } => Some(Waiting {
            kind: "outcome",
            since: review.updated_at().to_string(),
            reason: Some(reason.to_string()),
            ..common
        }),
        _ => None,
    })
}
