//! The published schema and the plans it is for.

use crate::plans::{ALL, document, read};
use planwright_core::plan::{Bounds, Plan, json_schema};
use serde_json::{Value, json};

fn errors(value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn a_plan_of_every_dialect_fits_the_schema_once_it_is_read() {
    for text in ALL {
        let document = read(text);
        assert_eq!(errors(&serde_json::to_value(&document).unwrap()), [""; 0]);
        let plan = Plan::compile(document, &Bounds::default()).unwrap();
        assert_eq!(
            errors(&serde_json::to_value(plan.document()).unwrap()),
            [""; 0]
        );
    }
}

#[test]
fn a_plan_with_every_field_fits_the_schema() {
    let full = document(json!({
        "id": "p", "title": "t", "goal": "g", "inputs": {"type": "object"}, "variables": {"v": [1]},
        "toolsRequired": ["t"], "successCriteria": ["s"], "risks": ["r"], "plannerModel": "m", "executorModel": "m",
        "estimatedDuration": 1.5, "context": {"toolOutputs": {"x": 1}, "notes": "n", "artifacts": ["a"]},
        "limits": {"maxConcurrency": 2, "onFailure": "continue", "maxCycles": 1, "maxReplans": 1,
            "budget": {"calls": 1, "perTool": {"t": 1}, "seconds": 1, "tokens": 1, "sameCall": 1}},
        "steps": [
            {"id": "a", "title": "t", "tool": "t", "args": {"x": 1}, "result": "r", "when": "true", "forEach": [1],
             "maxParallel": 1, "retry": {"max": 1, "backoff": 1, "factor": 1, "jitter": 0, "on": ["x"]},
             "timeoutSeconds": 1, "approvalRequired": true, "constraints": ["true"], "critical": false,
             "optional": true, "expect": "true", "undo": {"tool": "u", "args": {"y": 1}}, "capability": "c",
             "capabilityLabel": "l", "labels": ["l"]},
            {"think": {"prompt": "p", "schema": {}, "model": "m"}, "dependsOn": ["a"]},
            {"agent": {"instruction": "i", "tool": "t", "operation": "o", "target": "x", "executor": "e"}},
            {"input": {"message": "m", "schema": {"type": "object"}}},
            {"plan": {"id": "q", "inputs": {"x": 1}}},
        ],
    }));
    assert_eq!(errors(&serde_json::to_value(&full).unwrap()), [""; 0]);
}

#[test]
fn the_schema_refuses_unknown_keys_and_says_what_it_is() {
    assert_ne!(errors(&json!({"steps": [], "stepz": 1})), [""; 0]);
    assert_ne!(errors(&json!({"id": "../x", "steps": []})), [""; 0]);
    let schema = json_schema();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(schema["title"], "Planwright plan");
}
