//! `resolve`: a person says what became of a call whose outcome is unknown.

use crate::command::review::approve::report_decision;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{CommandContext, user};
use crate::workspace::run_selector::select_step;
use planwright_core::json::parse_strict;
use planwright_core::run::Resolution;
use planwright_engine::RunCommand;
use serde_json::Value;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outcome").required(true))]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The step; `step/step` for a step of a sub-plan.
    #[arg(value_name = "STEP")]
    step: String,
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
    let target = select_step(&app, &args.plan, &args.step).await?;
    let (resolution, word) = if args.happened {
        let happened = app
            .engine
            .runs()
            .resolution_with_value(target.run.id(), value)
            .await?;
        (happened, "happened")
    } else if args.did_not_happen {
        (Resolution::DidNotHappen, "did not happen")
    } else {
        (Resolution::RunAgain, "runs again")
    };
    let command = RunCommand::Resolve {
        step: target.step.clone(),
        by: user(),
        resolution,
    };
    app.engine.runs().command(target.run.id(), command).await?;
    report_decision(&app, &target, word).await?;
    Ok(Exit::Done)
}
