//! Before a tool is called: what the policy says about it. The core decides; this asks it and says
//! what it said.

use super::answer::Answer;
use super::payload::Payload;
use crate::exit::Failure;
use crate::terminal::printer::Printer;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::Servers;
use planwright_core::policy::{AgentClient, ClientTool, ClientVerdict};
use std::io::Read as _;
use std::path::{Path, PathBuf};

pub(super) fn before_tool(
    printer: Printer,
    dir: Option<PathBuf>,
    payload: &Payload,
) -> Result<Answer, String> {
    let events: &[&str] = match payload.client {
        AgentClient::ClaudeCode | AgentClient::Codex | AgentClient::Goose => &["PreToolUse"],
        AgentClient::Pi => &["tool_call"],
        AgentClient::Gemini => &["BeforeTool"],
        AgentClient::Cursor => &["preToolUse", "beforeMCPExecution", "beforeShellExecution"],
    };
    let event = payload.event(events)?;
    let (tool, verdict) = judge(printer, dir, payload, event)?;
    // One event of one client does not know how to ask.
    let can_ask = match payload.client {
        AgentClient::ClaudeCode | AgentClient::Pi => true,
        AgentClient::Cursor => event != "preToolUse",
        AgentClient::Codex | AgentClient::Gemini | AgentClient::Goose => false,
    };
    Ok(match verdict {
        ClientVerdict::Unspoken => Answer::Silent,
        ClientVerdict::Allow(reason) => Answer::Allow(reason),
        ClientVerdict::Ask(reason) | ClientVerdict::AskByDefault(reason) if can_ask => {
            Answer::Ask(reason)
        }
        // The client asks its person by its own rules.
        ClientVerdict::AskByDefault(_) => Answer::Silent,
        ClientVerdict::Ask(reason) => Answer::Deny(format!(
            "{reason}. A person has to agree, and this client cannot ask one here. {}",
            how_to_plan(&tool)
        )),
        ClientVerdict::Deny(reason) => Answer::Deny(reason),
        ClientVerdict::Guarded(pattern) => Answer::Deny(explain_guard(&tool, &pattern)),
    })
}

pub(super) fn on_permission(
    printer: Printer,
    dir: Option<PathBuf>,
    payload: &Payload,
) -> Result<Answer, String> {
    match payload.client {
        AgentClient::ClaudeCode | AgentClient::Codex => {}
        other @ (AgentClient::Gemini
        | AgentClient::Cursor
        | AgentClient::Goose
        | AgentClient::Pi) => {
            return Err(format!("{} has no such hook", other.as_str()));
        }
    }
    let event = payload.event(&["PermissionRequest"])?;
    let (tool, verdict) = judge(printer, dir, payload, event)?;
    Ok(match verdict {
        // The client is about to ask its person: that is what `ask` means.
        ClientVerdict::Unspoken | ClientVerdict::Ask(_) | ClientVerdict::AskByDefault(_) => {
            Answer::Silent
        }
        ClientVerdict::Allow(reason) => Answer::Allow(reason),
        ClientVerdict::Deny(reason) => Answer::Deny(reason),
        ClientVerdict::Guarded(pattern) => Answer::Deny(explain_guard(&tool, &pattern)),
    })
}

fn judge(
    printer: Printer,
    dir: Option<PathBuf>,
    payload: &Payload,
    event: &str,
) -> Result<(ClientTool, ClientVerdict), String> {
    let (tool, args) = payload.call(event)?;
    let context = open_context(printer, dir, payload)?;
    let policy = context.config.policy().map_err(explain)?;
    check_store(&context)?;
    let verdict = policy.judge_client_call(&tool, &args);
    Ok((tool, verdict))
}

/// The workspace of the agent's folder: the nearest one above that has a policy or plans.
pub(super) fn open_context(
    printer: Printer,
    dir: Option<PathBuf>,
    payload: &Payload,
) -> Result<CommandContext, String> {
    let root = match dir {
        Some(dir) => dir,
        None => {
            let folder = payload.folder()?;
            let is_workspace = |path: &&Path| {
                path.join(crate::config::file::FILE).exists() || path.join(".plans").is_dir()
            };
            let above = folder.ancestors().find(is_workspace).map(Path::to_owned);
            above.unwrap_or(folder)
        }
    };
    CommandContext::new(Some(&root), printer, Servers::default()).map_err(explain)
}

/// A store that is visibly broken says nothing about what was agreed to, and is no ground to go on.
/// A workspace without one is in order.
fn check_store(context: &CommandContext) -> Result<(), String> {
    const BEGINNING: &[u8; 16] = b"SQLite format 3\0";
    let path = &context.workspace.database;
    let damaged = |why: String| {
        format!(
            "the store {} cannot be used: {why}. To see more: planwright doctor",
            path.display()
        )
    };
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let mut beginning = [0; 16];
    let read = file.read_exact(&mut beginning);
    read.map_err(|error| damaged(error.to_string()))?;
    if &beginning == BEGINNING {
        return Ok(());
    }
    Err(damaged("it is damaged".to_owned()))
}

pub(super) fn explain(failure: Failure) -> String {
    match failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message,
    }
}

fn explain_guard(tool: &ClientTool, pattern: &str) -> String {
    format!(
        "`{}` is guarded ({pattern}): it is only called by a plan that a person approved. {} Do not look for \
         another way to do it.",
        tool.name(),
        how_to_plan(tool)
    )
}

/// Tells the agent how its call becomes a step.
fn how_to_plan(tool: &ClientTool) -> String {
    let name = tool.name();
    let step = if tool.is_own() {
        format!(
            "a step that does what `{name}` was to do (planwright tools lists what plans can call)"
        )
    } else {
        format!("a step {{\"tool\": \"{name}\", \"args\": {{…}}}}")
    };
    format!(
        "Propose a plan instead: plan_propose of the MCP server planwright, with {step}, or write it as \
         plan.json and run `planwright import plan.json`. A person approves it; then plan_execute runs it."
    )
}
