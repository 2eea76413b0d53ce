//! `servers list`: what the files say, and what is remembered, without starting anything.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, DIM, GREEN, YELLOW, ago, line};
use crate::trust::TrustState;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::{ListedServer, ServerReadiness};
use planwright_adapters::mcp::{SeenTools, ToolMemory};
use planwright_adapters::vault::Cipher;
use planwright_engine::memory::SystemClock;
use planwright_engine::port::Clock as _;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let roster = context.roster();
    let printer = context.printer;
    // What is sealed is not opened for this: it would need a passphrase.
    let memory = context.tool_memory(&Arc::new(Cipher::Plain));
    for problem in &roster.problems {
        printer.warn(problem);
    }
    if printer.json {
        printer.document(
            &roster
                .servers
                .iter()
                .map(|server| server_document(server, find_seen(server, memory.as_ref())))
                .collect::<Vec<Value>>(),
        )?;
        return Ok(Exit::Done);
    }
    for server in &roster.servers {
        let readiness = server.readiness();
        let style = if matches!(readiness, ServerReadiness::Ready(_)) {
            GREEN
        } else {
            YELLOW
        };
        let name = printer.out(BOLD, &format!("{:16}", line(&server.name)));
        let word = printer.out(style, &format!("{:9}", readiness.word()));
        printer.data(&format!(
            "{name}  {word}  {:18}  {}",
            server.source,
            line(&server.launch.line())
        ))?;
        let seen = find_seen(server, memory.as_ref()).map(|seen| {
            let tools = count_of(seen.tools, "tool", "tools");
            let when = ago(SystemClock::default().now().since(seen.at));
            format!("{tools}, as seen {when}")
        });
        if let Some(text) = server.obstacle().map(|(reason, _)| reason).or(seen) {
            printer.data(&format!("{:16}  {}", "", printer.out(DIM, &line(&text))))?;
        }
    }
    if roster.servers.is_empty() {
        printer
            .hint("no file names a server: add [servers.NAME] to planwright.toml, or a .mcp.json");
    } else if roster.untrusted_servers().next().is_some() {
        printer.hint("To review what they run and trust them: planwright trust");
    }
    Ok(Exit::Done)
}

/// What a server that may be started answered to an earlier command.
fn find_seen(server: &ListedServer, memory: Option<&ToolMemory>) -> Option<SeenTools> {
    match server.readiness() {
        ServerReadiness::Ready(spec) => memory?.last_seen(spec),
        ServerReadiness::Untrusted
        | ServerReadiness::Changed
        | ServerReadiness::Disabled
        | ServerReadiness::Shadowed(_)
        | ServerReadiness::Unusable(_) => None,
    }
}

fn server_document(server: &ListedServer, seen: Option<SeenTools>) -> Value {
    let launch = &server.launch;
    json!({
        "name": server.name,
        "source": server.source.to_string(),
        "transport": launch.transport(),
        "launch": launch.line(),
        "environment": launch.env.keys().collect::<Vec<_>>(),
        "headers": launch.headers.keys().collect::<Vec<_>>(),
        "digest": server.digest,
        "trusted": server.trusted == TrustState::Trusted,
        "enabled": server.enabled,
        "status": server.readiness().word(),
        "reason": server.obstacle().map(|(reason, _)| reason),
        "tools": seen.map(|seen| seen.tools),
        "seenAt": seen.map(|seen| seen.at),
    })
}
