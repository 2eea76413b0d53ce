//! The inbox: everything that waits for a person.

use crate::documents::{AnswerSize, step_href};
use crate::http::auth::Caller;
use crate::http::body::Params;
use crate::http::page::{PageBuilder, PageParams};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::{Page, Waiting, WrittenCall};
use planwright_core::briefing::{Effect, Risk};
use planwright_core::id::RunId;
use planwright_core::plan::StepIx;
use planwright_core::review::Review;
use planwright_core::run::{Run, StepState};
use planwright_engine::port::StreamInfo;
use planwright_engine::{AwaitingPeople, WaitKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
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
    /// Only these: `plan`, `step`, `input` or `outcome`; several are separated by commas.
    #[param(max_length = 64)]
    kind: Option<String>,
    /// Only what the reader may decide.
    #[serde(default)]
    mine: bool,
    /// Only approvals of this risk.
    #[param(inline)]
    risk: Option<RiskParam>,
}

/// How much care something deserves.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RiskParam {
    Low,
    Medium,
    High,
}

impl From<RiskParam> for Risk {
    fn from(risk: RiskParam) -> Self {
        match risk {
            RiskParam::Low => Self::Low,
            RiskParam::Medium => Self::Medium,
            RiskParam::High => Self::High,
        }
    }
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
    Params(params): Params<InboxParams>,
) -> HttpResult<Json<Page<Waiting>>> {
    let wanted = Wanted::read(&params)?;
    let InboxParams { limit, cursor, .. } = params;
    let AwaitingPeople { plans, runs } =
        http.service.engine.inbox().plans_awaiting_people().await?;
    let (mut page, plans) = PageBuilder::begin(&PageParams { limit, cursor }, plans)?;
    let mut size = AnswerSize::default();
    for info in &plans {
        let plan = &info.status.plan;
        let runs = runs.get(plan).map_or(&[][..], Vec::as_slice);
        let asked = Asked {
            http: &http,
            viewer: &caller,
        };
        match put_waiting(&asked, info, (runs, &wanted), (&mut page, &mut size)).await {
            Ok(true) => page.pass(info),
            Ok(false) => break,
            // One damaged plan does not hide the others.
            Err(problem) => {
                tracing::error!(%plan, problem = problem.detail, "a plan cannot be looked at");
            }
        }
    }
    Ok(Json(page.finish()))
}

/// The service, and the principal who asks it what waits.
struct Asked<'a> {
    http: &'a Http,
    viewer: &'a Caller,
}

/// Puts what waits in one plan on the page. False once the page is full: the rest is for the next one.
async fn put_waiting(
    asked: &Asked<'_>,
    info: &StreamInfo,
    (runs, wanted): (&[RunId], &Wanted),
    (page, size): (&mut PageBuilder<Waiting>, &mut AnswerSize),
) -> HttpResult<bool> {
    let plan = &info.status.plan;
    let inbox = asked.http.service.engine.inbox();
    let waits = inbox.load_waits(plan, runs, wanted.all).await?;
    let mut names = Vec::new();
    let mut places = Vec::new();
    if waits.decides_plan && wanted.kind(WaitKind::Plan) {
        names.push("plan".to_owned());
        places.push(None);
    }
    for of_run in &waits.runs {
        let run = &of_run.run;
        let steps = of_run.steps.iter().filter(|(_, kind)| wanted.kind(*kind));
        for (ix, _) in steps {
            names.push(format!("{} {}", run.id(), run.step_id(*ix)));
            places.push(Some((run, *ix)));
        }
    }
    let first = page.first_of(plan, &names);
    for (name, place) in names.into_iter().zip(places).skip(first) {
        if page.is_full() || size.is_spent() && !page.is_empty() {
            page.break_off();
            return Ok(false);
        }
        let waiting = match place {
            None => of_plan(asked, &waits.review, wanted, size).await?,
            Some(place) => of_step(asked, &waits.review, place, size)
                .await?
                .filter(|item| wanted.takes(item)),
        };
        if let Some(waiting) = waiting {
            page.put_one(info, name, waiting);
        }
    }
    Ok(true)
}

/// What of the inbox is asked for.
#[derive(Debug)]
struct Wanted {
    all: bool,
    kinds: Vec<WaitKind>,
    mine: bool,
    risk: Option<Risk>,
}

impl Wanted {
    fn read(params: &InboxParams) -> HttpResult<Self> {
        let unknown = |word: &str| {
            Problem::of(
                ProblemCode::BadParameter,
                format!("`kind`: `{word}` is none of plan, step, input and outcome"),
            )
        };
        let mut kinds = Vec::new();
        for word in params.kind.iter().flat_map(|words| words.split(',')) {
            let kind = WaitKind::ALL.into_iter().find(|kind| kind.as_str() == word);
            kinds.push(kind.ok_or_else(|| unknown(word))?);
        }
        Ok(Self {
            all: params.all,
            kinds,
            mine: params.mine,
            risk: params.risk.map(Into::into),
        })
    }

    fn kind(&self, kind: WaitKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn takes(&self, item: &Waiting) -> bool {
        let risky = self
            .risk
            .is_none_or(|risk| item.risk == Some(risk.as_str()));
        risky && (!self.mine || item.may_approve != Some(false))
    }
}

async fn of_plan(
    asked: &Asked<'_>,
    review: &Review,
    wanted: &Wanted,
    size: &mut AnswerSize,
) -> Result<Option<Waiting>, Problem> {
    let engine = &asked.http.service.engine;
    let plans = engine.plans();
    let briefings = engine.briefings();
    let candidate = plans.candidate(review, &Map::new()).await?;
    let current = review.current();
    let reader = asked.viewer.reader(engine.policy());
    let judged = plans.judge(&candidate.plan);
    let by = (&reader.principal, reader.assurance);
    let may_approve = reader.refusal.is_none()
        && plans
            .check_approval(review, &candidate, &judged, by)
            .is_ok();
    let line = Waiting {
        kind: WaitKind::Plan.as_str(),
        since: current.at.to_string(),
        proposed_by: Some(current.by.clone()),
        risk: Some(briefings.brief_effects(review, &candidate).risk().as_str()),
        tools: candidate
            .plan
            .tool_names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        may_approve: Some(may_approve),
        ..empty(review, current.number, candidate.digest.to_string())
    };
    if !wanted.takes(&line) {
        return Ok(None);
    }
    let covered = briefings
        .brief(review, &candidate, &asked.viewer.principal)
        .await;
    let href = || format!("/plan/{}/briefing", review.id());
    let (briefing, large_briefing) = size.place_briefing(&covered, href);
    Ok(Some(Waiting {
        briefing,
        large_briefing,
        ..line
    }))
}

fn empty(review: &Review, version: u32, digest: String) -> Waiting {
    Waiting {
        kind: "",
        plan_id: review.id().to_string(),
        title: review.current().document.heading().unwrap_or_default(),
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
        risk: None,
        tools: Vec::new(),
        may_approve: None,
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

/// How much care a call of a step deserves.
fn step_risk(http: &Http, (run, ix): (&Run, StepIx), tool: &str) -> Risk {
    let step = run.definition(ix);
    let catalog = http.service.engine.catalog();
    let effect = Effect::of_name(tool, &catalog);
    Risk::of_effect(effect.kind, step.undo.is_some())
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
            let mut written_call = None;
            let mut briefing = None;
            let mut large_briefing = None;
            if call.is_none() {
                written_call = Some(written(run, ix));
                let covered =
                    super::step_values::brief_step(asked.http, (run, ix), &asked.viewer.principal);
                let covered = covered.await?;
                let step = run.step_id(ix).as_str();
                let href = || step_href(run.plan().id(), run.id(), step, "briefing");
                (briefing, large_briefing) = size.place_briefing(&covered, href);
            }
            let tool = call.as_ref().map_or_else(
                || run.definition(ix).action_label().to_owned(),
                |call| call.tool.clone(),
            );
            let risk = step_risk(asked.http, (run, ix), &tool);
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
                risk: Some(risk.as_str()),
                tools: run
                    .definition(ix)
                    .tool
                    .is_some()
                    .then_some(tool)
                    .into_iter()
                    .collect(),
                ..common
            })
        }
        state if state.question().is_some() => {
            let Some((questions_asked, asked_at)) = state.question().zip(state.question_asked_at())
            else {
                return Ok(None);
            };
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
