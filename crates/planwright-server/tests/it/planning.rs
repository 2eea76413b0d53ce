//! Plans that a model writes, over HTTP.

use crate::service::Service;
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::ModelError;
use planwright_testing::wait::wait_until;
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
            status: 403,
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

#[test]
fn a_plan_is_written_while_no_caller_waits() {
    let model = ScriptedModel::default()
        .says("hm")
        .says(plan("local.list_dir").to_string());
    let service = Service::with_model(model);
    let ordered = service.post("/planning", &json!({ "goal": "look around" }));
    let ordered = ordered.ends(202);
    let place = ordered.header("location").unwrap().to_owned();
    assert_eq!(ordered.json()["goal"], "look around");
    let order = || service.get(&place).ends(200).json();
    wait_until("the plan to be written", || order()["status"] != "running");
    let done = order();
    assert_eq!(done["status"], "done", "{done}");
    let kinds: Vec<&Value> = done["progress"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["kind"])
        .collect();
    assert_eq!(
        kinds,
        ["asked", "answered", "sent_back", "asked", "answered"]
    );
    let id = done["planId"].as_str().unwrap();
    assert_eq!(service.status(id), "proposed");
    let told = service
        .request("GET", &format!("{place}/events"))
        .header("Accept", "text/event-stream")
        .send()
        .ends(200);
    assert!(told.text().contains("event: planning"), "{}", told.text());
    // What is over stays as it is.
    service.request("DELETE", &place).send().ends(202);
    assert_eq!(order()["status"], "done");
    let bob = service.token("author", "person", "bob");
    let others = service.bare("DELETE", &place).token(&bob).send();
    others.refuses(403, "only the author");
    service.get("/planning/nosuch").ends(404);
}

#[test]
fn without_a_model_no_plan_is_ordered() {
    let service = Service::new();
    let refused = service.post("/planning", &json!({ "goal": "look around" }));
    refused.refuses(409, "no model");
    service.post("/planning", &json!({ "goal": " " })).ends(400);
}
