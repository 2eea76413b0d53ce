//! `servers`: the MCP servers that files name, which of them are trusted, and whether they work.

mod check;
mod import;
mod list;
mod sign_in;
mod trust;

pub(crate) use sign_in::find_known_client;

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use crate::workspace::servers::{ListedServer, Roster};
use planwright_core::text::nearest_names;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ServersCommand {
    /// List the servers that files name, and how each of them stands.
    List,
    /// Trust servers that a file of the workspace names, with exactly the launch lines or addresses
    /// they have.
    Trust(trust::TrustArgs),
    /// Revoke trust.
    Untrust(trust::UntrustArgs),
    /// Take over servers that Claude Desktop, Claude Code, Cursor or VS Code know, into `.mcp.json`.
    /// They are not trusted by that.
    Import(import::Args),
    /// Sign in to a server over HTTP that wants it (OAuth), in a browser on this machine.
    SignIn(sign_in::SignInArgs),
    /// Forget a sign-in.
    SignOut(sign_in::SignOutArgs),
    /// Start servers and say what they are and which tools they bring. Without names: all that are
    /// ready.
    Check(check::Args),
}

pub(crate) async fn run(
    context: &CommandContext,
    command: &ServersCommand,
) -> Result<Exit, Failure> {
    match command {
        ServersCommand::List => list::run(context),
        ServersCommand::Trust(args) => trust::trust_server(context, args),
        ServersCommand::Untrust(args) => trust::untrust_server(context, args),
        ServersCommand::SignIn(args) => sign_in::sign_in(context, args).await,
        ServersCommand::SignOut(args) => sign_in::sign_out(context, args).await,
        ServersCommand::Import(args) => import::run(context, args),
        ServersCommand::Check(args) => check::run(context, args).await,
    }
}

/// The server that was named.
fn find_server<'a>(roster: &'a Roster, name: &str) -> Result<&'a ListedServer, Failure> {
    roster.find(name).ok_or_else(|| {
        let failure = Failure::usage(format!(
            "no file names a server `{}`",
            crate::terminal::printer::line(name)
        ));
        match nearest_names(
            name,
            roster.servers.iter().map(|server| server.name.clone()),
        )
        .as_slice()
        {
            [] => failure.hint("To list the servers: planwright servers list"),
            near => failure.hint(format!("did you mean {}?", near.join(" or "))),
        }
    })
}
