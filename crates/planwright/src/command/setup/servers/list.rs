//! `servers list`: what the files say, without starting anything.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, GREEN, YELLOW, line};
use crate::trust::TrustState;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::{ListedServer, ServerReadiness};
use serde_json::{Value, json};

pub(crate) fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let roster = context.roster();
    let printer = context.printer;
    for problem in &roster.problems {
        printer.warn(problem);
    }
    if printer.json {
        printer.document(
            &roster
                .servers
                .iter()
                .map(server_document)
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
        if let Some((reason, _)) = server.obstacle() {
            printer.data(&format!("{:16}  {}", "", printer.out(DIM, &line(&reason))))?;
        }
    }
    if roster.servers.is_empty() {
        printer
            .hint("no file names a server: add [servers.NAME] to planwright.toml, or a .mcp.json");
    } else if roster.untrusted_servers().next().is_some() {
        printer.hint("planwright trust shows what they run, and asks once for all of them");
    }
    Ok(Exit::Done)
}

fn server_document(server: &ListedServer) -> Value {
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
    })
}
