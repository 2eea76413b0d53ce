//! Fails as often as asked, then succeeds: for trying out retries.

use super::server::SERVER;
use planwright_core::run::CallEffect;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, CallError, Outcome};
use serde_json::{Value, json};

pub(super) const NAME: &str = "fail";

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Fails the first `times` attempts of its step, or always when `times` is absent, then succeeds.",
        json!({
            "type": "object",
            "properties": {
                "times": { "type": "integer", "minimum": 0, "maximum": 1000, "description": "How many attempts fail." },
                "message": { "type": "string", "maxLength": 4096, "description": "What the failure says." },
                "retryable": { "type": "boolean", "default": true, "description": "Whether trying again may help." },
            },
            "additionalProperties": false,
        }),
    )
    .with_output(json!({
        "type": "object",
        "properties": { "attempts": { "type": "integer", "minimum": 1 } },
        "required": ["attempts"],
        "additionalProperties": false,
    }))
    .with_annotations(Annotations::read_only())
}

/// Counts nothing itself: the attempt number comes with the call, so a restart does not start the
/// count again.
pub(super) fn run(call: &Call) -> Outcome {
    let times = call.args.get("times").and_then(Value::as_u64);
    if times.is_none_or(|times| u64::from(call.attempt) <= times) {
        return Err(CallError::Failed {
            code: "demo_failure".into(),
            message: call
                .args
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("failed as asked")
                .to_owned(),
            retryable: call
                .args
                .get("retryable")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            effect: CallEffect::None,
        });
    }
    Ok(json!({ "attempts": call.attempt }))
}
