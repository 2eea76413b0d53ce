//! `servers check`: starts servers and says what they are.

use super::find_server;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, DIM, GREEN, Printer, RED, duration, line};
use crate::workspace::app::{Access, App, CommandContext};
use futures::future::join_all;
use planwright_adapters::mcp::{RefusedTool, ServerState, ServerStatus};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The servers, as their files name them.
    names: Vec<String>,
}

/// Lines of a server's standard error that are shown when it failed.
const SHOWN_LINES: usize = 8;

struct CheckedServer {
    status: ServerStatus,
    took: Duration,
}

impl CheckedServer {
    fn works(&self) -> bool {
        matches!(self.status.state, ServerState::Connected(_))
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let printer = context.printer;
    let wanted = servers_to_check(&app, args)?;
    if wanted.is_empty() {
        printer.hint("No server is ready. To see why: planwright servers list");
    }
    let checked = start_servers(&app, &wanted).await?;
    let exit = if checked.iter().all(CheckedServer::works) {
        Exit::Done
    } else {
        Exit::RunFailed
    };
    if printer.json {
        printer.document(&checked.iter().map(server_document).collect::<Vec<Value>>())?;
    } else {
        for server in &checked {
            print_server(printer, server)?;
        }
    }
    // A setting for a tool that does not exist has no effect, so it is an error.
    let settings = app.tools.remote().check_settings();
    settings.map_err(|error| Failure::usage(format!("{}: {error}", crate::config::file::FILE)))?;
    Ok(exit)
}

/// A server that was named must be ready; of the others, those that are.
fn servers_to_check(app: &App, args: &Args) -> Result<BTreeSet<String>, Failure> {
    if args.names.is_empty() {
        for (reason, hint) in app
            .roster
            .effective()
            .filter_map(crate::workspace::servers::ListedServer::obstacle)
        {
            let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            app.printer().warn(&format!("{reason}{hint}"));
        }
        return Ok(app.roster.ready().map(|spec| spec.name.clone()).collect());
    }
    for name in &args.names {
        if let Some((reason, hint)) = find_server(&app.roster, name)?.obstacle() {
            return Err(Failure {
                hint,
                ..Failure::refused(reason)
            });
        }
    }
    Ok(args.names.iter().cloned().collect())
}

/// All at once, each with its own time.
async fn start_servers(
    app: &App,
    wanted: &BTreeSet<String>,
) -> Result<Vec<CheckedServer>, Failure> {
    let remote = app.tools.remote();
    app.context.servers.remember(remote);
    let all = wanted.iter().map(|name| async move {
        let since = Instant::now();
        let status = remote.connect_one(name).await?;
        Some(CheckedServer {
            status,
            took: since.elapsed(),
        })
    });
    Ok(join_all(all).await.into_iter().flatten().collect())
}

fn print_server(printer: Printer, server: &CheckedServer) -> Result<(), Failure> {
    let name = printer.out(BOLD, &format!("{:16}", server.status.name));
    let took = printer.out(DIM, &duration(server.took));
    match &server.status.state {
        ServerState::Connected(connected) => {
            let itself = connected
                .calls_itself
                .as_deref()
                .map_or_else(String::new, |text| format!("  “{}”", line(text)));
            let ok = printer.out(GREEN, "ok  ");
            let version = line(&connected.protocol_version);
            let tools = count_of(connected.tools, "tool", "tools");
            let era = connected.era;
            printer.data(&format!(
                "{name}  {ok}  {tools}  {version} ({era})  {took}{itself}"
            ))?;
            // For models, and shown so that people see what they are told.
            let said = connected.instructions.iter().flat_map(|text| text.lines());
            for text in said
                .filter(|text| !text.trim().is_empty())
                .take(SHOWN_LINES)
            {
                printer.data(&format!("{:16}  says  {}", "", line(text)))?;
            }
            if connected.ignored > 0 {
                let ignored = ("message that fits", "messages that fit");
                let ignored = count_of(connected.ignored, ignored.0, ignored.1);
                printer.data(&format!("{:16}  ignored  {ignored} nowhere", ""))?;
            }
            for RefusedTool { tool, reason, .. } in &connected.refused {
                printer.data(&format!(
                    "{:16}  refused  {}: {}",
                    "",
                    line(tool),
                    line(reason)
                ))?;
            }
        }
        ServerState::Failed { reason, stderr } => {
            printer.data(&format!(
                "{name}  {}  {}  {took}",
                printer.out(RED, "fail"),
                line(reason)
            ))?;
            let lines: Vec<&str> = stderr
                .lines()
                .filter(|text| !text.trim().is_empty())
                .collect();
            for text in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
                printer.data(&format!("{:16}  stderr  {}", "", line(text)))?;
            }
        }
        ServerState::Idle => {
            printer.data(&format!(
                "{name}  {}  it was not started",
                printer.out(RED, "fail")
            ))?;
        }
    }
    Ok(())
}

fn server_document(server: &CheckedServer) -> Value {
    let millis = u64::try_from(server.took.as_millis()).unwrap_or(u64::MAX);
    let name = &server.status.name;
    match &server.status.state {
        ServerState::Connected(connected) => json!({
            "name": name, "ok": true, "era": connected.era.to_string(),
            "protocolVersion": connected.protocol_version, "callsItself": connected.calls_itself,
            "tools": connected.tools, "instructions": connected.instructions, "ignoredMessages": connected.ignored, "millis": millis,
            "refusedTools": connected.refused.iter().map(|refused| json!({
                "name": refused.tool, "reason": refused.reason,
            })).collect::<Vec<_>>(),
        }),
        ServerState::Failed { reason, stderr } => json!({
            "name": name, "ok": false, "reason": reason, "stderr": stderr, "millis": millis,
        }),
        ServerState::Idle => {
            json!({ "name": name, "ok": false, "reason": "it was not started", "millis": millis })
        }
    }
}
