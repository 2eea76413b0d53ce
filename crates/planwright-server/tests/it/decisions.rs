//! Approval over HTTP: what is asked, who answers, and what an answer covers.

use crate::service::{Service, Setup, manual_clock};
use planwright_core::journal::StreamName;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_testing::steps::{echo, effect, step};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

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

/// The digest that a person is shown with the plan.
fn digest(service: &Service, plan: &str) -> Value {
    let shown = service.get(&format!("/plan/{plan}")).ends(200).json();
    shown["digest"].clone()
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
    assert_eq!(service.files.read("effects.txt"), "");
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
    assert_eq!(service.files.read("effects.txt"), "b\n");
    let journal = service.log(&StreamName::Run(run.parse().unwrap()));
    let granted = journal
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
fn the_inbox_is_paged_and_what_is_over_takes_no_place_in_it() {
    let service = Service::new();
    for number in 0..3 {
        let over = format!("over-{number}");
        let gate = format!("gate-{number}");
        let fresh = format!("fresh-{number}");
        service.plan(&over, json!([echo("a", 1, &[])]));
        service.plan(&gate, gated());
        for id in [&over, &gate] {
            service.approve(id);
            service.run(id);
        }
        service.wait_for(&over, "completed");
        service.wait_for(&gate, "waiting");
        service.plan(&fresh, json!([echo("a", 1, &[])]));
    }
    let mut seen = Vec::new();
    let mut path = "/approvals?limit=2".to_owned();
    loop {
        let page = service.get(&path).ends(200).json();
        for item in page["items"].as_array().unwrap() {
            seen.push(format!(
                "{} {}",
                item["kind"].as_str().unwrap(),
                item["planId"].as_str().unwrap()
            ));
        }
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("/approvals?limit=2&cursor={cursor}");
        // What comes meanwhile is newer than all that is still to be shown.
        service.plan(&format!("late-{}", seen.len()), json!([]));
    }
    let expected = [
        "plan fresh-2",
        "step gate-2",
        "plan fresh-1",
        "step gate-1",
        "plan fresh-0",
        "step gate-0",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_rejected_step_is_never_called_its_dependants_are_blocked_and_the_reason_is_kept() {
    let (service, run) = waiting();
    let no = json!({ "decision": "reject", "version": 1, "reason": "not on a Friday" });
    service.post("/plan/p/steps/b/reject", &no).ends(200);
    service.wait_for("p", "failed");
    let result = service.result("p", &run);
    assert_eq!(
        (
            step(&result, "b")["status"].as_str(),
            step(&result, "c")["status"].as_str()
        ),
        (Some("denied"), Some("blocked"))
    );
    assert!(
        step(&result, "b").to_string().contains("not on a Friday"),
        "{result}"
    );
    assert_eq!(service.files.read("effects.txt"), "");
}

#[test]
fn approving_when_nothing_waits_is_a_conflict_and_what_is_unknown_is_not_found() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let yes = json!({ "decision": "approve", "version": 1 });
    service.approve("p");
    service
        .post("/plan/p/approve", &yes)
        .refuses(409, "approved already");
    service
        .post("/plan/unknown/approve", &yes)
        .refuses(404, "no plan `unknown`");
    service
        .post("/plan/p/steps/a/approve", &yes)
        .refuses(409, "has no run");
    service.run("p");
    service.wait_for("p", "completed");
    service
        .post("/plan/p/steps/a/approve", &yes)
        .refuses(409, "ended");
    service
        .post("/plan/p/steps/nosuch/approve", &yes)
        .refuses(404, "no step `nosuch`");
}

#[test]
fn a_malformed_or_missing_decision_is_refused_and_never_an_approval() {
    let (service, _) = waiting();
    service.plan("q", json!([echo("a", 1, &[])]));
    let digest = format!("sha256:{}", "0".repeat(64));
    for body in [
        json!({}),
        json!({ "version": 1 }),
        json!({ "decision": "approved", "version": 1 }),
        json!({ "decision": "reject", "version": 1 }),
        json!({ "decision": "Approve", "version": 1 }),
        json!({ "decision": true, "version": 1 }),
        json!({ "decision": null, "version": 1 }),
        json!({ "decision": ["approve"], "version": 1 }),
        json!({ "decision": "approve" }),
        json!({ "decision": "approve", "version": "1" }),
        json!({ "decision": "approve", "version": 1, "digest": digest }),
        json!({ "decision": "approve", "digest": "sha256:0" }),
        json!({ "decision": "approve", "version": 1, "force": true }),
        json!("approve"),
        json!([{ "decision": "approve", "version": 1 }]),
    ] {
        for path in ["/plan/q/approve", "/plan/p/steps/b/approve"] {
            let answer = service.post(path, &body);
            assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
        }
    }
    for text in [
        "",
        "{",
        "{\"decision\":\"approve\",\"decision\":\"approve\",\"version\":1}",
        "decision=approve",
    ] {
        let answer = service
            .request("POST", "/plan/q/approve")
            .body("application/json", text.as_bytes())
            .send();
        assert_eq!(answer.status, 400, "{text}: {}", answer.text());
    }
    let form = service
        .request("POST", "/plan/q/approve")
        .body("text/plain", b"{\"decision\":\"approve\",\"version\":1}");
    form.send().refuses(415, "application/json");
    assert_eq!(
        (service.status("q").as_str(), service.status("p").as_str()),
        ("proposed", "waiting")
    );
    assert_eq!(service.files.read("effects.txt"), "");
}

#[test]
fn an_approval_of_something_else_than_what_is_current_is_a_conflict() {
    let service = Service::new();
    let shown = service.plan("p", json!([echo("a", 1, &[])]))["plan"]["digest"].clone();
    let change = json!({ "steps": [echo("a", 2, &[])] });
    service
        .request("PATCH", "/plan/p")
        .body(
            "application/merge-patch+json",
            change.to_string().as_bytes(),
        )
        .header("If-Match", "\"v1-1\"")
        .send()
        .ends(200);
    service
        .post(
            "/plan/p/approve",
            &json!({ "decision": "approve", "digest": shown }),
        )
        .refuses(409, "since it was shown");
    service
        .post(
            "/plan/p/approve",
            &json!({ "decision": "approve", "version": 1 }),
        )
        .refuses(409, "since it was shown");
    assert_eq!(service.status("p"), "proposed");
    service
        .post(
            "/plan/p/approve",
            &json!({ "decision": "approve", "version": 2 }),
        )
        .ends(200);
}

#[test]
fn the_agent_that_proposed_cannot_approve_and_neither_can_a_service() {
    let service = Service::new();
    for (kind, name) in [("agent", "bot"), ("service", "ci")] {
        let token = service.token("author", kind, name);
        let plan = json!({ "id": name, "goal": "g", "steps": [effect("a", &[])] });
        service
            .bare("POST", "/plan")
            .token(&token)
            .json(&plan)
            .send()
            .ends(201);
        let yes = json!({ "decision": "approve", "version": 1 });
        let answer = service
            .bare("POST", &format!("/plan/{name}/approve"))
            .token(&token)
            .json(&yes)
            .send();
        answer.refuses(403, "may not approve");
        assert_eq!(service.status(name), "proposed");
    }
}

#[test]
fn what_policy_approved_is_recorded_as_policys_and_never_as_a_persons() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    service.run("p");
    service.wait_for("p", "completed");
    let plan = service.get("/plan/p").ends(200).json();
    assert_eq!(
        plan["approvals"][0]["by"],
        json!({ "kind": "policy", "name": "read-only" })
    );
    service.plan("q", json!([effect("a", &[])]));
    service
        .request("POST", "/plan/q/run")
        .send()
        .refuses(409, "not approved");
}

#[test]
fn an_approval_that_was_not_used_in_time_expires_and_is_not_called_denied() {
    let clock = manual_clock();
    let service = Service::start(Setup {
        policy: json!({ "approval": { "expires_after": "1s" } }),
        clock: Arc::new(clock.clone()),
        ..Setup::default()
    });
    service.plan("p", json!([effect("a", &[])]));
    service.approve("p");
    let state = || service.get("/plan/p").ends(200).json()["approvals"][0]["state"].clone();
    assert_eq!(state(), "open");
    clock.advance(Duration::from_secs(2));
    assert_eq!(state(), "expired");
    service
        .request("POST", "/plan/p/run")
        .send()
        .refuses(409, "expired");
    assert_eq!(service.files.read("effects.txt"), "");
}

#[test]
fn a_code_of_the_terminal_is_worth_one_session_that_says_how_its_owner_signed_in() {
    let service = Service::new();
    let now = service.engine().now();
    let ada = Principal::person("ada");
    service.http().sign_in.offer("code", ada, Role::Admin, now);
    let sign_in = |code: &str| {
        let request = service.bare("POST", "/sign-in");
        request.json(&json!({ "code": code })).send()
    };
    sign_in("wrong").refuses(401, "never was one");
    let session = sign_in("code").ends(200).json();
    sign_in("code").refuses(401, "was used");
    let me = service.bare("GET", "/whoami");
    let me = me.token(session["token"].as_str().unwrap()).send();
    assert_eq!(me.ends(200).json()["assurance"], "web_sign_in");
}

#[test]
fn an_approval_reads_and_compiles_the_plan_once() {
    let service = Service::new();
    service.plan("sub", json!([echo("a", 1, &[])]));
    service.plan(
        "p",
        json!([{ "id": "s", "title": "Step s", "plan": { "id": "sub" } }]),
    );
    let digest = digest(&service, "p");
    service
        .post(
            "/plan/p/approve",
            &json!({ "decision": "approve", "digest": digest }),
        )
        .ends(200);
    let stream = |id: &str| StreamName::Plan(id.parse().unwrap());
    let reads = |id: &str| {
        service
            .store
            .reads_by_last_writer(&stream("p"), &stream(id))
    };
    assert_eq!(reads("p"), 1, "the journal is folded once");
    assert_eq!(reads("sub"), 1, "compiling reads the sub-plan");
}

#[test]
fn a_version_does_not_approve_plans_that_were_others_when_they_were_looked_at() {
    let service = Service::new();
    service.plan("sub", json!([echo("a", 1, &[])]));
    service.plan(
        "p",
        json!([{ "id": "s", "title": "Step s", "plan": { "id": "sub" } }]),
    );
    let proposed = digest(&service, "p");
    let swap = |step: Value| {
        let steps = json!({ "steps": [step] }).to_string();
        let current = service.get("/plan/sub").ends(200);
        let request = service.request("PATCH", "/plan/sub");
        let request = request.body("application/merge-patch+json", steps.as_bytes());
        let etag = current.header("etag").unwrap();
        request.header("If-Match", etag).send().ends(200);
    };
    swap(effect("a", &[]));
    // What a person looks at now is swapped back before they decide.
    let looked_at = digest(&service, "p");
    assert_ne!(looked_at, proposed);
    swap(echo("a", 1, &[]));
    assert_eq!(digest(&service, "p"), proposed);
    let approve = |name: &str, shown: &Value| {
        let mut decision = json!({ "decision": "approve" });
        decision[name] = shown.clone();
        service.post("/plan/p/approve", &decision)
    };
    approve("version", &json!(1)).refuses(409, "approve by the digest that was shown");
    approve("digest", &looked_at).refuses(409, "");
    approve("digest", &proposed).ends(200);
}

#[test]
fn no_route_begins_a_run_that_is_wider_than_its_order_says() {
    let service = Service::new();
    let mut write = effect("b", &["a"]);
    write["args"]["content"] = json!("${a}");
    service.plan("p", json!([echo("a", "x", &[]), write]));
    let approve = || {
        let digest = digest(&service, "p");
        let wide = json!({ "decision": "approve", "digest": digest, "late": { "b": "any" } });
        service.post("/plan/p/approve", &wide).ends(200);
    };
    let written = || service.files.read("effects.txt");
    approve();
    let refused = service
        .post("/plan/p/run", &json!({ "late": { "b": "ask" } }))
        .refuses(409, "already approved without late b=ask");
    let hint = refused.json()["hint"].clone();
    assert!(hint.to_string().contains("revoke-approval"), "{hint}");
    assert_eq!(written(), "");
    service
        .post("/plan/p/run", &json!({ "late": { "b": "any" } }))
        .ends(202);
    service.wait_for("p", "completed");
    assert_eq!(written(), "x");
    approve();
    let narrow = json!({ "from": ["b"], "late": { "b": "args.content == 'y'" } });
    service
        .post("/plan/p/fork", &narrow)
        .refuses(409, "already approved without late b=args.content == 'y'");
    assert_eq!(written(), "x");
    service
        .post("/plan/p/run", &json!({ "late": { "a": "ask" } }))
        .refuses(422, "there is nothing to choose");
}
