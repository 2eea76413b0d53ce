//! What waits for a person is listed with what it covers, not with its title alone.

use crate::service::Service;
use planwright_testing::steps::{call, effect};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// All pages of the inbox, and the length of the longest.
fn read_inbox(service: &Service) -> (Vec<Value>, usize) {
    let mut items = Vec::new();
    let mut longest = 0;
    let mut path = "/approvals".to_owned();
    loop {
        let answer = service.get(&path).ends(200);
        longest = longest.max(answer.body.len());
        let page = answer.json();
        items.extend(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(cursor) => path = format!("/approvals?cursor={cursor}"),
            None => return (items, longest),
        }
    }
}

#[test]
fn a_plan_that_waits_is_listed_with_every_call_it_would_make() {
    let service = Service::new();
    service.plan(
        "child",
        json!([call(
            "inner",
            "append_file",
            json!({ "path": "mallory.txt", "content": "secret plans" }),
            &[]
        )]),
    );
    service.approve("child");
    service.plan(
        "p",
        json!([effect("a", &[]), { "id": "sub", "title": "Sub", "plan": { "id": "child" } }]),
    );
    let (items, _) = read_inbox(&service);
    let waiting = items.iter().find(|item| item["planId"] == "p").unwrap();
    let briefing = &waiting["briefing"];
    assert_eq!(briefing["digest"], waiting["digest"]);
    assert_eq!(*briefing, service.get("/plan/p/briefing").json());
    // Also what the plan does that it runs.
    assert!(briefing.to_string().contains("mallory.txt"), "{briefing}");
    assert!(waiting.get("largeBriefing").is_none());
}

#[test]
fn a_step_that_waits_before_its_arguments_are_known_is_listed_with_what_it_runs() {
    let service = Service::new();
    service.plan(
        "child",
        json!([call(
            "inner",
            "append_file",
            json!({ "path": "mallory.txt", "content": "secret plans" }),
            &[]
        )]),
    );
    service.approve("child");
    let gate =
        json!({ "id": "sub", "title": "Sub", "plan": { "id": "child" }, "approvalRequired": true });
    service.plan("p", json!([gate, effect("other", &[])]));
    // What a plan runs is not in its version: the digest says what was shown.
    let digest = service.get("/plan/p/briefing").ends(200).json()["digest"].clone();
    let yes = json!({ "decision": "approve", "digest": digest });
    service.post("/plan/p/approve", &yes).ends(200);
    let run = service.run("p");
    service.wait_for("p", "waiting");
    let (items, _) = read_inbox(&service);
    let waiting = items.iter().find(|item| item["step"] == "sub").unwrap();
    let briefing = &waiting["briefing"];
    assert!(briefing.to_string().contains("mallory.txt"), "{waiting}");
    assert_eq!(briefing["steps"].as_array().unwrap().len(), 1);
    assert_eq!(briefing["counts"]["steps"], 1);
    let path = format!("/plan/p/runs/{run}/steps/sub/briefing");
    assert_eq!(*briefing, service.get(&path).ends(200).json());
}

#[test]
fn briefings_that_do_not_fit_are_named_with_their_size() {
    let service = Service::new();
    let mut ids = BTreeSet::new();
    for number in 0..12 {
        let id = format!("p{number}");
        let text = format!(
            "{number}-{}",
            "x".repeat(if number < 9 { 700_000 } else { 50 })
        );
        service.plan(
            &id,
            json!([call(
                "a",
                "append_file",
                json!({ "path": "x.txt", "content": text }),
                &[]
            )]),
        );
        ids.insert(id);
    }
    let (items, longest) = read_inbox(&service);
    assert!(longest < (4 << 20) + (256 << 10), "{longest}");
    let mut linked = 0;
    for item in &items {
        let plan = item["planId"].as_str().unwrap();
        let briefing = match item["briefing"].as_object() {
            Some(_) => item["briefing"].clone(),
            None => {
                linked += 1;
                let large = &item["largeBriefing"];
                assert!(
                    large["summary"].as_str().unwrap().contains("1 step"),
                    "{large}"
                );
                let answer = service.get(large["href"].as_str().unwrap()).ends(200);
                assert_eq!(large["bytes"], answer.body.len());
                answer.json()
            }
        };
        let number = plan.strip_prefix('p').unwrap();
        assert!(
            briefing.to_string().contains(&format!("{number}-xxx")),
            "{plan}"
        );
        assert!(ids.remove(plan), "{plan} twice");
    }
    assert!(ids.is_empty(), "{ids:?}");
    assert!(linked < 9, "{linked}");
}
