//! `workers`: who carries out runs and steps, and what they do.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, DIM, YELLOW, ago, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_engine::port::{ListedWorker, Offers as _, WaitingOffers};
use serde::Serialize;
use std::time::Duration;

/// A worker, for people and programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkerLine {
    id: String,
    host: String,
    pid: u32,
    version: String,
    capabilities: Vec<String>,
    concurrency: u32,
    /// `working`, `idle`, `draining` or `gone`.
    state: &'static str,
    started_at: String,
    /// Steps that it carries out.
    steps: Vec<StepLine>,
    /// Runs that it executes.
    runs: Vec<String>,
    /// Tools that it has, by their full names.
    tools: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StepLine {
    run: String,
    step: String,
    attempt: u32,
}

/// Steps that no worker has taken yet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingLine {
    capability: String,
    steps: u64,
    oldest_seconds: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkersDocument {
    workers: Vec<WorkerLine>,
    waiting: Vec<WaitingLine>,
}

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let Some(postgres) = &app.postgres else {
        return Err(Failure::refused(
            "there are no workers: the store is a file of this workspace, or the database has no store yet",
        )
        .hint("planwright worker --store postgres://USER@HOST/DATABASE"));
    };
    let mut workers = postgres.workers().await.map_err(failed)?;
    // One that is gone is of interest while steps wait for what becomes of it.
    workers.retain(|worker| worker.is_alive || !worker.claims.is_empty());
    let waiting = postgres.waiting_offers().await.map_err(failed)?;
    let printer = app.printer();
    if printer.json {
        let document = WorkersDocument {
            workers: workers.into_iter().map(describe).collect(),
            waiting: waiting.into_iter().map(describe_waiting).collect(),
        };
        printer.document(&document)?;
        return Ok(Exit::Done);
    }
    if workers.is_empty() {
        printer.talk("no workers: planwright worker --capability NAME starts one");
    }
    for worker in workers {
        show(&app, worker)?;
    }
    for offers in waiting {
        let steps = count_of(offers.count, "step", "steps");
        let oldest = offers.oldest.as_secs();
        let text = format!(
            "{steps} waiting for the capability {}, the first for {oldest} s",
            line(&offers.capability)
        );
        printer.data(&printer.out(YELLOW, &text))?;
    }
    Ok(Exit::Done)
}

fn failed(error: planwright_engine::port::StoreError) -> Failure {
    Failure::from_error(Exit::Store, &error)
}

fn state(worker: &ListedWorker) -> &'static str {
    match (worker.is_alive, worker.is_draining) {
        (false, _) => "gone",
        (true, true) => "draining",
        (true, false) if worker.claims.is_empty() && worker.runs.is_empty() => "idle",
        (true, false) => "working",
    }
}

fn show(app: &App, worker: ListedWorker) -> Result<(), Failure> {
    let printer = app.printer();
    let since = Duration::from_millis(
        u64::try_from(app.now().as_millis() - worker.started_at.as_millis()).unwrap_or_default(),
    );
    let told = describe(worker);
    let takes = match told.capabilities.is_empty() {
        true => "runs".to_owned(),
        false => line(&told.capabilities.join(", ")),
    };
    let head = printer.out(BOLD, &told.id);
    let place = printer.out(
        DIM,
        &format!("{} {}, started {}", line(&told.host), told.pid, ago(since)),
    );
    printer.data(&format!("{head}  {}  {takes}  {place}", told.state))?;
    for step in &told.steps {
        printer.data(&format!("  step {} of {}", line(&step.step), step.run))?;
    }
    for run in &told.runs {
        printer.data(&format!("  run {run}"))?;
    }
    Ok(())
}

fn describe(worker: ListedWorker) -> WorkerLine {
    let state = state(&worker);
    let ListedWorker {
        record,
        started_at,
        claims,
        runs,
        ..
    } = worker;
    let steps = claims.into_iter().map(|key| StepLine {
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
        started_at: started_at.to_string(),
        steps: steps.collect(),
        runs: runs.iter().map(ToString::to_string).collect(),
        tools: tools
            .map(|tool| tool.definition.tool_name().to_string())
            .collect(),
    }
}

fn describe_waiting(offers: WaitingOffers) -> WaitingLine {
    WaitingLine {
        capability: offers.capability,
        steps: offers.count,
        oldest_seconds: offers.oldest.as_secs(),
    }
}
