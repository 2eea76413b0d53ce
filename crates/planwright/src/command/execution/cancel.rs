//! `cancel`: what is in flight is stopped, the rest never runs.

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
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    pause::send_command(
        context,
        &args.plan,
        RunCommand::Cancel { by: user() },
        RunStatus::Cancelled,
    )
    .await
}
