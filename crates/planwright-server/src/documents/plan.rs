//! A plan and its runs, loaded as documents.

use planwright_api::{
    ApprovalLine, ChangesSince, ModelCostLine, PlanDetails, PlanningLine, RunLine, StepVerdict,
    ThreadLine,
};
use planwright_core::id::RunId;
use planwright_core::journal::{StreamName, decode};
use planwright_core::review::{OpenedRun, Review};
use planwright_core::run::RunEvent;
use planwright_core::status::CachedStatus;
use planwright_engine::port::{StoreError, StreamInfo};
use planwright_engine::{Candidate, Engine, LoadError, Reapproval, ReviewError};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Lists the runs of a plan, oldest first, then those that belong to other runs.
pub async fn load_run_lines(engine: &Engine, review: &Review) -> Result<Vec<RunLine>, StoreError> {
    let infos = engine.journals().runs(review.id()).await?;
    let statuses: HashMap<&StreamName, &CachedStatus> = infos
        .iter()
        .map(|info| (&info.stream, &info.status.status))
        .collect();
    // Of a run that was written off the store knows how it ended, and its journal says nothing.
    let written_off = review.written_off().iter().map(|run| &run.opened);
    let runs: Vec<&OpenedRun> = review.runs().iter().chain(written_off).collect();
    let opened: HashSet<&RunId> = runs.iter().map(|opened| &opened.run).collect();
    let lines = runs.iter().map(|opened| {
        let status = statuses.get(&StreamName::Run(opened.run.clone()));
        RunLine {
            id: opened.run.to_string(),
            version: opened.version,
            status: status.map_or_else(|| "unknown".to_owned(), |status| status.to_string()),
            started_at: opened.at.to_string(),
            undoes: None,
            parent: None,
        }
    });
    let mut lines: Vec<RunLine> = lines.collect();
    for info in &infos {
        if let StreamName::Run(id) = &info.stream
            && !opened.contains(id)
        {
            lines.push(load_dependent_run(engine, id, info).await?);
        }
    }
    Ok(lines)
}

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
) -> Result<PlanDetails<'a>, ReviewError> {
    let judged = engine.plans().judge(&candidate.plan);
    let late = judged.late_choices(&BTreeMap::new(), &engine.policy().late_bound);
    let now = engine.now();
    let changes = engine.runs().reapproval(review, candidate).await?;
    Ok(PlanDetails {
        document: &review.current().document,
        status,
        version: review.current().number,
        digest: candidate.digest,
        runs: load_run_lines(engine, review)
            .await
            .map_err(LoadError::from)?,
        policy: StepVerdict::of(&judged, &late),
        approvals: review
            .approvals()
            .iter()
            .map(|approval| ApprovalLine::new(approval, now))
            .collect(),
        comments: ThreadLine::all(review),
        changes: changes.map(changes_since),
        lost_safeguards: review.lost_safeguards().map(Into::into),
        planning: review.current().planning.as_deref().map(PlanningLine::from),
        models: ModelCostLine::all(&engine.journals().model_costs(review).await?),
    })
}

fn changes_since(reapproval: Reapproval) -> ChangesSince {
    ChangesSince {
        since: reapproval.since,
        diff: reapproval.diff,
        agreed: reapproval.agreed,
    }
}
