//! goose. Checked with 1.34.0: with these options its model is offered the tools of the step and
//! nothing else. It gives a call up after 300 seconds, which no option changes.

use super::{Launch, LaunchOrder, SERVER_ARGS, Tokens, count, document, text};
use planwright_core::model::TokenUsage;
use serde_json::Value;

/// It ends with 0 when it cannot go on, and says so in a message like any other: how those begin.
const GIVING_UP: [&str; 4] = [
    "Ran into this error",
    "Unable to continue:",
    "I've reached the maximum number of actions",
    "A tool call could not be parsed",
];
/// How such messages end whose beginning is that of the error.
const ASKING_AGAIN: [&str; 2] = [
    "Please resend your message to try again.",
    "then resend your message to continue.",
];

pub(super) fn launch(order: &LaunchOrder<'_>) -> Result<Launch, String> {
    // It splits the command of an extension into words, and knows no way to write a quote in one.
    if order.bridge.contains(['"', '\\', '=']) {
        return Err(format!(
            "goose cannot start a program at `{}`: the path has a quote, a backslash or an equals sign in it",
            order.bridge
        ));
    }
    let mut launch = Launch::default();
    launch.add(["run", "--no-session", "--quiet", "--output-format", "json"]);
    let server = format!("\"{}\" {}", order.bridge, SERVER_ARGS.join(" "));
    launch.add(["--with-extension", &server]);
    if !order.options.own_tools {
        launch.add(["--no-profile"]);
        // It has no person to ask: the run asks about its calls.
        launch.env.push(("GOOSE_MODE", "auto".to_owned()));
    }
    if let Some(model) = &order.options.model {
        launch.add(["--model", model]);
    }
    launch.add(["--instructions", "-"]);
    Ok(launch)
}

pub(super) fn read(printed: &str) -> (Result<String, String>, Option<Tokens>) {
    let said = match document(printed) {
        Ok(said) => said,
        Err(problem) => return (Err(problem), None),
    };
    let about = &said["metadata"];
    let tokens = about["total_tokens"].as_u64().map(|total| {
        let output = count(&about["output_tokens"]).min(total);
        Tokens {
            usage: TokenUsage {
                input: total - output,
                output,
                ..TokenUsage::default()
            },
            ..Tokens::default()
        }
    });
    (last_message(&said), tokens)
}

/// The text of the last message, if it is the assistant's.
fn last_message(said: &Value) -> Result<String, String> {
    let last = said["messages"].as_array().and_then(|all| all.last());
    let Some(last) = last.filter(|message| message["role"] == "assistant") else {
        return Err("it printed no message of its model at the end".to_owned());
    };
    let parts = last["content"].as_array().map(Vec::as_slice);
    let texts = parts.unwrap_or_default().iter();
    let texts: Vec<String> = texts
        .filter(|part| part["type"] == "text")
        .filter_map(|part| text(&part["text"]))
        .collect();
    let message = texts.join("\n");
    let said = message.trim();
    let gave_up = GIVING_UP.iter().any(|words| said.starts_with(words))
        || ASKING_AGAIN.iter().any(|words| said.ends_with(words));
    if gave_up { Err(message) } else { Ok(message) }
}
