//! Plans that a model writes, over HTTP.

use crate::service::Service;
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::ModelError;
use serde_json::{Value, json};

fn plan(tool: &str) -> Value {
    json!({ "title": "Look around", "steps": [{ "id": "s1", "title": "List", "tool": tool, "args": {} }] })
}

#[test]
fn a_goal_becomes_a_plan_with_steps_and_can_be_written_again() {
    let again = json!({ "title": "Look around", "steps": [{ "id": "s1", "title": "Wait", "tool": "demo.sleep", "args": { "ms": 1 } }] });
    let model = ScriptedModel::default()
        .says("hm")
        .says(plan("local.list_dir").to_string())
        .says(again.to_string())
        .then(Err(ModelError::Refused {
            model: ScriptedModel::NAME.to_owned(),
            status: 400,
            message: "no such model".to_owned(),
        }));
    let service = Service::with_model(model);
    let made = service
        .post("/plan", &json!({ "goal": "look around" }))
        .ends(201)
        .json();
    assert_eq!(made["traceId"].as_str().unwrap().len(), 36, "{made}");
    let plan = &made["plan"];
    assert_eq!(
        (&plan["goal"], &plan["status"]),
        (&json!("look around"), &json!("proposed"))
    );
    assert_eq!(
        (&plan["steps"][0]["action"], &plan["steps"][0]["tool"]),
        (&json!("List"), &json!("local.list_dir"))
    );
    let id = plan["id"].as_str().unwrap();
    let shown = service.get(&format!("/plan/{id}")).ends(200).json();
    assert_eq!(
        (&shown["planning"]["rounds"], &shown["models"][0]["answers"]),
        (&json!(2), &json!(2))
    );
    let body = json!({ "steps": ["s1"], "feedback": "wait instead" });
    let done = service
        .post(&format!("/plan/{id}/regenerate"), &body)
        .ends(200)
        .json();
    assert_eq!(
        (&done["version"], &done["changed"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(done["diff"]["executable"], true);
    service
        .post("/plan", &json!({ "goal": "look around" }))
        .refuses(502, "no such model");
    let unknown = json!({ "steps": ["s9"] });
    service
        .post(&format!("/plan/{id}/regenerate"), &unknown)
        .refuses(422, "no step `s9`");
    let empty = service.post("/plan", &json!({ "goal": " " }));
    empty.refuses(400, "the goal is empty");
}

#[test]
fn without_a_model_a_goal_stays_a_draft() {
    let service = Service::new();
    let made = service
        .post("/plan", &json!({ "goal": "look around" }))
        .ends(201)
        .json();
    assert_eq!(
        (&made["plan"]["status"], &made["plan"]["steps"]),
        (&json!("draft"), &json!([]))
    );
    let id = made["plan"]["id"].as_str().unwrap();
    service
        .request("POST", &format!("/plan/{id}/regenerate"))
        .send()
        .refuses(409, "no model");
}
