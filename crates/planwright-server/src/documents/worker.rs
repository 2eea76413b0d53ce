//! Workers and queues as documents.

use planwright_api::{
    DeadNoticeLine, DeadNoticeList, DispatchStats, QueueLine, WaitingStepsLine, WorkerCounts,
    WorkerLine, WorkerList, WorkerStepLine,
};
use planwright_core::id::RunId;
use planwright_engine::port::{DeadNotice, ListedWorker, QueueState, WaitingOffers};
use planwright_engine::{Workers, WorkersError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time that figures wait for a broker or a database which may be away.
const PATIENCE: Duration = Duration::from_secs(2);

/// The plans of so many runs are looked up for one list.
const MAX_PLANS: usize = 200;

/// Lists the workers and what waits for them, with the plans of their runs.
pub async fn load_workers(workers: &Workers) -> Result<WorkerList, WorkersError> {
    let listed = workers.list().await?;
    let claimed = listed.iter().flat_map(|worker| &worker.claims);
    let owned = listed.iter().flat_map(|worker| &worker.runs);
    let runs: BTreeSet<RunId> = claimed
        .map(|key| &key.run)
        .chain(owned)
        .take(MAX_PLANS)
        .cloned()
        .collect();
    let mut plans = BTreeMap::new();
    for run in runs {
        if let Some(plan) = workers.plan_of_run(&run).await {
            plans.insert(run.to_string(), plan.to_string());
        }
    }
    let list = list_workers(workers, listed).await?;
    Ok(WorkerList { plans, ..list })
}

/// Lists the workers and what waits for them, without the plans of their runs.
pub async fn load_worker_states(workers: &Workers) -> Result<WorkerList, WorkersError> {
    let listed = workers.list().await?;
    list_workers(workers, listed).await
}

async fn list_workers(
    workers: &Workers,
    listed: Vec<ListedWorker>,
) -> Result<WorkerList, WorkersError> {
    let waiting = workers.waiting().await?;
    Ok(WorkerList {
        workers: listed.into_iter().map(worker_line).collect(),
        waiting: waiting.into_iter().map(waiting_line).collect(),
        plans: BTreeMap::new(),
    })
}

/// Lists the notices of a capability that were given up, with the plans of their runs.
pub async fn load_dead_notices(
    workers: &Workers,
    capability: String,
    limit: usize,
) -> Result<DeadNoticeList, WorkersError> {
    let listed = workers.dead(&capability, limit).await?;
    let mut dead: Vec<DeadNoticeLine> = listed.iter().map(dead_notice_line).collect();
    let mut plans: BTreeMap<RunId, Option<String>> = BTreeMap::new();
    for (notice, line) in listed.iter().zip(&mut dead) {
        let Some(run) = notice.notice.as_ref().map(|notice| &notice.run) else {
            continue;
        };
        if !plans.contains_key(run) && plans.len() < MAX_PLANS {
            let plan = workers.plan_of_run(run).await;
            plans.insert(run.clone(), plan.map(|plan| plan.to_string()));
        }
        line.plan = plans.get(run).cloned().flatten();
    }
    Ok(DeadNoticeList { capability, dead })
}

/// Reads the figures of workers and queues; `None` where no step is offered to workers. What cannot
/// be read in a short time is left out, and the problem told: all other figures are shown.
pub async fn load_dispatch_stats(workers: &Workers) -> Option<DispatchStats> {
    let has_broker = workers.have_broker();
    if !workers.are_possible() && !has_broker {
        return None;
    }
    let silent = |what: &str| format!("{what} gave no answer within {} s", PATIENCE.as_secs());
    let mut stats = DispatchStats {
        workers: WorkerCounts::default(),
        waiting: Vec::new(),
        queues: None,
        problem: None,
    };
    if workers.are_possible() {
        match tokio::time::timeout(PATIENCE, load_worker_states(workers)).await {
            Ok(Ok(list)) => {
                stats.workers = count_workers(&list.workers);
                stats.waiting = list.waiting;
            }
            Ok(Err(error)) => stats.problem = Some(error.to_string()),
            Err(_) => stats.problem = Some(silent("the store")),
        }
    }
    if has_broker {
        match tokio::time::timeout(PATIENCE, workers.queues()).await {
            Ok(Ok(queues)) => {
                stats.queues = Some(queues.into_iter().map(queue_line).collect());
            }
            Ok(Err(error)) => stats.problem = Some(error.to_string()),
            Err(_) => stats.problem = Some(silent("the broker")),
        }
    }
    // A store that could have workers and has none is no news.
    let is_empty = stats.workers == WorkerCounts::default()
        && stats.waiting.is_empty()
        && stats.problem.is_none();
    let is_used = has_broker || !workers.capabilities().is_empty();
    (is_used || !is_empty).then_some(stats)
}

/// Counts workers by what they do. Those that are gone do nothing.
pub fn count_workers(workers: &[WorkerLine]) -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    for worker in workers {
        match worker.state {
            "working" => counts.working += 1,
            "idle" => counts.idle += 1,
            "draining" => counts.draining += 1,
            _ => {}
        }
    }
    counts
}

fn state(worker: &ListedWorker) -> &'static str {
    match (worker.is_alive, worker.is_draining) {
        (false, _) => "gone",
        (true, true) => "draining",
        (true, false) if worker.claims.is_empty() && worker.runs.is_empty() => "idle",
        (true, false) => "working",
    }
}

fn worker_line(worker: ListedWorker) -> WorkerLine {
    let state = state(&worker);
    let ListedWorker {
        record,
        started_at,
        seen_at,
        claims,
        runs,
        ..
    } = worker;
    let steps = claims.into_iter().map(|key| WorkerStepLine {
        run: key.run.to_string(),
        step: key.step.to_string(),
        attempt: key.attempt,
    });
    let tools = record.tools.iter();
    WorkerLine {
        id: record.id.0,
        host: record.host,
        pid: record.pid,
        version: record.version,
        capabilities: record.capabilities,
        concurrency: record.concurrency,
        state,
        started_at,
        seen_at,
        steps: steps.collect(),
        runs: runs.iter().map(ToString::to_string).collect(),
        tools: tools
            .map(|tool| tool.definition.tool_name().to_string())
            .collect(),
    }
}

fn waiting_line(offers: WaitingOffers) -> WaitingStepsLine {
    WaitingStepsLine {
        capability: offers.capability,
        steps: offers.count,
        oldest_seconds: offers.oldest.as_secs(),
    }
}

/// Describes the queue of a capability.
pub fn queue_line(state: QueueState) -> QueueLine {
    let QueueState {
        capability,
        waiting,
        held,
        dead,
        oldest,
        redelivered,
    } = state;
    QueueLine {
        capability,
        waiting,
        held,
        dead,
        oldest,
        redelivered,
    }
}

/// Describes a notice that was given up.
pub fn dead_notice_line(dead: &DeadNotice) -> DeadNoticeLine {
    let notice = dead.notice.as_ref();
    DeadNoticeLine {
        id: dead.id.clone(),
        run: notice.map(|notice| notice.run.to_string()),
        plan: None,
        step: notice.map(|notice| notice.step.to_string()),
        attempt: notice.map(|notice| notice.attempt),
        deliveries: dead.deliveries,
        since: dead.since,
    }
}
