//! `stop`: ends the work on a run, for now or for good.

use crate::command::execution::pause::send_command;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{CommandContext, user};
use planwright_core::status::RunStatus;
use planwright_engine::RunCommand;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// End the run for good: running calls are stopped too.
    #[arg(long)]
    cancel: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if args.cancel {
        let command = RunCommand::Cancel { by: user() };
        return send_command(context, &args.plan, command, RunStatus::Cancelled).await;
    }
    let command = RunCommand::Pause { by: user() };
    let done = send_command(context, &args.plan, command, RunStatus::Paused).await?;
    if !context.printer.json {
        let plan = crate::terminal::printer::line(&args.plan);
        context
            .printer
            .hint(&format!("To continue: planwright resume {plan}"));
    }
    Ok(done)
}
