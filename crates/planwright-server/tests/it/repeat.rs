//! Requests that are repeated with their key are done once.

use crate::service::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::effect;
use serde_json::{Value, json};

fn post(service: &Service, token: &str, path: &str, key: &str, body: &Value) -> HttpReply {
    service
        .bare("POST", path)
        .token(token)
        .header("Idempotency-Key", key)
        .json(body)
        .send()
}

#[test]
fn the_same_request_is_answered_again_and_done_once() {
    let service = Service::new();
    let goal = json!({ "goal": "once" });
    let first = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(
        (&again.body, again.header("location")),
        (&first.body, first.header("location"))
    );
    assert_eq!(
        service.get("/plan").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn another_body_under_the_same_key_is_refused_and_another_principal_has_keys_of_their_own() {
    let service = Service::new();
    let bob = service.token("author", "person", "bob");
    post(
        &service,
        &service.admin,
        "/plan",
        "k",
        &json!({ "goal": "a" }),
    )
    .ends(201);
    post(
        &service,
        &service.admin,
        "/plan",
        "k",
        &json!({ "goal": "b" }),
    )
    .refuses(422, "another request");
    post(&service, &bob, "/plan", "k", &json!({ "goal": "b" })).ends(201);
    assert_eq!(
        service.get("/plan").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    for bad in ["", "a b", &"x".repeat(256)] {
        assert_eq!(
            post(
                &service,
                &service.admin,
                "/plan",
                bad,
                &json!({ "goal": "c" })
            )
            .status,
            400,
            "{bad:?}"
        );
    }
}

#[test]
fn what_was_refused_may_be_tried_again_under_the_same_key() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    post(&service, &service.admin, "/plan/p/run", "go", &json!({})).refuses(409, "not approved");
    service.approve("p");
    let run = post(&service, &service.admin, "/plan/p/run", "go", &json!({}))
        .ends(202)
        .json();
    service.wait_for("p", "completed");
    let again = post(&service, &service.admin, "/plan/p/run", "go", &json!({}))
        .ends(202)
        .json();
    assert_eq!(run, again);
    assert_eq!(service.files.read("effects.txt"), "a\n");
}

#[test]
fn many_at_once_are_one() {
    let service = Service::new();
    let answers: Vec<HttpReply> = std::thread::scope(|scope| {
        let send = || {
            post(
                &service,
                &service.admin,
                "/plan",
                "race",
                &json!({ "goal": "race" }),
            )
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for answer in &answers {
        assert!(matches!(answer.status, 201 | 409), "{}", answer.text());
    }
    assert_eq!(
        service.get("/plan").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// How many plans there are.
fn count_plans(service: &Service) -> usize {
    let plans = service.get("/plan").json();
    plans["items"].as_array().unwrap().len()
}

#[test]
fn a_plan_whose_creation_was_not_acknowledged_is_not_created_again() {
    let service = Service::new();
    let goal = json!({ "goal": "once" });
    service.store.hide_next_append();
    let lost = post(&service, &service.admin, "/plan", "k", &goal);
    assert!(lost.status >= 500, "{}", lost.text());
    for _ in 0..3 {
        let again = post(&service, &service.admin, "/plan", "k", &goal);
        let problem = again.refuses(409, "was done").json();
        let plan = problem["planId"].as_str().unwrap();
        service.get(&format!("/plan/{plan}")).ends(200);
    }
    assert_eq!(count_plans(&service), 1);
}

#[test]
fn a_run_whose_start_was_not_acknowledged_is_not_started_again() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    service.approve("p");
    service.store.hide_next_append();
    let lost = post(&service, &service.admin, "/plan/p/run", "k", &json!({}));
    assert!(lost.status >= 500, "{}", lost.text());
    let again = post(&service, &service.admin, "/plan/p/run", "k", &json!({}));
    let problem = again.refuses(409, "was done").json();
    assert_eq!(problem["planId"], "p");
    let run = problem["runId"].as_str().unwrap();
    service.get(&format!("/plan/p/runs/{run}")).ends(200);
    let runs = service.get("/plan/p/runs").json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
}

#[test]
fn a_comment_that_was_not_acknowledged_is_not_made_again() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let comment = json!({ "text": "why?" });
    service.store.hide_next_append();
    let path = "/plan/p/comments";
    let lost = post(&service, &service.admin, path, "k", &comment);
    assert!(lost.status >= 500, "{}", lost.text());
    let again = post(&service, &service.admin, path, "k", &comment);
    assert_eq!(again.refuses(409, "was done").json()["planId"], "p");
    let text = service.get(path).text();
    assert_eq!(text.matches("why?").count(), 1, "{text}");
}

#[test]
fn an_answer_to_a_run_that_was_not_acknowledged_is_not_given_again() {
    let service = Service::new();
    let asks = json!({ "id": "ask", "title": "Ask", "input": { "message": "which?", "schema":
        { "type": "object", "properties": { "answer": { "type": "string" } } } } });
    service.plan("p", json!([asks, effect("a", &["ask"])]));
    service.approve("p");
    service.run("p");
    service.wait_for("p", "waiting");
    let inbox = service.get("/approvals").json();
    let digest = inbox["items"][0]["digest"].clone();
    let reply = json!({ "question": digest, "values": { "answer": "this" } });
    service.store.hide_next_append();
    let path = "/plan/p/steps/ask/input";
    let lost = post(&service, &service.admin, path, "k", &reply);
    assert!(lost.status >= 500, "{}", lost.text());
    let again = post(&service, &service.admin, path, "k", &reply);
    let problem = again.refuses(409, "was done").json();
    assert!(problem["runId"].is_string(), "{problem}");
}

#[test]
fn a_failure_with_nothing_done_is_not_answered_again() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let comment = json!({ "text": "why?" });
    let path = "/plan/p/comments";
    service.store.fail_next_append();
    let failed = post(&service, &service.admin, path, "k", &comment);
    assert!(failed.status >= 500, "{}", failed.text());
    post(&service, &service.admin, path, "k", &comment).ends(201);
    let again = post(&service, &service.admin, path, "k", &comment).ends(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let text = service.get(path).text();
    assert_eq!(text.matches("why?").count(), 1, "{text}");
}
