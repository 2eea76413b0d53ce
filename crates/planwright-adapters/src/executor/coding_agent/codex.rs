//! Codex. Checked with 0.166.0: with these options its usual model is offered the tools of the step and
//! no shell. Some models are still shown `apply_patch`: it is refused, because the sandbox is read-only
//! and no person can be asked. Models that bring a code mode of their own were not tried.

use super::{Launch, LaunchOrder, SERVER, SERVER_ARGS, Tokens, count, text};
use crate::executor::{GATEWAY, STEP_TOKEN};
use planwright_core::model::TokenUsage;
use serde_json::{Value, json};

/// What brings tools or programs of its own. A version that does not know one of these refuses to
/// start, so none stays on under another name unnoticed.
const OFF: [&str; 15] = [
    "shell_tool",
    "unified_exec",
    "view_image",
    "image_generation",
    "apps",
    "plugins",
    "hooks",
    "browser_use",
    "computer_use",
    "in_app_browser",
    "multi_agent",
    "multi_agent_v2",
    "goals",
    "skill_search",
    "tool_suggest",
];

pub(super) fn launch(order: &LaunchOrder<'_>) -> Launch {
    let mut launch = Launch::default();
    launch.add(["exec", "--json", "--color", "never", "--ephemeral"]);
    launch.add(["--skip-git-repo-check"]);
    // JSON writes texts and lists of texts as TOML does.
    let set = |launch: &mut Launch, key: &str, value: Value| {
        launch.add(["-c", &format!("{key}={value}")]);
    };
    let of_server = |key: &str| format!("mcp_servers.{SERVER}.{key}");
    set(&mut launch, &of_server("command"), json!(order.bridge));
    set(&mut launch, &of_server("args"), json!(SERVER_ARGS));
    set(
        &mut launch,
        &of_server("env_vars"),
        json!([GATEWAY, STEP_TOKEN]),
    );
    set(&mut launch, &of_server("required"), json!(true));
    let patience = order.patience.as_secs();
    set(&mut launch, &of_server("tool_timeout_sec"), json!(patience));
    set(
        &mut launch,
        &of_server("default_tools_approval_mode"),
        json!("approve"),
    );
    if !order.options.own_tools {
        launch.add(["--strict-config", "--ignore-user-config", "--ignore-rules"]);
        launch.add(["--sandbox", "read-only"]);
        set(&mut launch, "approval_policy", json!("never"));
        set(&mut launch, "web_search", json!("disabled"));
        set(&mut launch, "project_doc_max_bytes", json!(0));
        for feature in OFF {
            launch.add(["--disable", feature]);
        }
    }
    if let Some(model) = &order.options.model {
        launch.add(["--model", model]);
    }
    launch.add(["-"]);
    launch
}

/// Reads lines of events. The last message of a turn that was completed is the result.
pub(super) fn read(printed: &str) -> (Result<String, String>, Option<Tokens>) {
    if printed.trim().is_empty() {
        return (Err("it printed nothing".to_owned()), None);
    }
    let mut message = None;
    let mut usage = None::<TokenUsage>;
    let mut failure = Some("it printed no end of its turn".to_owned());
    let events = printed
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for event in events {
        match event["type"].as_str() {
            Some("item.completed") if event["item"]["type"] == "agent_message" => {
                message = text(&event["item"]["text"]);
            }
            Some("turn.completed") => {
                failure = None;
                let told = &event["usage"];
                if told.is_object() {
                    *usage.get_or_insert_default() += TokenUsage {
                        input: count(&told["input_tokens"]),
                        output: count(&told["output_tokens"]),
                        cached: count(&told["cached_input_tokens"]),
                        estimated: false,
                    };
                }
            }
            Some("turn.failed") => {
                let why = text(&event["error"]["message"]);
                failure = Some(why.unwrap_or_else(|| "its turn failed".to_owned()));
            }
            // A lost connection that it opens again is an event too: only the end decides.
            _ => {}
        }
    }
    let outcome = match failure {
        None => Ok(message.unwrap_or_default()),
        Some(why) => Err(why),
    };
    let tokens = usage.map(|usage| Tokens {
        usage,
        ..Tokens::default()
    });
    (outcome, tokens)
}
