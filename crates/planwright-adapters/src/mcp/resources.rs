//! Resources of servers as tools of plans: what is at an address, and which addresses there are. The
//! protocol has both as requests that change nothing.

use super::answer::{keep_resource, refused, shorten, unusable};
use super::offers;
use super::server::Server;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{
    Artifacts, Call, CallError, ClientInput, Outcome, ServerError, ServerQuestion,
};
use serde_json::{Value, json};
use std::sync::Arc;

const READ: &str = "read_resource";
const LIST: &str = "list_resources";

/// The tools for a server that offers resources. One that has a tool of the same name is asked by
/// its own.
pub(super) fn definitions(server: &str) -> Vec<ToolDefinition> {
    let read = ToolDefinition::new(
        server,
        READ,
        "Reads what this server has at an address (MCP resources/read). Text comes as text, anything else as `contents`.",
        json!({ "type": "object", "additionalProperties": false, "required": ["uri"], "properties": {
            "uri": { "type": "string", "minLength": 1, "maxLength": 8192,
                     "description": "An address that the server lists, links to, or has a template for." } } }),
    );
    let list = ToolDefinition::new(
        server,
        LIST,
        "Lists the addresses that this server has something at, and the templates of others (MCP resources/list).",
        json!({ "type": "object", "additionalProperties": false, "properties": {} }),
    )
    .with_output(json!({ "type": "object", "required": ["resources", "templates"], "properties": {
        "resources": { "type": "array", "items": { "type": "object" } },
        "templates": { "type": "array", "items": { "type": "object" } } } }));
    let reads = |open_world| Annotations {
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        // The address decides where the server looks.
        open_world_hint: Some(open_world),
    };
    vec![
        read.with_annotations(reads(true)),
        list.with_annotations(reads(false)),
    ]
}

/// Makes the call of such a tool.
pub(super) async fn call(server: &Arc<Server>, call: Call) -> Outcome {
    let asking = async {
        if call.tool.tool == LIST {
            return list(server).await;
        }
        let uri = call.args.get("uri").and_then(Value::as_str);
        let uri = uri.unwrap_or_default().to_owned();
        read(server, uri, &*server.options.artifacts).await
    };
    tokio::select! {
        biased;
        () = call.cancelled.cancelled() => Err(CallError::Cancelled),
        outcome = asking => outcome,
    }
}

async fn list(server: &Arc<Server>) -> Outcome {
    let resources = offers::ask(server, ServerQuestion::Resources).await;
    let resources = resources.map_err(of_error)?;
    // A server without templates need not know the question.
    let templates = offers::ask(server, ServerQuestion::ResourceTemplates).await;
    let templates = templates.unwrap_or_else(|_| json!([]));
    Ok(json!({ "resources": resources, "templates": templates }))
}

async fn read(server: &Arc<Server>, uri: String, artifacts: &dyn Artifacts) -> Outcome {
    let input = ClientInput::default();
    let question = ServerQuestion::Resource { uri, input };
    let mut answer = offers::ask(server, question).await.map_err(of_error)?;
    if answer.get("resultType").and_then(Value::as_str) == Some("input_required") {
        let words = "the resource wants input that a plan cannot give";
        return Err(refused("input_required", words));
    }
    let Some(Value::Array(contents)) = answer.get_mut("contents").map(Value::take) else {
        return Err(unusable("invalid_output", "the answer has no contents"));
    };
    if let [only] = contents.as_slice()
        && let Some(text) = only.get("text").and_then(Value::as_str)
    {
        return Ok(Value::String(text.to_owned()));
    }
    let mut kept = Vec::with_capacity(contents.len());
    for content in contents {
        kept.push(keep_resource(content, artifacts).await?);
    }
    let first = kept.iter().find_map(|content| content.get("artifact"));
    let first = first.cloned();
    let mut value = json!({ "contents": kept });
    if let Some(first) = first {
        value["artifact"] = first;
    }
    Ok(value)
}

/// Nothing was changed, with a result or without.
fn of_error(error: ServerError) -> CallError {
    match error {
        ServerError::NotOffered => refused("tool_error", "the server offers no resources"),
        ServerError::Refused { code, message, .. } => {
            refused("tool_error", &format!("{message} ({code})"))
        }
        ServerError::Unavailable(reason) => CallError::Unavailable(shorten(&reason)),
    }
}
