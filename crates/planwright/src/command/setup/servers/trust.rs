//! `servers trust` and `servers untrust`: the user's word about a server that a project brings.

use super::find_server;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::terminal::trust_prompt::{self, Detail};
use crate::trust::{TrustState, forget_hints, server_loosening};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use crate::workspace::servers::{ListedServer, Source};

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The servers, as their files name them.
    #[arg(required = true, value_name = "SERVER")]
    names: Vec<String>,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UntrustArgs {
    /// The server, as its file names it.
    #[arg(value_name = "SERVER")]
    name: String,
}

pub(crate) fn trust_server(context: &CommandContext, args: &TrustArgs) -> Result<Exit, Failure> {
    let roster = context.roster();
    let printer = context.printer;
    let named = args.names.iter().map(|name| find_server(&roster, name));
    let servers = named.collect::<Result<Vec<_>, _>>()?;
    for server in servers.iter().filter(|server| !is_own(server)) {
        server.launch.check().map_err(|problem| {
            Failure::usage(format!(
                "the server `{}` cannot be used: {problem}",
                line(&server.name)
            ))
        })?;
        let shown = server_loosening(server, &context.workspace.root);
        trust_prompt::show_loosening(printer, &shown, Detail::Full);
    }
    if servers.iter().any(|server| !is_own(server)) {
        let command = format!("servers trust {}", args.names.join(" "));
        trust_prompt::confirm_trust(printer, args.yes, &command)?;
    }
    for server in servers {
        if is_own(server) {
            refuse_agents("trust servers")?;
            printer.talk(
                "it is in your own planwright.toml, so it is trusted already; from now on what \
                 its tools say about themselves counts again",
            );
        } else {
            let launch = server.launch.line();
            roster.trust.grant(&server.name, server.digest, &launch)?;
        }
        forget_server(server)?;
        trust_prompt::print_trusted(printer, &server.name, server.digest)?;
    }
    Ok(Exit::Done)
}

pub(crate) fn untrust_server(
    context: &CommandContext,
    args: &UntrustArgs,
) -> Result<Exit, Failure> {
    refuse_agents("take trust back")?;
    let roster = context.roster();
    let printer = context.printer;
    // What is trusted and no longer named by any file can be taken back too.
    let found = roster.trust.revoke(&args.name)?;
    if !found && is_own(find_server(&roster, &args.name)?) {
        return Err(
            Failure::usage("it is in your own planwright.toml, so it is trusted")
                .hint("remove it there, or set `enabled = false`"),
        );
    }
    trust_prompt::print_untrusted(printer, &args.name, found)
}

/// Who trusts a server trusts what its tools say about themselves from now on.
fn forget_server(server: &ListedServer) -> Result<(), Failure> {
    server.spec.as_ref().map_or(Ok(()), forget_hints)
}

/// Returns whether it is trusted because the user wrote it down.
fn is_own(server: &ListedServer) -> bool {
    server.source == Source::User && server.trusted == TrustState::Trusted
}
