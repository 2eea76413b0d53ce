//! `models`: who plans, thinks and reflects, and whether they answer. Never a key.

mod check;
mod list;
mod trust;

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ModelsCommand {
    /// Names, roles, places, whether the key is there, and prices. This is the default.
    List,
    /// Ask models a small question and for a call, and say how that went. It may cost a fraction of
    /// a cent.
    Check(check::Args),
    /// Trust a provider that the project's file describes, with exactly the place and the key it
    /// names.
    Trust(trust::TrustArgs),
    /// Revoke trust.
    Untrust(trust::UntrustArgs),
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        None | Some(ModelsCommand::List) => list::run(context),
        Some(ModelsCommand::Check(args)) => check::run(context, args).await,
        Some(ModelsCommand::Trust(args)) => trust::trust_provider(context, args),
        Some(ModelsCommand::Untrust(args)) => trust::untrust_provider(context, args),
    }
}
