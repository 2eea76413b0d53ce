//! What a tool's result is as a value.

use super::questions;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use planwright_core::run::{Asked, CallEffect};
use planwright_core::tool::KnownTool;
use planwright_engine::port::{Artifacts, CallError, Outcome};
use serde_json::{Map, Value, json};

/// The characters kept of a server's error message.
const MAX_MESSAGE_CHARS: usize = 4_000;

/// The meaning of a result.
#[derive(Debug)]
pub(super) enum Meaning {
    Done(Outcome),
    /// The server wants answers, or only to be asked once more with its note.
    Asks(Asked),
}

/// Reads a result of `tools/call`.
pub(super) async fn meaning(result: Value, tool: &KnownTool, artifacts: &dyn Artifacts) -> Meaning {
    match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => Meaning::Done(outcome(result, tool, artifacts).await),
        Some("input_required") => match questions::of_result(&result) {
            Some(asked) => Meaning::Asks(asked),
            None => Meaning::Done(Err(refused(
                "input_required",
                "the tool wants input that no person can give",
            ))),
        },
        // Something was begun that was not asked for.
        Some(other) => Meaning::Done(Err(CallError::Lost(format!(
            "the server answered with a result of the unknown type `{}`",
            shorten(other)
        )))),
    }
}

async fn outcome(mut result: Value, tool: &KnownTool, artifacts: &dyn Artifacts) -> Outcome {
    let Value::Object(fields) = &mut result else {
        return Err(unusable("invalid_output", "the result is not an object"));
    };
    let blocks = match fields.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => {
            return Err(unusable(
                "invalid_output",
                "the content of the result is not a list",
            ));
        }
    };
    if fields.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(failed("tool_error", &error_text(&blocks)));
    }
    if let Some(value) = fields.remove("structuredContent") {
        let value = fitting(value, tool)?;
        let attached = blocks.into_iter().filter(|block| !is_text(block)).collect();
        return Ok(with_attachments(
            value,
            keep_all(attached, artifacts).await?,
        ));
    }
    match blocks.as_slice() {
        [] => fitting_if_declared(Value::Null, tool),
        [block] if is_text(block) => text_value(block, tool),
        _ => fitting_if_declared(contents(blocks, artifacts).await?, tool),
    }
}

/// A declared schema is a promise: what breaks it would break the steps that build on it.
fn fitting(value: Value, tool: &KnownTool) -> Outcome {
    // A promise that cannot be read is none.
    let Ok(validator) = tool.output_validator() else {
        return Ok(value);
    };
    let validator = validator
        .map(|schema| schema.for_value(&value))
        .transpose()
        .map_err(|problem| unusable("invalid_output", &problem.to_string()))?;
    match validator.and_then(|validator| validator.iter_errors(&value).next()) {
        None => Ok(value),
        Some(error) => {
            let place = match error.instance_path().as_str() {
                "" => String::new(),
                place => format!("{}: ", shorten(place)),
            };
            let message = format!(
                "the result does not fit the tool's output schema: {place}{}",
                error.masked()
            );
            Err(unusable("invalid_output", &message))
        }
    }
}

fn fitting_if_declared(value: Value, tool: &KnownTool) -> Outcome {
    if tool.definition.output_schema.is_some() {
        fitting(value, tool)
    } else {
        Ok(value)
    }
}

/// Text is a value of its own. Only a tool that declares what it returns has its text read as JSON.
fn text_value(block: &Value, tool: &KnownTool) -> Outcome {
    let text = block
        .get("text")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if tool.definition.output_schema.is_none() {
        return Ok(Value::String(text.to_owned()));
    }
    super::message::measure(text.as_bytes()).map_err(|why| unusable("output_too_large", why))?;
    let value = serde_json::from_str(text).map_err(|_| {
        unusable(
            "invalid_output",
            "the tool declares an output schema and returned other text",
        )
    })?;
    fitting(value, tool)
}

fn is_text(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("text")
        && block.get("text").is_some_and(Value::is_string)
}

async fn contents(blocks: Vec<Value>, artifacts: &dyn Artifacts) -> Outcome {
    let content = keep_all(blocks, artifacts).await?;
    let first = first_artifact(&content);
    let mut value = json!({ "content": content });
    if let Some(first) = first {
        value[ARTIFACT] = first;
    }
    Ok(value)
}

async fn keep_all(blocks: Vec<Value>, artifacts: &dyn Artifacts) -> Result<Vec<Value>, CallError> {
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        content.push(kept(block, artifacts).await?);
    }
    Ok(content)
}

/// The key of the first artifact of a value, and that of all its blocks.
const ARTIFACT: &str = "artifact";
const ARTIFACTS: &str = "artifacts";

fn first_artifact(blocks: &[Value]) -> Option<Value> {
    let of_block = |block: &Value| {
        let resource = block.get("resource").and_then(|inner| inner.get(ARTIFACT));
        block.get(ARTIFACT).or(resource).cloned()
    };
    blocks.iter().find_map(of_block)
}

/// A structured value with the pictures, recordings and resources that came beside it. One that has
/// no room for them is put beside them.
fn with_attachments(value: Value, attached: Vec<Value>) -> Value {
    if attached.is_empty() {
        return value;
    }
    let first = first_artifact(&attached);
    let mut fields = match value {
        Value::Object(fields)
            if !fields.contains_key(ARTIFACT) && !fields.contains_key(ARTIFACTS) =>
        {
            fields
        }
        other => Map::from_iter([("structuredContent".to_owned(), other)]),
    };
    fields.insert(ARTIFACTS.to_owned(), Value::Array(attached));
    if let Some(first) = first {
        fields.insert(ARTIFACT.to_owned(), first);
    }
    Value::Object(fields)
}

/// One block with its bytes put away. Links are kept as links: nothing is fetched.
async fn kept(mut block: Value, artifacts: &dyn Artifacts) -> Outcome {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Value::Object(fields) = &mut block else {
        return Err(unusable(
            "invalid_output",
            "a content block is not an object",
        ));
    };
    fields.remove("_meta");
    fields.remove("annotations");
    match kind.as_str() {
        "image" | "audio" => put_away(fields, "data", artifacts).await?,
        "resource" => {
            if let Some(Value::Object(resource)) = fields.get_mut("resource") {
                resource.remove("_meta");
                if resource.contains_key("blob") {
                    put_away(resource, "blob", artifacts).await?;
                }
            }
        }
        _ => {}
    }
    Ok(block)
}

/// The content of a resource with its bytes put away.
pub(super) async fn keep_resource(mut content: Value, artifacts: &dyn Artifacts) -> Outcome {
    let Value::Object(fields) = &mut content else {
        return Err(unusable("invalid_output", "a content is not an object"));
    };
    fields.remove("_meta");
    if fields.contains_key("blob") {
        put_away(fields, "blob", artifacts).await?;
    }
    Ok(content)
}

/// Replaces base64 text by the artifact of its bytes.
async fn put_away(
    fields: &mut Map<String, Value>,
    name: &str,
    artifacts: &dyn Artifacts,
) -> Result<(), CallError> {
    let Some(Value::String(text)) = fields.remove(name) else {
        return Err(unusable("invalid_output", "a content block has no bytes"));
    };
    let bytes = STANDARD.decode(text.trim_ascii()).map_err(|_| {
        unusable(
            "invalid_output",
            "the bytes of a content block are not base64",
        )
    })?;
    let size = bytes.len();
    // The call happened, and its outcome cannot be kept: it must not be taken for failed.
    let artifact = artifacts
        .put(bytes)
        .await
        .map_err(|error| CallError::Lost(format!("the result could not be stored: {error}")))?;
    fields.insert("artifact".to_owned(), json!(artifact.digest));
    fields.insert("bytes".to_owned(), json!(size));
    Ok(())
}

fn error_text(blocks: &[Value]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    if texts.is_empty() {
        "the tool failed and gave no reason".to_owned()
    } else {
        texts.join("\n")
    }
}

/// A failure of the tool itself. What it did before it failed is not known.
pub(super) fn failed(code: &str, message: &str) -> CallError {
    CallError::Failed {
        code: code.into(),
        message: shorten(message),
        retryable: false,
        effect: CallEffect::Unknown,
    }
}

/// A call that the server did not carry out. The message may be the server's.
pub(super) fn refused(code: &str, message: &str) -> CallError {
    CallError::refused(code, shorten(message))
}

/// A call that the server carried out, with an answer that is of no use.
pub(super) fn unusable(code: &str, message: &str) -> CallError {
    CallError::unusable(code, shorten(message))
}

pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
