//! `pause`: what is in flight finishes, nothing new starts.

use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::run_selector::{RunTarget, find_run};
use planwright_core::id::RunId;
use planwright_core::review::Review;
use planwright_core::status::RunStatus;
use planwright_engine::RunCommand;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    send_command(
        context,
        &args.plan,
        RunCommand::Pause { by: user() },
        RunStatus::Paused,
    )
    .await
}

/// Gives a command to the run that goes on.
pub(crate) async fn send_command(
    context: &CommandContext,
    plan: &str,
    command: RunCommand,
    reached: RunStatus,
) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let (review, run) = match find_run(&app, plan).await? {
        Some(RunTarget { review, run }) => (review, run),
        None => {
            let (review, _) = load_plan(&app, &parse_id(plan)?).await?;
            let run = executing_run(&app, &review).await?;
            (review, run)
        }
    };
    app.engine.runs().command(&run, command).await?;
    let id = review.id();
    let (run_after, _) = app.engine.runs().load_run(&run, &review).await?;
    if app.printer().json {
        app.printer()
            .document(&json!({ "planId": id, "runId": run, "status": run_after.status() }))?;
    } else {
        app.printer().data(&format!("{id}  {run}  {reached}"))?;
    }
    Ok(Exit::Done)
}

/// The run of a plan that has begun and has not ended.
async fn executing_run(app: &App, review: &Review) -> Result<RunId, Failure> {
    let status = app.engine.plans().status(review).await?;
    match review.runs().last() {
        Some(opened) if status.is_executing() => Ok(opened.run.clone()),
        Some(_) | None => Err(Failure::refused(format!(
            "plan `{}` is {}: it has no run to send this to",
            review.id(),
            status.as_str()
        ))),
    }
}
