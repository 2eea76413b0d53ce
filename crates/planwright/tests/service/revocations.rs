//! An approver whose access is taken away, and approvals that are taken back, over HTTP.

use crate::client::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::effect;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::said;
use serde_json::{Value, json};

/// A person with a token.
struct Person {
    id: String,
    token: String,
}

fn person(service: &Service, role: &str, name: &str, more: &[&str]) -> Person {
    let args = [
        "token", "create", "--role", role, "--kind", "person", "--name", name, "--json",
    ];
    let made = service.bench.run(&[&args, more].concat()).ends(0).json();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    Person {
        id: text("id"),
        token: text("token"),
    }
}

impl Person {
    fn post(&self, service: &Service, path: &str, body: &Value) -> HttpReply {
        service
            .bare("POST", path)
            .token(&self.token)
            .json(body)
            .send()
    }

    /// Makes a plan and agrees to it.
    fn approve(&self, service: &Service, plan: &str) {
        service.plan(plan, json!([effect(plan, &[])]));
        self.agree(service, plan);
    }

    fn agree(&self, service: &Service, plan: &str) {
        let yes = json!({ "decision": "approve", "version": 1 });
        self.post(service, &format!("/plan/{plan}/approve"), &yes)
            .ends(200);
    }
}

fn start(service: &Service, plan: &str) -> HttpReply {
    service.request("POST", &format!("/plan/{plan}/run")).send()
}

fn revoke(service: &Service, person: &Person) -> Value {
    service
        .bench
        .run(&["token", "revoke", &person.id, "--json"])
        .ends(0)
        .json()
}

fn state(service: &Service, plan: &str) -> Value {
    service.get(&format!("/plan/{plan}")).ends(200).json()["approvals"][0]["state"].clone()
}

#[test]
fn what_somebody_approved_starts_nothing_once_their_token_is_revoked() {
    let service = Service::new();
    let bob = person(&service, "approver", "bob", &[]);
    for plan in ["p", "q"] {
        bob.approve(&service, plan);
    }
    service.plan("r", json!([effect("r", &[])]));
    service.approve("r");
    let mut said = revoke(&service, &bob);
    said["approvalsRevoked"]
        .as_array_mut()
        .unwrap()
        .sort_by_key(ToString::to_string);
    let plans = json!(["p", "q"]);
    let none = json!([]);
    assert_eq!(
        (
            &said["revoked"],
            &said["approvalsRevoked"],
            &said["runsExecuting"]
        ),
        (&json!(true), &plans, &none)
    );
    for plan in ["p", "q"] {
        let refused = start(&service, plan).refuses(409, "the approval of person bob was revoked");
        assert!(
            refused.json()["hint"]
                .as_str()
                .unwrap()
                .contains("approve it again"),
            "{}",
            refused.text()
        );
        assert_eq!(
            (state(&service, plan), service.status(plan)),
            (json!("revoked"), "proposed".to_owned())
        );
        service
            .bench
            .run(&["run", plan])
            .complains(3, "the approval of person bob was revoked");
    }
    assert_eq!(service.bench.read("effects.txt"), "");
    let told = service
        .request("GET", "/plan/p/events")
        .header("Accept", "application/json")
        .send()
        .ends(200)
        .json();
    let told = told["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&told["event"], &told["reason"]),
        (
            &json!("plan.approval_revoked"),
            &json!("their access was revoked")
        )
    );
    service.run("r");
    service.wait_for("r", "completed");
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
}

#[test]
fn a_token_that_is_replaced_or_expires_takes_nothing_with_it() {
    let service = Service::new();
    let bob = person(&service, "approver", "bob", &[]);
    bob.approve(&service, "kept");
    service.bench.run(&["token", "rotate", &bob.id]).ends(0);
    assert_eq!(
        revoke(&service, &bob)["approvalsRevoked"],
        json!([]),
        "it was revoked when it was replaced"
    );
    service.run("kept");
    service.wait_for("kept", "completed");
    let sam = person(&service, "approver", "sam", &["--expires", "2s"]);
    sam.approve(&service, "late");
    wait_until("the token to expire", || {
        service
            .bare("GET", "/whoami")
            .token(&sam.token)
            .send()
            .status
            == 401
    });
    assert_eq!(revoke(&service, &sam)["approvalsRevoked"], json!([]));
    service.run("late");
    service.wait_for("late", "completed");
}

#[test]
fn what_goes_on_is_named_with_how_to_end_it() {
    let service = Service::new();
    let bob = person(&service, "approver", "bob", &[]);
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    service.plan("p", json!([gate]));
    bob.agree(&service, "p");
    let run = service.run("p");
    service.wait_for("p", "waiting");
    let said = service.bench.run(&["token", "revoke", &bob.id]).ends(0);
    assert!(
        said.err
            .contains(&format!("hint: To stop it: planwright cancel {run}")),
        "{said:?}"
    );
    let again = revoke(&service, &bob);
    assert_eq!(
        (&again["revoked"], &again["runsExecuting"]),
        (&json!(false), &json!([{ "planId": "p", "runId": run }]))
    );
    assert_eq!(
        service.status("p"),
        "waiting",
        "it is theirs to end who are told"
    );
}

#[test]
fn whoever_dies_after_the_token_was_revoked_leaves_nothing_usable_and_can_go_on() {
    let service = Service::new();
    let bob = person(&service, "approver", "bob", &[]);
    for plan in ["p", "q"] {
        bob.approve(&service, plan);
    }
    let log = service.bench.path("crashes");
    for at in 1.. {
        let mut command = service.bench.command(&["token", "revoke", &bob.id]);
        command
            .env("PLANWRIGHT_CRASH_AT", at.to_string())
            .env("PLANWRIGHT_CRASH_LOG", &log);
        assert_eq!(
            said(command.output().unwrap()).code,
            -1,
            "it was killed at point {at}"
        );
        if service.bench.read("crashes").contains("token: revoked") {
            break;
        }
    }
    assert_eq!(state(&service, "q"), "open", "the rest was not done");
    start(&service, "p").refuses(
        409,
        "the approval of person bob was revoked by policy access",
    );
    assert_eq!(
        (state(&service, "p"), state(&service, "q")),
        (json!("revoked"), json!("open"))
    );
    let said = revoke(&service, &bob);
    assert_eq!(
        (&said["revoked"], &said["approvalsRevoked"]),
        (&json!(false), &json!(["q"]))
    );
    assert_eq!(service.bench.read("effects.txt"), "");
}

#[test]
fn a_backup_is_restored_without_what_was_approved_with_its_tokens() {
    let service = Service::new();
    let bob = person(&service, "approver", "bob", &[]);
    bob.approve(&service, "p");
    let bench = &service.bench;
    bench.run(&["store", "backup", "copy"]).ends(0);
    for (into, more, plans) in [
        ("a", &[][..], json!(["p"])),
        ("b", &["--keep-tokens"], json!([])),
    ] {
        std::fs::create_dir(bench.path(into)).unwrap();
        let args = [
            &["store", "restore", "copy", "--into", into, "--json"],
            more,
        ]
        .concat();
        assert_eq!(bench.run(&args).ends(0).json()["approvalsRevoked"], plans);
    }
    bench
        .run(&["run", "p", "--dir", "a"])
        .complains(3, "was revoked by policy restore");
    bench.run(&["run", "p", "--dir", "b"]).ends(0);
}
