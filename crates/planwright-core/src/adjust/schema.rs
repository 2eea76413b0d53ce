//! The schema of the answer of the reflector.

use super::Assessment;
use crate::model::{AnswerSchema, OfferedTool};
use crate::run::Run;
use serde_json::{Value, json};

/// A schema that names more than this gets a free text instead: some servers take no larger ones.
const MAX_NAMES: usize = 200;

/// Steps by their ids, tools by their names; everything else is bounded.
pub fn reflection_schema(run: &Run, tools: &[OfferedTool]) -> AnswerSchema {
    let words: Vec<&str> = Assessment::ALL
        .into_iter()
        .filter(|a| *a != Assessment::Unknown)
        .map(Assessment::as_str)
        .collect();
    let steps = run.plan().indices().map(|ix| run.step_id(ix).to_string());
    let step = one_of(steps.collect());
    let tool = one_of(tools.iter().map(|tool| tool.name.clone()).collect());
    let args = json!({ "type": "object" });
    let new = json!({
        "type": "object",
        "properties": {
            "id": text(64),
            "title": text(200),
            "tool": tool,
            "args": args,
        },
        "required": ["tool", "args"],
    });
    let adjustment = json!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "enum": ["retry", "modify", "skip", "add_before", "add_after", "replace"] },
            "step": step,
            "args": args,
            "reason": text(500),
            "new": new,
        },
        "required": ["type", "step"],
    });
    let schema = json!({
        "type": "object",
        "properties": {
            "assessment": { "type": "string", "enum": words },
            "reasoning": text(1_000),
            "adjustments": { "type": "array", "maxItems": 10, "items": adjustment },
        },
        "required": ["assessment", "reasoning", "adjustments"],
    });
    AnswerSchema {
        name: "reflection".to_owned(),
        schema,
    }
}

pub(super) fn text(letters: u32) -> Value {
    json!({ "type": "string", "maxLength": letters })
}

fn one_of(names: Vec<String>) -> Value {
    if names.is_empty() || names.len() > MAX_NAMES {
        text(200)
    } else {
        json!({ "type": "string", "enum": names })
    }
}
