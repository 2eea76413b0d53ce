//! `fail`: marks a run as failed that will not be continued.

use crate::command::execution::pause;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{CommandContext, user};
use planwright_core::status::RunStatus;
use planwright_engine::RunCommand;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The reason. It is recorded with the run.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let command = RunCommand::GiveUp {
        by: user(),
        reason: args.reason.clone(),
    };
    pause::send_command(context, &args.plan, command, RunStatus::Failed).await
}
