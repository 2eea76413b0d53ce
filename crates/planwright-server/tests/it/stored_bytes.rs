//! How much one principal may bring into the store. What they decide is never refused for it.

use crate::service::{Service, Setup};
use planwright_testing::http::HttpReply;
use planwright_testing::steps::{effect, sleep};
use serde_json::{Value, json};

const LIMIT: u64 = 1 << 20;

/// A service in which one principal may bring a mebibyte.
fn service() -> Service {
    Service::start(Setup {
        stored_bytes: LIMIT,
        ..Setup::default()
    })
}

/// Posts plans of about 100 KB until one is refused, and returns how many were taken.
fn fill(service: &Service, token: &str, name: &str) -> usize {
    for number in 0..100 {
        let plan = plan(&format!("{name}{number}"), &"x".repeat(100_000));
        let answer = service
            .bare("POST", "/plan")
            .token(token)
            .json(&plan)
            .send();
        if answer.status != 201 {
            refused(answer);
            return number;
        }
    }
    panic!("nothing was refused");
}

fn plan(id: &str, notes: &str) -> Value {
    json!({ "id": id, "title": "A plan", "variables": { "notes": notes }, "steps": [effect("a", &[])] })
}

#[track_caller]
fn refused(answer: HttpReply) {
    let problem = answer.refuses(403, "may bring no more").json();
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("stored_megabytes_per_principal"), "{hint}");
}

#[test]
fn an_agent_that_does_not_stop_is_stopped_and_others_go_on() {
    let service = service();
    let eager = service.token("author", "agent", "eager");
    let modest = service.token("author", "agent", "modest");
    let taken = fill(&service, &eager, "p");
    assert!((10..13).contains(&taken), "{taken}");
    // Not by a version, not by words, not by many small things.
    let asks = |method: &str, path: &str| service.bare(method, path).token(&eager);
    refused(
        asks("PATCH", "/plan/p0")
            .header("If-Match", "\"v1-1\"")
            .body("application/merge-patch+json", br#"{"title":"other"}"#)
            .send(),
    );
    refused(
        asks("POST", "/plan/p0/comments")
            .json(&json!({ "text": "more" }))
            .send(),
    );
    refused(
        asks("POST", "/plan")
            .json(&json!({ "goal": "something" }))
            .send(),
    );
    // They still read, and others still write.
    asks("GET", "/plan/p0").send().ends(200);
    let other = plan("other", "few");
    service
        .bare("POST", "/plan")
        .token(&modest)
        .json(&other)
        .send()
        .ends(201);
}

#[test]
fn comments_and_their_threads_count_too() {
    let service = service();
    service.plan("p", json!([effect("a", &[])]));
    let eager = service.token("author", "agent", "eager");
    let post =
        |path: &str, body: &Value| service.bare("POST", path).token(&eager).json(body).send();
    let said = post("/plan/p/comments", &json!({ "text": "y".repeat(60_000) })).ends(201);
    let id = said.json()["id"].as_str().unwrap().to_owned();
    let mut said = 1;
    let last = loop {
        let answer = post("/plan/p/comments", &json!({ "text": "y".repeat(60_000) }));
        if answer.status != 201 {
            break answer;
        }
        said += 1;
        assert!(said < 100, "nothing was refused");
    };
    refused(last);
    refused(post(&format!("/plan/p/comments/{id}/resolve"), &json!({})));
}

#[test]
fn what_a_person_decides_is_never_refused_for_what_they_stored() {
    let service = service();
    let steps = [
        ("approved", json!([effect("a", &[])])),
        ("rejected", json!([effect("a", &[])])),
        ("changed", json!([effect("a", &[])])),
        ("stopped", json!([sleep("a", 60_000, &[])])),
        (
            "asked",
            json!([{ "id": "a", "title": "Ask", "input": { "message": "which?", "schema":
            { "type": "object", "properties": { "n": { "type": "integer" } } } } }]),
        ),
        ("deleted", json!([effect("a", &[])])),
    ];
    for (id, steps) in &steps {
        service.plan(id, steps.clone());
    }
    fill(&service, &service.admin, "p");
    let decide = |path: &str, body: Value| {
        let answer = service.post(path, &body);
        assert!(
            (200..300).contains(&answer.status),
            "{path}: {}",
            answer.text()
        );
    };
    service.approve("approved");
    service.run("approved");
    service.wait_for("approved", "completed");
    decide(
        "/plan/rejected/reject",
        json!({ "decision": "reject", "version": 1, "reason": "no" }),
    );
    decide(
        "/plan/changed/request-changes",
        json!({ "version": 1, "reason": "other words" }),
    );
    service.approve("stopped");
    service.run("stopped");
    decide("/plan/stopped/pause", json!({}));
    decide("/plan/stopped/cancel", json!({}));
    service.approve("asked");
    service.run("asked");
    service.wait_for("asked", "waiting");
    let waiting = service.inbox();
    let asked = waiting
        .iter()
        .find(|waiting| waiting["kind"] == "input")
        .unwrap();
    decide(
        "/plan/asked/steps/a/input",
        json!({ "question": asked["digest"], "values": { "n": 1 } }),
    );
    service.request("DELETE", "/plan/deleted").send().ends(204);
}
