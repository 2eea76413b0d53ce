//! `servers trust` and `servers untrust`: the user's word about a server that a project brings.

use super::find_server;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, Printer, line};
use crate::terminal::trust_prompt;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::{Launch, ListedServer, Source, TrustState};
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The server, as its file names it.
    name: String,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UntrustArgs {
    /// The server, as its file names it.
    name: String,
}

pub(crate) fn trust_server(context: &CommandContext, args: &TrustArgs) -> Result<Exit, Failure> {
    let roster = context.roster();
    let printer = context.printer;
    let server = find_server(&roster, &args.name)?;
    if is_own(server) {
        printer.talk("it is in your own planwright.toml, so it is trusted already");
        return trust_prompt::print_trusted(printer, &server.name, server.digest);
    }
    server.launch.check().map_err(|problem| {
        Failure::usage(format!(
            "the server `{}` cannot be used: {problem}",
            line(&server.name)
        ))
    })?;
    show_launch(printer, server, &context.workspace.root);
    trust_prompt::confirm_trust(printer, args.yes, &format!("servers trust {}", server.name))?;
    roster
        .trust
        .grant(&server.name, server.digest, &server.launch.line())?;
    trust_prompt::print_trusted(printer, &server.name, server.digest)
}

pub(crate) fn untrust_server(
    context: &CommandContext,
    args: &UntrustArgs,
) -> Result<Exit, Failure> {
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

/// Returns whether it is trusted because the user wrote it down.
fn is_own(server: &ListedServer) -> bool {
    server.source == Source::User && server.trusted == TrustState::Trusted
}

/// Exactly what would be started, on stderr: it is what the person agrees to.
fn show_launch(printer: Printer, server: &ListedServer, workspace: &Path) {
    let Launch {
        kind: _,
        command,
        args,
        env,
        cwd,
        url,
        headers,
    } = &server.launch;
    let label = |name: &str| printer.err(BOLD, &format!("  {name:12}"));
    printer.talk(&format!(
        "the server `{}` of {}",
        line(&server.name),
        server.source
    ));
    if let Some(url) = url {
        printer.talk(&format!("{}{}", label("address"), line(url)));
    }
    if let Some(command) = command {
        let quoted = |word: &String| line(&json!(word).to_string());
        printer.talk(&format!("{}{}", label("command"), quoted(command)));
        for arg in args {
            printer.talk(&format!("{}{}", label("argument"), quoted(arg)));
        }
        let directory = cwd.as_deref().unwrap_or(".");
        printer.talk(&format!("{}{}", label("directory"), line(directory)));
    }
    for name in env.keys() {
        printer.talk(&format!("{}{}", label("variable"), line(name)));
    }
    for name in headers.keys() {
        printer.talk(&format!("{}{}", label("header"), line(name)));
    }
    let directory = Path::new(cwd.as_deref().unwrap_or("."));
    trust_prompt::warn_of_own_files(printer, workspace, directory, command.iter().chain(args));
    printer.talk(&format!("{}{}", label("digest"), server.digest));
}
