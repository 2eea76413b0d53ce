//! Runs that are looked at over HTTP: an adjustment waits for an approval, and goes on by itself
//! once that is there.

use crate::service::Service;
use planwright_engine::memory::ScriptedModel;
use serde_json::{Value, json};

fn steps() -> Value {
    json!([
        {"id": "a", "tool": "local.write_file", "args": {"path": "a.txt", "content": "hello"}},
        {"id": "b", "tool": "local.read_file", "args": {"path": "missing.txt"}, "dependsOn": ["a"]},
        {"id": "c", "tool": "local.write_file", "args": {"path": "c.txt", "content": "${b}"}},
    ])
}

#[test]
fn an_adjusted_plan_goes_on_when_it_is_approved() {
    let retry = json!({"assessment": "needs_adjustment", "reasoning": "another name", "adjustments": [
        {"type": "retry", "step": "b", "args": {"path": "a.txt"}},
    ]});
    let model = ScriptedModel::default().says(retry.to_string());
    let service = Service::with_model(model.clone());
    service.plan("p", steps());
    service.approve("p");
    let begun = service
        .post("/plan/p/run", &json!({"reflect": true, "maxCycles": 2}))
        .ends(202)
        .json();
    let run = begun["runId"].as_str().unwrap().to_owned();
    service.wait_for("p", "proposed");
    let result = service.result("p", &run);
    assert_eq!(
        (&result["status"], &result["reflection"]["assessment"]),
        (&json!("adjusted"), &json!("needs_adjustment"))
    );
    assert_eq!(service.files.read("c.txt"), "");

    service
        .post(
            "/plan/p/approve",
            &json!({"decision": "approve", "version": 2}),
        )
        .ends(200);
    service.wait_for("p", "completed");
    assert_eq!(service.files.read("c.txt"), "hello");
    assert_eq!(model.requests().len(), 1);
    let told = service
        .request("GET", "/plan/p/events")
        .header("Accept", "application/json")
        .send()
        .ends(200)
        .text();
    let at = |name: &str| {
        told.find(name)
            .unwrap_or_else(|| panic!("no {name} in {told}"))
    };
    assert!(
        at("plan.reflected") < at("plan.adjusted") && at("plan.adjusted") < at("run.completed")
    );

    service
        .post("/plan/p/run", &json!({"reflect": true, "maxCycles": 0}))
        .ends(400);
    service.post("/plan/p/check", &json!({})).ends(409);
}

#[test]
fn nothing_begins_that_needs_a_model_where_there_is_none() {
    let service = Service::new();
    service.plan("p", steps());
    service.approve("p");
    let refused = service.post("/plan/p/run", &json!({"reflect": true}));
    assert!(refused.status >= 400, "{}", refused.text());
    assert_eq!(service.files.read("a.txt"), "");
}
