//! Gemini CLI. Checked with 0.61.0: with these files and options its model is offered the tools of
//! the step and nothing else.

use super::{Launch, LaunchOrder, SERVER, SERVER_ARGS, Tokens, count, document, forwarded, text};
use planwright_core::model::TokenUsage;
use serde_json::json;

const POLICY: &str = "policy.toml";

/// Denied tools are not shown to the model either.
const ONLY_THE_STEP: &str = "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 1\n\n\
    [[rule]]\ntoolName = \"*\"\nmcpName = \"planwright\"\ndecision = \"allow\"\npriority = 999\n";

pub(super) fn launch(order: &LaunchOrder<'_>) -> Launch {
    let mut launch = Launch::default();
    launch.add(["--output-format", "json"]);
    let mut settings = json!({
        "mcpServers": { SERVER: {
            "command": order.bridge,
            "args": SERVER_ARGS,
            "env": forwarded(|name| format!("${name}")),
            "timeout": u64::try_from(order.patience.as_millis()).unwrap_or(u64::MAX),
            "trust": true,
        }},
    });
    // The settings of the folder it starts in count if the folder is trusted. It is the attempt's
    // own, where only its owner writes.
    let trust = ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned());
    launch.env.push(trust);
    if order.options.own_tools {
        launch.add(["--include-directories", order.workspace]);
    } else {
        launch.add(["--allowed-mcp-server-names", SERVER]);
        launch.add(["--extensions", "none", "--approval-mode", "default"]);
        let policy = format!("{}/{POLICY}", order.place);
        launch.add(["--admin-policy", &policy]);
        launch.files.push((POLICY, ONLY_THE_STEP.to_owned()));
        // A policy that it cannot read is only warned about, so the built-in tools are left out
        // twice: no tool has this name.
        settings["tools"] = json!({ "core": ["none"] });
        settings["hooksConfig"] = json!({ "enabled": false });
    }
    if let Some(model) = &order.options.model {
        launch.add(["--model", model]);
    }
    launch
        .files
        .push((".gemini/settings.json", settings.to_string()));
    launch
}

pub(super) fn read(printed: &str) -> (Result<String, String>, Option<Tokens>) {
    let said = match document(printed) {
        Ok(said) => said,
        Err(problem) => return (Err(problem), None),
    };
    let models = said["stats"]["models"].as_object();
    let tokens = models.filter(|models| !models.is_empty()).map(|models| {
        let mut usage = TokenUsage::default();
        for told in models.values().map(|model| &model["tokens"]) {
            usage += TokenUsage {
                input: count(&told["prompt"]).saturating_add(count(&told["tool"])),
                output: count(&told["candidates"]).saturating_add(count(&told["thoughts"])),
                cached: count(&told["cached"]),
                estimated: false,
            };
        }
        let model = models.keys().next().cloned();
        Tokens {
            usage,
            model,
            cost: None,
        }
    });
    let outcome = match (&said["error"]["message"], text(&said["response"])) {
        (error, _) if error.is_string() => Err(text(error).unwrap_or_default()),
        (_, Some(message)) => Ok(message),
        (_, None) => Err("it printed a document without a response".to_owned()),
    };
    (outcome, tokens)
}
