//! Returns what it was given.

use super::server::SERVER;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, Outcome};
use serde_json::{Value, json};

pub(super) const NAME: &str = "echo";

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Returns the given value unchanged.",
        json!({
            "type": "object",
            "properties": { "value": { "description": "Any JSON value." } },
            "required": ["value"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({ "description": "The value that was given." }))
    .with_annotations(Annotations::read_only())
}

/// Moves the value out of the call. It is not async: the engine's throughput is measured with this
/// tool, so it must cost nothing itself.
pub(super) fn run(mut call: Call) -> Outcome {
    Ok(call.args.remove("value").unwrap_or(Value::Null))
}
