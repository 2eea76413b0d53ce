//! Requests that are repeated with their key are done once.

use crate::client::Service;
use planwright_testing::http::HttpReply;
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
fn the_same_request_is_answered_again_and_done_once_also_after_a_restart() {
    let mut service = Service::new();
    let goal = json!({ "goal": "once" });
    let first = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(
        (&again.body, again.header("location")),
        (&first.body, first.header("location"))
    );
    assert_eq!(service.stop(), 0);
    service.start();
    let later = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(
        (later.header("idempotency-replayed"), &later.body),
        (Some("true"), &first.body)
    );
    assert_eq!(
        service.get("/plan").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
