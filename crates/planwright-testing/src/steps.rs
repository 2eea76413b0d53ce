//! Steps of plans, and the steps of a run's result, as JSON.

use serde_json::{Value, json};

/// A step that calls a tool.
pub fn call(id: &str, tool: &str, args: Value, after: &[&str]) -> Value {
    json!({ "id": id, "title": format!("Step {id}"), "tool": tool, "args": args, "dependsOn": after })
}

/// A step that answers with this value.
pub fn echo(id: &str, value: impl Into<Value>, after: &[&str]) -> Value {
    call(id, "demo.echo", json!({ "value": value.into() }), after)
}

/// A step that takes this long.
pub fn sleep(id: &str, ms: u64, after: &[&str]) -> Value {
    call(id, "demo.sleep", json!({ "ms": ms, "value": id }), after)
}

/// A call with an effect that is seen from outside: one line in `effects.txt`.
pub fn effect(id: &str, after: &[&str]) -> Value {
    let args = json!({ "path": "effects.txt", "content": format!("{id}\n") });
    call(id, "append_file", args, after)
}

/// The step of a run's result.
#[track_caller]
pub fn step<'a>(result: &'a Value, id: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap();
    steps
        .iter()
        .find(|step| step["id"] == id)
        .unwrap_or_else(|| panic!("no step {id} in {result:#}"))
}

/// The value of a step, which has to be completed.
#[track_caller]
pub fn value(result: &Value, id: &str) -> Value {
    let step = step(result, id);
    assert_eq!(step["status"], "completed", "{step:#}");
    step["value"].clone()
}

/// The keys of an object, sorted.
#[track_caller]
pub fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}
