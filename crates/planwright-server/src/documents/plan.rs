//! A plan and its runs, loaded as documents.

use super::threads::newest_threads;
use planwright_api::{
    ApprovalLine, ApprovalStanding, ChangesSince, LeftOut, ModelCostLine, PlanDetails, PlanGraph,
    PlanningLine, RunLine, StepFacts, StepVerdict, ThreadLine,
};
use planwright_core::error::ClassifiedError as _;
use planwright_core::id::RunId;
use planwright_core::journal::{StreamName, decode};
use planwright_core::policy::JudgedPlan;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{OpenedRun, Review};
use planwright_core::run::RunEvent;
use planwright_core::status::CachedStatus;
use planwright_engine::port::{StoreError, StreamInfo};
use planwright_engine::{Candidate, Engine, LoadError, Reapproval, ReviewError, with_causes};
use std::collections::{BTreeMap, HashMap};

/// Lists the runs of a plan, oldest first, then those that belong to other runs.
pub async fn load_run_lines(engine: &Engine, review: &Review) -> Result<Vec<RunLine>, StoreError> {
    load_lines(engine, &load_plan_runs(engine, review).await?).await
}

/// A run of a plan that is listed; its journal is not read yet.
#[derive(Debug)]
pub enum ListedRun<'a> {
    /// The plan was opened for it. The status is that of the store.
    Opened(&'a OpenedRun, Option<CachedStatus>),
    /// It belongs to another run: an undo, or the work of a step.
    Dependent(RunId, StreamInfo),
}

impl ListedRun<'_> {
    pub fn id(&self) -> &RunId {
        match self {
            Self::Opened(opened, _) => &opened.run,
            Self::Dependent(id, _) => id,
        }
    }

    /// Describes the run.
    pub async fn load_line(&self, engine: &Engine) -> Result<RunLine, StoreError> {
        match self {
            Self::Opened(opened, status) => Ok(RunLine {
                id: opened.run.to_string(),
                version: opened.version,
                status: status
                    .as_ref()
                    .map_or_else(|| "unknown".to_owned(), ToString::to_string),
                started_at: opened.at.to_string(),
                undoes: None,
                parent: None,
            }),
            Self::Dependent(id, info) => load_dependent_run(engine, id, info).await,
        }
    }
}

/// Finds the runs of a plan, oldest first, then those that belong to other runs.
pub async fn load_plan_runs<'a>(
    engine: &Engine,
    review: &'a Review,
) -> Result<Vec<ListedRun<'a>>, StoreError> {
    let infos = engine.journals().runs(review.id()).await?;
    let mut order = Vec::with_capacity(infos.len());
    let mut found = HashMap::with_capacity(infos.len());
    for info in infos {
        if let StreamName::Run(id) = &info.stream {
            order.push(id.clone());
            found.insert(id.clone(), info);
        }
    }
    // Of a run that was written off the store knows how it ended, and its journal says nothing.
    let written_off = review.written_off().iter().map(|run| &run.opened);
    let opened = review.runs().iter().chain(written_off);
    let mut runs: Vec<ListedRun<'a>> = opened
        .map(|opened| {
            let status = found.remove(&opened.run).map(|info| info.status.status);
            ListedRun::Opened(opened, status)
        })
        .collect();
    for id in order {
        if let Some(info) = found.remove(&id) {
            runs.push(ListedRun::Dependent(id, info));
        }
    }
    Ok(runs)
}

async fn load_lines(engine: &Engine, runs: &[ListedRun<'_>]) -> Result<Vec<RunLine>, StoreError> {
    let mut lines = Vec::with_capacity(runs.len());
    for run in runs {
        lines.push(run.load_line(engine).await?);
    }
    Ok(lines)
}

/// The principal who reads a document, for what it says about their own decision.
#[derive(Debug, Clone)]
pub struct Reader {
    pub principal: Principal,
    pub assurance: Assurance,
    /// Why they may approve nothing at all, as of how they came here.
    pub refusal: Option<String>,
}

/// How much of its history the document of a plan has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// All runs and comments.
    Whole,
    /// The newest: what one answer has room for.
    Newest,
}

/// Runs in the document of a plan that is one answer.
const MAX_RUNS: usize = 200;

/// Describes a run that belongs to another one: an undo, or the work of a step.
async fn load_dependent_run(
    engine: &Engine,
    id: &RunId,
    info: &StreamInfo,
) -> Result<RunLine, StoreError> {
    let first = engine.journals().read(&info.stream, 0, 1).await?;
    let event = first
        .first()
        .and_then(|record| decode::<RunEvent>(record).ok())
        .map(|entry| entry.event);
    let (version, undoes, parent) = match event {
        Some(RunEvent::RunStarted {
            version,
            undoes,
            parent,
            ..
        }) => (version, undoes, parent),
        Some(_) | None => (0, None, None),
    };
    Ok(RunLine {
        id: id.to_string(),
        version,
        status: info.status.status.to_string(),
        started_at: info.created_at.to_string(),
        undoes: undoes.map(|run| run.to_string()),
        parent: parent.map(|parent| parent.run.to_string()),
    })
}

/// Describes a plan as it would run at this moment, with its runs, approvals and comments.
pub async fn load_plan_details<'a>(
    engine: &Engine,
    review: &'a Review,
    candidate: &Candidate,
    status: &'a str,
    reader: &Reader,
    history: History,
) -> Result<PlanDetails<'a>, ReviewError> {
    let judged = engine.plans().judge(&candidate.plan);
    let late = judged.late_choices(&BTreeMap::new(), &engine.policy().late_bound);
    let now = engine.now();
    let changes = engine.runs().reapproval(review, candidate).await?;
    let runs = load_plan_runs(engine, review)
        .await
        .map_err(LoadError::from)?;
    let (first_run, comments, left_out) = match history {
        History::Whole => (0, ThreadLine::all(review), 0),
        History::Newest => {
            let (comments, left_out) = newest_threads(review);
            (runs.len().saturating_sub(MAX_RUNS), comments, left_out)
        }
    };
    let current = review.current();
    let briefing = engine.briefings().brief_effects(review, candidate);
    Ok(PlanDetails {
        document: &current.document,
        created_at: review.created_at().to_string(),
        created_by: author(review).clone(),
        updated_at: review.updated_at().to_string(),
        proposed_by: current.by.clone(),
        graph: PlanGraph::new(&candidate.plan),
        facts: StepFacts::all(&candidate.plan, &briefing, &engine.catalog()),
        risk: briefing.risk().as_str(),
        approval: approval_standing(engine, review, candidate, &judged, reader),
        predicted_ms: None,
        predicted_cost_usd: None,
        status,
        version: current.number,
        digest: candidate.digest,
        runs: load_lines(engine, runs.get(first_run..).unwrap_or_default())
            .await
            .map_err(LoadError::from)?,
        findings: candidate.findings.clone(),
        policy: StepVerdict::of(&judged, &late),
        approvals: review
            .approvals()
            .iter()
            .map(|approval| ApprovalLine::new(approval, now))
            .collect(),
        comments,
        left_out: LeftOut {
            runs: first_run,
            comments: left_out,
        },
        changes: changes.map(changes_since),
        lost_safeguards: review.lost_safeguards().map(Into::into),
        run_requested: review.requested_run(engine.now()).map(Into::into),
        planning: review.current().planning.as_deref().map(PlanningLine::from),
        models: ModelCostLine::all(&engine.journals().model_costs(review).await?),
    })
}

/// Returns the principal who brought the first version.
fn author(review: &Review) -> &Principal {
    let first = review.versions().first();
    first.map_or(&review.current().by, |version| &version.by)
}

/// Describes how far the approval of what would run now has come.
fn approval_standing(
    engine: &Engine,
    review: &Review,
    candidate: &Candidate,
    judged: &JudgedPlan,
    reader: &Reader,
) -> ApprovalStanding {
    let given = review.given_approvals(&candidate.digest, engine.now());
    let refusal = reader.refusal.clone().map(|words| (words, None));
    let refusal = refusal.or_else(|| {
        let by = (&reader.principal, reader.assurance);
        let checked = engine.plans().check_approval(review, candidate, judged, by);
        checked
            .err()
            .map(|error| (with_causes(&error), Some(error.code())))
    });
    ApprovalStanding::new(
        engine.policy().approval.required(),
        given.iter().map(|approval| approval.by.clone()).collect(),
        refusal,
    )
}

fn changes_since(reapproval: Reapproval) -> ChangesSince {
    ChangesSince {
        since: reapproval.since,
        diff: reapproval.diff,
        agreed: reapproval.agreed,
    }
}
