//! `resolve`: a person says what became of a call whose outcome is unknown.

use crate::command::review::approve::{report_decision, report_standing};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::run_selector::{select_run, select_step};
use planwright_core::id::RunId;
use planwright_core::json::parse_strict;
use planwright_core::plan::StepIx;
use planwright_core::run::{Resolution, StepState};
use planwright_engine::RunCommand;
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outcome").required(true))]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The step; `step/step` for a step of a sub-plan.
    #[arg(value_name = "STEP", required_unless_present = "all")]
    step: Option<String>,
    /// Every call of the run whose outcome is unknown.
    #[arg(long, conflicts_with = "step")]
    all: bool,
    /// The call happened.
    #[arg(long, group = "outcome")]
    happened: bool,
    /// The call had no effect: the attempt failed.
    #[arg(long, group = "outcome")]
    did_not_happen: bool,
    /// Call it again, even if it happened before.
    #[arg(long, group = "outcome")]
    run_again: bool,
    /// What the call returned, as JSON; null when absent.
    #[arg(long, value_name = "JSON", requires = "happened")]
    value: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let value = match &args.value {
        None => Value::Null,
        Some(text) => parse_strict(text.as_bytes()).map_err(|error| {
            Failure::usage(format!("--value: {error}"))
                .hint("a text needs its quotes: --value '\"text\"'")
        })?,
    };
    let app = context.open_existing()?;
    let Some(step) = &args.step else {
        return resolve_all(&app, args, value).await;
    };
    let target = select_step(&app, &args.plan, step).await?;
    let resolution = args.resolution(&app, target.run.id(), value).await?;
    resolve_step(&app, target.run.id(), &target.step, resolution).await?;
    report_decision(&app, &target, args.word()).await?;
    Ok(Exit::Done)
}

/// Resolves the calls one by one: broken off, the command goes on with the rest when it is repeated.
async fn resolve_all(app: &App, args: &Args, value: Value) -> Result<Exit, Failure> {
    let target = select_run(app, &args.plan).await?;
    let (run, _) = app
        .engine
        .runs()
        .load_run(&target.run, &target.review)
        .await?;
    let is_unknown = |ix: &StepIx| matches!(run.step(*ix), StepState::OutcomeUnknown { .. });
    let steps: Vec<String> = run
        .schedule()
        .waiting()
        .filter(is_unknown)
        .map(|ix| run.step_id(ix).to_string())
        .collect();
    if steps.is_empty() {
        return Err(Failure::refused(format!(
            "no outcome of {} is in question",
            run.id()
        )));
    }
    let resolution = args.resolution(app, run.id(), value).await?;
    for step in &steps {
        resolve_step(app, run.id(), step, resolution.clone()).await?;
    }
    let (run, _) = app
        .engine
        .runs()
        .load_run(&target.run, &target.review)
        .await?;
    let plan = target.review.id();
    let status = run.status();
    let word = args.word();
    if app.printer().json {
        app.printer().document(&json!({
            "planId": plan, "runId": run.id(), "steps": steps, "decision": word, "status": status,
        }))?;
        return Ok(Exit::Done);
    }
    let calls = count_of(steps.len(), "call", "calls");
    report_standing(app, &format!("{plan}  {calls}: {word}"), run).await?;
    Ok(Exit::Done)
}

async fn resolve_step(
    app: &App,
    run: &RunId,
    step: &str,
    resolution: Resolution,
) -> Result<(), Failure> {
    let command = RunCommand::Resolve {
        step: step.to_owned(),
        by: user(),
        resolution,
    };
    Ok(app.engine.runs().command(run, command).await?)
}

impl Args {
    async fn resolution(
        &self,
        app: &App,
        run: &RunId,
        value: Value,
    ) -> Result<Resolution, Failure> {
        Ok(if self.happened {
            app.engine.runs().resolution_with_value(run, value).await?
        } else if self.did_not_happen {
            Resolution::DidNotHappen
        } else {
            Resolution::RunAgain
        })
    }

    fn word(&self) -> &'static str {
        if self.happened {
            "happened"
        } else if self.did_not_happen {
            "did not happen"
        } else {
            "runs again"
        }
    }
}
