//! `hook`: what a client asks before its agent does something.
//!
//! Clients let a call through when a hook fails in any way but one: it ends with code 2, or it
//! answers. So everything here ends in an answer. An error, a panic, a text that cannot be read and
//! time that runs out all block.

mod answer;
mod payload;
mod plan_mode;
mod session;
mod tool_use;

use self::answer::{Answer, Answered, Protocol};
use self::payload::Payload;
use crate::config::passphrase::Unlock;
use crate::exit::Exit;
use crate::terminal::printer::{Printer, line};
use clap::{Subcommand, ValueEnum};
use planwright_core::policy::AgentClient;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    event: HookEvent,
    /// The client that asks, and in whose way it is answered.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "NAME",
        default_value = "claude-code"
    )]
    client: ClientName,
}

/// The clients that have hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClientName {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Goose,
    Pi,
}

impl From<ClientName> for AgentClient {
    fn from(name: ClientName) -> Self {
        match name {
            ClientName::ClaudeCode => Self::ClaudeCode,
            ClientName::Codex => Self::Codex,
            ClientName::Gemini => Self::Gemini,
            ClientName::Cursor => Self::Cursor,
            ClientName::Goose => Self::Goose,
            ClientName::Pi => Self::Pi,
        }
    }
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum HookEvent {
    /// Before a tool is called: the policy decides, and guarded tools wait for a plan.
    PreToolUse,
    /// Before the client asks its person about a call.
    PermissionRequest,
    /// When the agent leaves plan mode: its plan is proposed, and waits for its review.
    ExitPlanMode {
        /// How long the review is waited for. Below the time the client gives the hook.
        #[arg(long, value_name = "SECONDS", default_value_t = 570)]
        #[arg(value_parser = clap::value_parser!(u64).range(0..=86_400))]
        wait: u64,
    },
    /// When a session starts: tells the agent how plans are made here, and which of them wait.
    SessionStart,
}

/// The longest time a decision about a call may take. Clients give it more.
const DECISION_TIME: Duration = Duration::from_secs(8);
/// Time to propose a plan and to answer, beside the time its review is waited for.
const MARGIN: Duration = Duration::from_secs(15);

/// Answers the client that runs this program. Never fails: what goes wrong is the answer.
pub(crate) fn run(printer: Printer, dir: Option<&Path>, unlock: Unlock, args: &Args) -> Exit {
    let client = AgentClient::from(args.client);
    let event = args.event;
    let (protocol, time) = match event {
        HookEvent::PreToolUse => (Protocol::ToolUse(client), DECISION_TIME),
        HookEvent::PermissionRequest => (Protocol::Permission(client), DECISION_TIME),
        HookEvent::ExitPlanMode { wait } => {
            (Protocol::PlanMode, Duration::from_secs(wait) + MARGIN)
        }
        HookEvent::SessionStart => (Protocol::Session(client), DECISION_TIME),
    };
    let answered = Answered::default();
    answered.block_after(protocol, time);
    let dir = dir.map(Path::to_owned);
    let decided = catch_unwind(AssertUnwindSafe(|| {
        decide(printer, (dir, unlock), client, event)
            .unwrap_or_else(|problem| Answer::Broken(line(&problem)))
    }));
    let answer = decided.unwrap_or_else(|_| {
        Answer::Broken("the hook failed; planwright doctor looks for the reason".to_owned())
    });
    answered.give(protocol, &answer)
}

fn decide(
    printer: Printer,
    (dir, unlock): (Option<PathBuf>, Unlock),
    client: AgentClient,
    event: HookEvent,
) -> Result<Answer, String> {
    let payload = Payload::read(std::io::stdin().lock(), client)?;
    match event {
        HookEvent::PreToolUse => tool_use::before_tool(printer, dir, &payload),
        HookEvent::PermissionRequest => tool_use::on_permission(printer, dir, &payload),
        HookEvent::ExitPlanMode { wait } => {
            plan_mode::leave(printer, (dir, unlock), &payload, Duration::from_secs(wait))
        }
        HookEvent::SessionStart => session::start(printer, (dir, unlock), &payload),
    }
}
