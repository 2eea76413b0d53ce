//! Claude Code. Checked with 2.1.197: with these options its model is offered the tools of the step
//! and nothing else.

use super::{Launch, LaunchOrder, SERVER, SERVER_ARGS, Tokens, count, document, forwarded, text};
use planwright_core::model::{Cost, TokenUsage};
use serde_json::{Value, json};

const CONFIGURATION: &str = "mcp.json";

pub(super) fn launch(order: &LaunchOrder<'_>) -> Launch {
    let mut launch = Launch::default();
    let configuration = format!("{}/{CONFIGURATION}", order.place);
    launch.add(["-p", "--output-format", "json", "--no-session-persistence"]);
    launch.add(["--mcp-config", &configuration]);
    launch.add(["--allowedTools", &format!("mcp__{SERVER}__*")]);
    if !order.options.own_tools {
        // No tool of its own, no other server, no permission by a question, and no settings: hooks
        // are programs, and a folder can bring some.
        launch.add(["--strict-mcp-config", "--tools", ""]);
        launch.add(["--permission-mode", "dontAsk", "--setting-sources", ""]);
        launch.add(["--disable-slash-commands"]);
    }
    if let Some(model) = &order.options.model {
        launch.add(["--model", model]);
    }
    let server = json!({
        "type": "stdio",
        "command": order.bridge,
        "args": SERVER_ARGS,
        "env": forwarded(|name| format!("${{{name}}}")),
    });
    let servers = json!({ "mcpServers": { SERVER: server } });
    launch.files.push((CONFIGURATION, servers.to_string()));
    let patience = order.patience.as_millis().to_string();
    launch.env.push(("MCP_TOOL_TIMEOUT", patience));
    launch
}

pub(super) fn read(printed: &str) -> (Result<String, String>, Option<Tokens>) {
    let said = match document(printed) {
        Ok(said) => said,
        Err(problem) => return (Err(problem), None),
    };
    let usage = &said["usage"];
    let cached = count(&usage["cache_read_input_tokens"]);
    let written = count(&usage["cache_creation_input_tokens"]);
    let tokens = usage.is_object().then(|| Tokens {
        usage: TokenUsage {
            input: count(&usage["input_tokens"])
                .saturating_add(cached)
                .saturating_add(written),
            output: count(&usage["output_tokens"]),
            cached,
            estimated: false,
        },
        model: said["modelUsage"]
            .as_object()
            .and_then(|models| models.keys().next().cloned()),
        cost: cost(&said["total_cost_usd"]),
    });
    let outcome = match (text(&said["result"]), &said["subtype"], &said["is_error"]) {
        (Some(message), Value::String(word), Value::Bool(false)) if word == "success" => {
            Ok(message)
        }
        (Some(message), ..) if said["is_error"] == true => Err(message),
        (_, Value::String(word), _) if said["type"] == "result" => {
            Err(format!("it ended with {word}"))
        }
        _ => Err("it printed a document without a result".to_owned()),
    };
    (outcome, tokens)
}

/// Dollars as they are kept here.
fn cost(dollars: &Value) -> Option<Cost> {
    let micros = (dollars.as_f64()? * 1_000_000.0).round();
    // A number of dollars that no step costs is none.
    if !(0.0..1e15).contains(&micros) {
        return None;
    }
    format!("{micros:.0}").parse().ok().map(Cost)
}
