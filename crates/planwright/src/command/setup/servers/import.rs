//! `servers import`: servers that other programs of the user know, taken over into this workspace.
//! They are written down and not trusted: that is a word of its own.

use crate::config::json_text;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::line;
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use crate::workspace::servers::read_entries;
use planwright_adapters::files::atomic_write;
use planwright_core::text::escape_invisible;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The servers to take over; without names all are listed, and asked about one by one.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only from this program.
    #[arg(long, value_name = "PROGRAM", value_parser = ["claude-desktop", "claude-code", "cursor", "vscode"])]
    from: Option<String>,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// A file in which another program keeps the user's servers.
struct Known {
    program: &'static str,
    path: PathBuf,
    /// The keys that lead to the servers.
    keys: Vec<String>,
}

/// A server that another program knows.
struct Found {
    program: &'static str,
    name: String,
    entry: Map<String, Value>,
    line: String,
    problem: Option<String>,
}

const FILE: &str = ".mcp.json";

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    refuse_agents("take servers over")?;
    let printer = context.printer;
    let root = &context.workspace.root;
    let wanted = |known: &Known| {
        args.from
            .as_deref()
            .is_none_or(|from| from == known.program)
    };
    let mut found = Vec::new();
    for known in known_files(root).into_iter().filter(wanted) {
        match read_entries(&known.path, &known.keys) {
            Ok(entries) => found.extend(entries.into_iter().map(|entry| Found {
                program: known.program,
                name: entry.name,
                entry: entry.entry,
                line: entry.line,
                problem: entry.problem,
            })),
            Err(problem) => printer.warn(&format!("{}: {problem}", known.path.display())),
        }
    }
    if printer.json && args.names.is_empty() {
        let listed = found.iter().map(|server| {
            json!({ "name": server.name, "program": server.program, "launch": server.line,
                "problem": server.problem })
        });
        printer.document(&Value::Array(listed.collect()))?;
        return Ok(Exit::Done);
    }
    let taken = choose(context, args, &found)?;
    if taken.is_empty() {
        if found.is_empty() {
            printer.talk("no servers of other programs were found");
        }
        return Ok(Exit::Done);
    }
    write(&root.join(FILE), &taken)?;
    for server in &taken {
        printer.data(&format!("{}  written to {FILE}", line(&server.name)))?;
    }
    let names: Vec<&str> = taken.iter().map(|server| server.name.as_str()).collect();
    printer.hint(&format!("planwright servers trust {}", names.join(" ")));
    Ok(Exit::Done)
}

/// The servers that were named, or those that the person says yes to.
fn choose<'a>(
    context: &CommandContext,
    args: &Args,
    found: &'a [Found],
) -> Result<Vec<&'a Found>, Failure> {
    let printer = context.printer;
    let roster = context.roster();
    if let Some(unknown) = args
        .names
        .iter()
        .find(|name| !found.iter().any(|server| server.name == **name))
    {
        let message = format!("no program knows a server `{}`", line(unknown));
        return Err(Failure::usage(message).hint("To list them: planwright servers import"));
    }
    let mut taken: Vec<&Found> = Vec::new();
    for server in found {
        let is_named = args.names.is_empty() || args.names.contains(&server.name);
        let is_taken = taken.iter().any(|other| other.name == server.name);
        if !is_named || is_taken {
            continue;
        }
        let shown = escape_invisible(&server.line);
        printer.talk(&format!(
            "{}  {}  {shown}",
            line(&server.name),
            server.program
        ));
        if let Some(problem) = &server.problem {
            printer.talk(&format!("  left out: {}", line(problem)));
            continue;
        }
        if roster.find(&server.name).is_some() {
            printer.talk("  left out: this workspace has a server of that name");
            continue;
        }
        let take = args.yes
            || printer.can_ask() && matches!(ask_yes_no(printer, "Take it over?")?, YesNo::Yes);
        if take {
            taken.push(server);
        }
    }
    if taken.is_empty() && !args.yes && !printer.can_ask() && !found.is_empty() {
        printer.hint("To take one over: planwright servers import NAME --yes");
    }
    Ok(taken)
}

fn write(path: &Path, taken: &[&Found]) -> Result<(), Failure> {
    let failed = |problem: String| Failure::usage(format!("{FILE}: {problem}"));
    let mut text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error.to_string())),
    };
    let place = ["mcpServers".to_owned()];
    for server in taken {
        let entry = Value::Object(server.entry.clone());
        text = json_text::set_member(&text, &place, &server.name, &entry).map_err(failed)?;
    }
    atomic_write(path, text.as_bytes())
        .map_err(|error| failed(planwright_engine::with_causes(&error)))
}

/// Where the programs keep them, on this system.
fn known_files(workspace: &Path) -> Vec<Known> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let of = |program, path: PathBuf, keys: &[&str]| Known {
        program,
        path,
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    };
    let mac = home.join("Library/Application Support");
    let config =
        std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let folder = workspace.to_string_lossy();
    let servers = &["mcpServers"][..];
    let desktop = "Claude/claude_desktop_config.json";
    let code = "Code/User/mcp.json";
    vec![
        of("claude-desktop", config.join(desktop), servers),
        of("claude-desktop", mac.join(desktop), servers),
        of("claude-code", home.join(".claude.json"), servers),
        of(
            "claude-code",
            home.join(".claude.json"),
            &["projects", &*folder, "mcpServers"],
        ),
        of("cursor", home.join(".cursor/mcp.json"), servers),
        of("vscode", config.join(code), &["servers"]),
        of("vscode", mac.join(code), &["servers"]),
    ]
}
