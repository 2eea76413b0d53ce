//! Waits, then returns a value: for trying out parallelism, timeouts and cancellation.

use super::alarm;
use super::server::SERVER;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, CallError, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const NAME: &str = "sleep";

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Waits for some milliseconds, then returns the given value, or null. Stops at once when cancelled.",
        json!({
            "type": "object",
            "properties": {
                "ms": { "type": "integer", "minimum": 0, "maximum": 86_400_000, "description": "How long to wait." },
                "value": { "description": "Any JSON value." },
            },
            "required": ["ms"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({ "description": "The value that was given, or null." }))
    .with_annotations(Annotations::read_only())
}

pub(super) async fn run(mut call: Call) -> Outcome {
    let wait = Duration::from_millis(call.args.get("ms").and_then(Value::as_u64).unwrap_or(0));
    tokio::select! {
        biased;
        () = call.cancelled.cancelled() => Err(CallError::Cancelled),
        () = alarm::after(wait) => Ok(call.args.remove("value").unwrap_or(Value::Null)),
    }
}
