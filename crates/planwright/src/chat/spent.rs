//! What a conversation has spent before this process goes on with it, read from the journals.

use crate::exit::Failure;
use crate::target::named_run;
use crate::wire_up::App;
use planwright_core::id::RunId;
use planwright_core::journal::{StreamName, decode};
use planwright_core::run::{CallFate, Run, RunEvent};
use planwright_engine::chat::Spending;
use planwright_engine::{PlanTool, read_value};
use serde_json::Value;

/// Entries that are read at once.
const PAGE: usize = 500;

/// Counts the calls and tokens of a conversation, and those of the plans that were run from it.
pub(super) async fn recall(app: &App, run: &RunId, spending: &Spending) -> Result<(), Failure> {
    let (stream, mut after) = (StreamName::Run(run.clone()), 0);
    loop {
        let records = app.engine.store().read(&stream, after, PAGE).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after = last.seq;
        // What cannot be read stops the run itself; here it would only be counted.
        for entry in records.iter().filter_map(|record| decode::<RunEvent>(record).ok()) {
            match entry.event {
                RunEvent::ModelUsed { used, .. } => spending.before(0, [&used]),
                RunEvent::AgentTurn { calls, .. } => {
                    for call in calls {
                        let CallFate::Run(child) = &call.fate else { continue };
                        let calls = match PlanTool::named(&call.tool) {
                            Some(_) => calls_of_plan(app, child).await?,
                            None => 1,
                        };
                        spending.before(calls, []);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The calls of the run that a plan tool began, if it came back.
async fn calls_of_plan(app: &App, call: &RunId) -> Result<u64, Failure> {
    let Some(run) = loaded(app, call).await? else { return Ok(0) };
    let Some(stored) = run.plan().indices().next().and_then(|ix| run.step(ix).value().cloned()) else {
        return Ok(0);
    };
    let result = read_value(&**app.artifacts(), &stored).await?;
    let Some(begun) = result.get("runId").and_then(Value::as_str).and_then(|id| id.parse::<RunId>().ok())
    else {
        return Ok(0);
    };
    let attempts = loaded(app, &begun).await?.map(|run| {
        let report = run.report(app.now());
        report.steps.iter().map(|step| u64::from(step.attempts)).sum()
    });
    Ok(attempts.unwrap_or_default())
}

async fn loaded(app: &App, run: &RunId) -> Result<Option<Run>, Failure> {
    let Some(target) = named_run(app, run.as_str()).await? else { return Ok(None) };
    Ok(Some(app.engine.load_run(&target.run, &target.review).await?.0))
}
