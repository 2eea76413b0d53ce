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
