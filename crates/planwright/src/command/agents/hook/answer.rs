//! Answers in the words of each client.

use crate::exit::Exit;
use planwright_core::policy::AgentClient;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most characters of a reason. Clients cut longer texts off.
const MAX_REASON: usize = 6_000;

/// What every client is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// Nothing: the client's own rules decide.
    Silent,
    Allow(String),
    /// The person is asked, with this reason.
    Ask(String),
    Deny(String),
    /// Allowed, with the input as it was: some tools want it back.
    AllowInput(Value),
    /// Told to the agent when its session starts.
    Context(String),
    /// The hook cannot decide, so the call is not made.
    Broken(String),
}

/// The way in which a client wants one kind of question answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Protocol {
    ToolUse(AgentClient),
    Permission(AgentClient),
    PlanMode,
    Session(AgentClient),
}

/// What is printed, and the code the program ends with.
struct Output {
    stdout: Option<Value>,
    stderr: Option<String>,
    exit: Exit,
}

impl Output {
    fn json(value: Value) -> Self {
        Self {
            stdout: Some(value),
            stderr: None,
            exit: Exit::Done,
        }
    }

    /// Code 2 is the one with which every client blocks.
    fn block(reason: &str) -> Self {
        Self {
            stdout: None,
            stderr: Some(format!("planwright: {reason}")),
            exit: Exit::Usage,
        }
    }

    fn nothing() -> Self {
        Self {
            stdout: None,
            stderr: None,
            exit: Exit::Done,
        }
    }
}

/// The one answer of this process. The first gives it: the decision, or the clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Answered(Arc<AtomicBool>);

impl Answered {
    /// Blocks when the time is over. A client would let the call through once its own is.
    pub(super) fn block_after(&self, protocol: Protocol, time: Duration) {
        let answered = self.clone();
        let watch = move || {
            std::thread::sleep(time);
            let words = format!("no decision within {} seconds", time.as_secs());
            let exit = answered.give(protocol, &Answer::Broken(words));
            std::process::exit(i32::from(exit.code()));
        };
        // Without the clock nothing is lost but a bound on the time.
        drop(std::thread::Builder::new().spawn(watch));
    }

    /// Prints the answer, unless one was given. Waits for ever if the clock was first: it ends the
    /// process.
    pub(super) fn give(&self, protocol: Protocol, answer: &Answer) -> Exit {
        if self.0.swap(true, Ordering::SeqCst) {
            loop {
                std::thread::park();
            }
        }
        let output = protocol.word(answer);
        if let Some(text) = &output.stderr {
            // A closed stderr changes nothing about the code.
            drop(writeln!(std::io::stderr().lock(), "{text}"));
        }
        let Some(value) = &output.stdout else {
            return output.exit;
        };
        let mut out = std::io::stdout().lock();
        match writeln!(out, "{value}").and_then(|()| out.flush()) {
            Ok(()) => output.exit,
            // Half an answer is none, and that lets the call through.
            Err(_) => Exit::Usage,
        }
    }
}

impl Protocol {
    fn word(self, answer: &Answer) -> Output {
        match self {
            Self::ToolUse(client) => tool_use(client, answer),
            Self::Permission(client) => permission(client, answer),
            Self::PlanMode => permission(AgentClient::ClaudeCode, answer),
            Self::Session(client) => session(client, answer),
        }
    }
}

fn tool_use(client: AgentClient, answer: &Answer) -> Output {
    let (word, reason) = match answer {
        Answer::Silent | Answer::Context(_) | Answer::AllowInput(_) => return silence(client),
        Answer::Broken(reason) => return Output::block(&cut(reason)),
        Answer::Allow(reason) => ("allow", cut(reason)),
        Answer::Ask(reason) => ("ask", cut(reason)),
        Answer::Deny(reason) => ("deny", cut(reason)),
    };
    match (client, word) {
        (AgentClient::ClaudeCode, word) => Output::json(json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": word,
            "permissionDecisionReason": reason,
        } })),
        (AgentClient::Cursor, word) => Output::json(json!({
            "permission": word,
            "user_message": reason,
            "agent_message": reason,
        })),
        // Our own extension reads it.
        (AgentClient::Pi, word) => Output::json(json!({ "decision": word, "reason": reason })),
        // They know no `allow` that is more than silence.
        (AgentClient::Codex | AgentClient::Gemini | AgentClient::Goose, "allow") => silence(client),
        (AgentClient::Codex, _) => Output::json(json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        } })),
        (AgentClient::Gemini, _) => Output::json(json!({ "decision": "deny", "reason": reason })),
        (AgentClient::Goose, _) => Output::json(json!({ "decision": "block", "reason": reason })),
    }
}

/// No opinion. Some clients take an empty answer for a broken one.
fn silence(client: AgentClient) -> Output {
    match client {
        AgentClient::Gemini | AgentClient::Cursor | AgentClient::Pi => Output::json(json!({})),
        AgentClient::ClaudeCode | AgentClient::Codex | AgentClient::Goose => Output::nothing(),
    }
}

/// Code 2 means nothing here, so that everything is said in words.
fn permission(client: AgentClient, answer: &Answer) -> Output {
    let decision = match answer {
        // The client's own question to its person is what asking means here.
        Answer::Silent | Answer::Ask(_) | Answer::Context(_) => return Output::nothing(),
        Answer::Allow(_) => json!({ "behavior": "allow" }),
        Answer::AllowInput(input) if client == AgentClient::ClaudeCode => {
            json!({ "behavior": "allow", "updatedInput": input })
        }
        Answer::AllowInput(_) => json!({ "behavior": "allow" }),
        Answer::Deny(reason) => json!({ "behavior": "deny", "message": cut(reason) }),
        Answer::Broken(reason) => {
            json!({ "behavior": "deny", "message": format!("planwright: {}", cut(reason)) })
        }
    };
    let stdout = json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest",
        "decision": decision,
    } });
    let stderr = match answer {
        Answer::Broken(reason) => Some(format!("planwright: {}", cut(reason))),
        Answer::Silent
        | Answer::Allow(_)
        | Answer::Ask(_)
        | Answer::Deny(_)
        | Answer::AllowInput(_)
        | Answer::Context(_) => None,
    };
    Output {
        stderr,
        ..Output::json(stdout)
    }
}

fn session(client: AgentClient, answer: &Answer) -> Output {
    match answer {
        Answer::Context(text) => match client {
            AgentClient::ClaudeCode
            | AgentClient::Codex
            | AgentClient::Gemini
            | AgentClient::Pi => Output::json(json!({ "hookSpecificOutput": {
                    "hookEventName": "SessionStart",
                    "additionalContext": cut(text),
                } })),
            AgentClient::Cursor => Output::json(json!({ "additional_context": cut(text) })),
            // It reads nothing that a hook says then.
            AgentClient::Goose => Output::nothing(),
        },
        Answer::Broken(reason) | Answer::Deny(reason) => Output::block(&cut(reason)),
        Answer::Silent | Answer::Allow(_) | Answer::Ask(_) | Answer::AllowInput(_) => {
            silence(client)
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
