//! Approvals with the real program: a step with a real effect, and signing in from its terminal.

use crate::client::Service;
use planwright_testing::steps::{echo, effect, step};
use serde_json::{Value, json};

fn gated() -> Value {
    let mut b = effect("b", &["a"]);
    b["approvalRequired"] = json!(true);
    json!([echo("a", 1, &[]), b, echo("c", 3, &["b"])])
}

/// A service with a run of `gated` that waits for its step.
fn waiting() -> (Service, String) {
    let service = Service::new();
    service.plan("p", gated());
    service.approve("p");
    let run = service.run("p");
    service.wait_for("p", "waiting");
    (service, run)
}

fn inbox(service: &Service) -> Vec<Value> {
    service.get("/approvals").ends(200).json()["items"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_gated_step_is_not_dispatched_before_it_is_approved_and_then_called_once() {
    let (service, run) = waiting();
    assert_eq!(
        step(&service.result("p", &run), "b")["status"],
        "awaiting_approval"
    );
    assert_eq!(service.bench.read("effects.txt"), "");
    let waits = inbox(&service);
    assert_eq!(
        (waits.len(), &waits[0]["kind"], &waits[0]["step"]),
        (1, &json!("step"), &json!("b"))
    );
    assert_eq!(waits[0]["written"]["tool"], "append_file", "{waits:?}");
    let digest = &waits[0]["digest"];
    service
        .post(
            "/plan/p/steps/b/approve",
            &json!({ "decision": "approve", "digest": digest }),
        )
        .ends(200);
    service.wait_for("p", "completed");
    assert_eq!(service.bench.read("effects.txt"), "b\n");
    let by = service.bench.log("p");
    let granted = by
        .iter()
        .find(|entry| entry["kind"] == "approval_granted")
        .unwrap();
    assert_eq!(
        (&granted["by"]["name"], &granted["assurance"]),
        (&json!("ada"), &json!("token"))
    );
    assert!(inbox(&service).is_empty());
}

#[test]
fn whoever_signs_in_from_the_terminal_is_known_to_have_done_so() {
    let bench = planwright_testing::workbench::Bench::new();
    let terminal = planwright_testing::terminal::Terminal::start(
        &bench,
        &["serve", "--listen", "127.0.0.1:0"],
    );
    terminal.wait_for("#sign-in=");
    let seen = terminal.seen();
    let url = seen
        .split("within five minutes: ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    let (origin, code) = url.split_once("#sign-in=").unwrap();
    let origin = origin.trim_end_matches("docs").trim_end_matches('/');
    let service =
        planwright_testing::http::HttpRequest::to(origin.strip_prefix("http://").unwrap());
    let sign_in = |code: &str| {
        service("POST", "/sign-in")
            .json(&json!({ "code": code }))
            .send()
    };
    sign_in("wrong").refuses(401, "never was one");
    let session = sign_in(code).ends(200).json();
    sign_in(code).refuses(401, "was used");
    let token = session["token"].as_str().unwrap();
    let me = service("GET", "/whoami")
        .token(token)
        .send()
        .ends(200)
        .json();
    assert_eq!(
        (&me["kind"], &me["assurance"], &me["role"]),
        (&json!("person"), &json!("web_sign_in"), &json!("admin"))
    );
    terminal.interrupt();
}
