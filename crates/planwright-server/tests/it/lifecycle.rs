//! The life of a plan over HTTP.

use crate::service::Service;
use planwright_core::journal::StreamName;
use planwright_testing::steps::{echo, effect, sleep, step};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn a_goal_makes_a_draft_with_a_trace_whose_files_are_written() {
    let service = Service::new();
    let answer = service
        .post("/plan", &json!({ "goal": "Ship the next milestone" }))
        .ends(201);
    let created = answer.json();
    assert_eq!(created.as_object().unwrap().len(), 2, "{created}");
    let plan = &created["plan"];
    let id = plan["id"].as_str().unwrap();
    assert!(id.starts_with("plan-") && id.len() == 13, "{id}");
    assert_eq!(
        (&plan["goal"], &plan["status"], &plan["steps"]),
        (
            &json!("Ship the next milestone"),
            &json!("draft"),
            &json!([])
        )
    );
    assert_eq!(
        answer.header("location"),
        Some(format!("/plan/{id}").as_str())
    );
    assert_eq!(answer.header("x-trace-id"), created["traceId"].as_str());
    assert_eq!(service.projected(), [id], "its files are written");
    let yes = json!({ "decision": "approve", "version": 1 });
    service
        .post(&format!("/plan/{id}/approve"), &yes)
        .refuses(409, "draft");
}

#[test]
fn one_trace_leads_from_the_request_to_the_last_event() {
    let service = Service::new();
    let traces = |plan: &str| {
        let events = service
            .get(&format!("/plan/{plan}/events"))
            .ends(200)
            .json();
        let events = events["events"].as_array().unwrap();
        assert!(events.len() > 4, "{events:?}");
        let named = events
            .iter()
            .map(|event| event["traceId"].as_str().unwrap());
        named.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let steps = json!([echo("a", 1, &[])]);
    let plan = json!({ "id": "p", "goal": "g", "steps": steps });
    let created = service.post("/plan", &plan).ends(201).json();
    let yes = json!({ "decision": "approve", "version": 1 });
    service.post("/plan/p/approve", &yes).ends(200);
    let run = service.post("/plan/p/run", &json!({})).ends(202).json();
    service.wait_for("p", "completed");
    let trace = created["traceId"].as_str().unwrap();
    assert_eq!(run["traceId"], trace);
    assert_eq!(traces("p"), BTreeSet::from([trace.to_owned()]));
}

#[test]
fn a_step_is_answered_with_all_its_metadata() {
    let service = Service::new();
    let step = json!({
        "id": "s2", "action": "apply_changes", "tool": "append_file", "args": { "path": "a", "content": "b" },
        "capability": "repo.write", "capabilityLabel": "Apply repository changes",
        "labels": ["repo", "automation", "approval"], "timeoutSeconds": 900, "approvalRequired": true,
    });
    let plan = json!({ "goal": "g", "steps": [step], "successCriteria": ["All tests pass"] });
    let created = service.post("/plan", &plan).ends(201).json();
    let answered = &created["plan"]["steps"][0];
    for field in [
        "id",
        "action",
        "tool",
        "capability",
        "capabilityLabel",
        "labels",
        "approvalRequired",
    ] {
        assert_eq!(answered[field], step[field], "{field}");
    }
    assert_eq!(answered["timeoutSeconds"].as_f64(), Some(900.0));
    assert_eq!(
        created["plan"]["successCriteria"],
        json!(["All tests pass"])
    );
}

#[test]
fn an_empty_over_long_or_misspelt_goal_is_refused() {
    let service = Service::new();
    for (body, words) in [
        (json!({}), "goal"),
        (json!({ "goal": "" }), "empty"),
        (json!({ "goal": " \n" }), "empty"),
        (json!({ "goal": "x".repeat(10_001) }), "10000"),
        (json!({ "goal": 7 }), "text"),
        (json!({ "gaol": "x" }), "gaol"),
        (json!({ "goal": "x", "unknown": 1 }), "unknown"),
        (json!({ "id": "../escaped", "goal": "x" }), "id"),
    ] {
        service.post("/plan", &body).refuses(400, words);
    }
    service
        .post("/plan", &json!({ "goal": "x".repeat(10_000) }))
        .ends(201);
    let looped = json!([echo("a", "${b}", &[]), echo("b", "${a}", &[])]);
    let refused = service
        .post("/plan", &json!({ "goal": "g", "steps": looped }))
        .refuses(422, "not valid")
        .json();
    assert!(
        refused["findings"]
            .as_array()
            .is_some_and(|findings| !findings.is_empty()),
        "{refused}"
    );
    service
        .post(
            "/plan",
            &json!({ "goal": "x", "steps": "x".repeat(1 << 20) }),
        )
        .refuses(413, "larger");
}

#[test]
fn every_edit_makes_a_version_and_only_whoever_saw_the_current_one_may_edit() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let tag = service
        .get("/plan/p")
        .ends(200)
        .header("etag")
        .unwrap()
        .to_owned();
    assert_eq!(tag, "\"v1-1\"");
    let patch = |kind: &str, tag: Option<&str>, body: serde_json::Value| {
        let request = service
            .request("PATCH", "/plan/p")
            .body(kind, body.to_string().as_bytes());
        match tag {
            Some(tag) => request.header("If-Match", tag).send(),
            None => request.send(),
        }
    };
    let merge = "application/merge-patch+json";
    patch(merge, None, json!({ "title": "x" })).refuses(428, "which state");
    patch(merge, Some("*"), json!({ "title": "x" })).refuses(412, "by now");
    patch("application/xml", Some(&tag), json!({})).refuses(415, "json-patch");
    let edited = patch(merge, Some(&tag), json!({ "title": "Two" })).ends(200);
    assert_eq!(
        (edited.json()["version"].as_u64(), edited.header("etag")),
        (Some(2), Some("\"v2-2\""))
    );
    patch(merge, Some(&tag), json!({ "title": "Three" })).refuses(412, "v2-2");
    let operations = json!([
        { "op": "test", "path": "/title", "value": "Two" },
        { "op": "replace", "path": "/steps/0/args/value", "value": 5 },
    ]);
    patch("application/json-patch+json", Some("\"v2-2\""), operations).ends(200);
    patch(
        "application/json-patch+json",
        Some("\"v3-3\""),
        json!([{ "op": "test", "path": "/title", "value": "x" }]),
    )
    .refuses(409, "another value");
    let edits = json!({ "edits": [{ "op": "set", "path": "title", "value": "Four" }] });
    patch("application/json", Some("\"v3-3\""), edits).ends(200);
    patch(merge, Some("\"v4-4\""), json!({ "id": "other" })).refuses(422, "id");
    patch(merge, Some("\"v4-4\""), json!({ "steps": [{ "id": "a" }] })).ends(422);
    let versions = service.get("/plan/p/versions").ends(200).json();
    assert_eq!(versions.as_array().unwrap().len(), 4);
    let diff = service.get("/plan/p/diff?from=2&to=3").ends(200).json();
    assert_eq!(
        (&diff["executable"], &diff["steps"][0]["id"]),
        (&json!(true), &json!("a")),
        "{diff}"
    );
    service
        .post("/plan/p/restore", &json!({ "version": 1 }))
        .ends(200);
    assert_eq!(service.get("/plan/p").json()["title"], "Plan p");
    service.get("/plan/p/diff?from=9").refuses(404, "version 9");
}

#[test]
fn a_plan_is_approved_only_from_proposed_and_run_only_once_approved() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    service
        .request("POST", "/plan/p/run")
        .send()
        .refuses(409, "not approved");
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    assert_eq!(service.files.read("effects.txt"), "a\n");
    service
        .request("POST", "/plan/p/run")
        .send()
        .refuses(409, "not approved");
    service
        .post("/plan", &json!({ "id": "p", "goal": "again", "steps": [] }))
        .refuses(409, "already");
}

#[test]
fn feedback_of_a_rejection_is_kept_with_its_version_and_the_third_needs_a_review() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 0, &[])]));
    for round in 1..=3_u32 {
        let no = json!({ "version": round, "reason": format!("reason {round}") });
        let status = service.post("/plan/p/reject", &no).ends(200).json()["status"].clone();
        assert_eq!(
            status,
            if round < 3 {
                "rejected"
            } else {
                "needs_review"
            }
        );
        let tag = service.get("/plan/p").header("etag").unwrap().to_owned();
        let change = json!({ "steps": [echo("a", round, &[])] });
        if round < 3 {
            let patch = service.request("PATCH", "/plan/p").header("If-Match", &tag);
            patch
                .body(
                    "application/merge-patch+json",
                    change.to_string().as_bytes(),
                )
                .send()
                .ends(200);
            assert_eq!(service.status("p"), "proposed");
        }
    }
    let journal = json!(service.log(&StreamName::Plan("p".parse().unwrap()))).to_string();
    assert!(
        journal.contains("reason 1") && journal.contains("reason 3"),
        "{journal}"
    );
    assert_eq!(service.projected(), ["p"; 6], "after every change");
}

#[test]
fn changes_can_be_asked_for_and_discussed() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 0, &[])]));
    let said = service
        .post(
            "/plan/p/comments",
            &json!({ "text": "why 0?", "step": "a" }),
        )
        .ends(201)
        .json();
    let id = said["id"].as_str().unwrap();
    let bot = service.token("author", "agent", "bot");
    let reply = json!({ "text": "because", "replyTo": id });
    service
        .bare("POST", "/plan/p/comments")
        .token(&bot)
        .json(&reply)
        .send()
        .ends(201);
    service
        .post("/plan/p/comments", &json!({ "text": "" }))
        .ends(422);
    service
        .post(
            "/plan/p/comments",
            &json!({ "text": "x", "step": "nosuch" }),
        )
        .refuses(404, "nosuch");
    service
        .request("POST", &format!("/plan/p/comments/{id}/resolve"))
        .send()
        .ends(200);
    let threads = service.get("/plan/p/comments").ends(200).json();
    assert_eq!(
        (
            &threads[0]["state"],
            threads[0]["comments"].as_array().unwrap().len()
        ),
        (&json!("resolved"), 2)
    );
    let asked = service
        .post(
            "/plan/p/request-changes",
            &json!({ "version": 1, "reason": "say why" }),
        )
        .ends(200);
    assert_eq!(asked.json()["status"], "changes_requested");
}

#[test]
fn a_plan_is_not_deleted_while_it_executes_and_is_gone_afterwards() {
    let service = Service::new();
    service.plan("p", json!([sleep("a", 60_000, &[])]));
    service.run("p");
    service.wait_for("p", "executing");
    service
        .request("DELETE", "/plan/p")
        .send()
        .refuses(409, "executing");
    service.request("POST", "/plan/p/cancel").send().ends(202);
    service.wait_for("p", "cancelled");
    service
        .request("POST", "/plan/p/cancel")
        .send()
        .refuses(409, "ended");
    service.request("DELETE", "/plan/p").send().ends(204);
    service.get("/plan/p").refuses(404, "deleted");
    service.request("DELETE", "/plan/p").send().ends(404);
    assert_eq!(service.get("/plan").ends(200).json()["items"], json!([]));
    assert_eq!(service.projected().last().unwrap(), "p");
}

#[test]
fn a_run_is_paused_resumed_forked_and_its_steps_skipped() {
    let service = Service::new();
    let mut gate = echo("b", 2, &["a"]);
    gate["approvalRequired"] = json!(true);
    service.plan(
        "p",
        json!([
            sleep("a", 300, &[]),
            gate,
            echo("c", "${b}", &["b"]),
            echo("d", 4, &["b"])
        ]),
    );
    service.approve("p");
    let run = service.run("p");
    service.request("POST", "/plan/p/pause").send().ends(202);
    service.wait_for("p", "paused");
    service
        .request("POST", "/plan/p/steps/d/skip")
        .json(&json!({ "reason": "not today" }))
        .send()
        .ends(200);
    service.request("POST", "/plan/p/resume").send().ends(202);
    service.wait_for("p", "waiting");
    service
        .post(
            "/plan/p/steps/b/approve",
            &json!({ "decision": "approve", "version": 1 }),
        )
        .ends(200);
    service.wait_for("p", "completed");
    let result = service.result("p", &run);
    assert_eq!(step(&result, "d")["status"], "skipped");
    assert!(step(&result, "d").to_string().contains("not today"));
    service
        .post("/plan/p/fork", &json!({ "from": ["nosuch"] }))
        .refuses(404, "nosuch");
    service
        .post("/plan/p/fork", &json!({ "from": ["c"] }))
        .refuses(409, "not approved");
    service.approve("p");
    let forked = service
        .request("POST", "/plan/p/steps/c/retry")
        .send()
        .ends(202)
        .json();
    service.wait_for("p", "completed");
    assert_eq!(
        service.get("/plan/p/runs").json().as_array().unwrap().len(),
        2
    );
    assert_ne!(forked["runId"], json!(run));
}

#[test]
fn missing_tools_are_all_named_before_anybody_approves() {
    let service = Service::new();
    let step = |id: &str, tool: &str| json!({ "id": id, "tool": tool, "args": {} });
    service.plan("p", json!([step("a", "nosuch.x"), step("b", "nosuch.y")]));
    service
        .post(
            "/plan/p/approve",
            &json!({ "decision": "approve", "version": 1 }),
        )
        .refuses(409, "Required tools not available: nosuch.x, nosuch.y");
}

#[test]
fn pages_hold_every_plan_once() {
    let service = Service::new();
    for number in 0..7 {
        service.plan(&format!("p{number}"), json!([]));
    }
    let mut seen = Vec::new();
    let mut path = "/plan?limit=3".to_owned();
    loop {
        let page = service.get(&path).ends(200).json();
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|plan| plan["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("/plan?limit=3&cursor={cursor}");
    }
    assert!(seen.iter().rev().is_sorted(), "the newest first: {seen:?}");
    seen.sort();
    assert_eq!(seen, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
    for bad in ["limit=0", "limit=201", "limit=x", "cursor=x", "nosuch=1"] {
        assert_eq!(service.get(&format!("/plan?{bad}")).status, 400, "{bad}");
    }
}

fn listed(service: &Service, status: &str) -> Vec<String> {
    let page = service
        .get(&format!("/plan?status={status}"))
        .ends(200)
        .json();
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| plan["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn plans_are_listed_where_they_stand_whatever_became_of_them() {
    let service = Service::new();
    for id in ["over", "away", "gone", "again"] {
        service.plan(id, json!([echo("a", 1, &[])]));
        service.approve(id);
        service.run(id);
        service.wait_for(id, "completed");
    }
    service
        .request("POST", "/plan/away/archive")
        .send()
        .ends(200);
    service.request("DELETE", "/plan/gone").send().ends(204);
    let change = json!({ "steps": [echo("a", 2, &[])] }).to_string();
    let tag = service
        .get("/plan/again")
        .header("etag")
        .expect("a plan has a tag")
        .to_owned();
    let patch = service
        .request("PATCH", "/plan/again")
        .header("If-Match", &tag);
    patch
        .body("application/merge-patch+json", change.as_bytes())
        .send()
        .ends(200);
    service.plan("fresh", json!([echo("a", 1, &[])]));
    assert_eq!(listed(&service, "completed"), ["away", "over"]);
    assert_eq!(listed(&service, "proposed"), ["fresh", "again"]);
    assert_eq!(listed(&service, "deleted"), ["gone"]);
    assert!(listed(&service, "executing").is_empty());
    let page = service.get("/plan").ends(200).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 4, "{page}");
}

#[test]
fn a_status_that_no_plan_can_have_is_refused() {
    let service = Service::new();
    service.plan("over", json!([echo("a", 1, &[])]));
    service.approve("over");
    service.run("over");
    service.wait_for("over", "completed");
    // `opened` stands beside the journal of this very plan, and `adjusted` is the word of a run:
    // neither is the status of a plan.
    for status in ["nosuch", "opened", "adjusted", "Completed"] {
        let path = format!("/plan?status={status}");
        service.get(&path).refuses(400, "there is no status");
    }
    assert_eq!(listed(&service, "completed"), ["over"]);
}

#[test]
fn of_six_who_create_one_plan_at_once_one_succeeds() {
    let service = Service::new();
    for round in 0..5 {
        let id = format!("p{round}");
        let create = |number: usize| {
            let steps = json!([{ "id": "a", "tool": "demo.echo", "args": { "value": "x" } }]);
            let plan = json!({ "id": id, "title": format!("of {number}"), "steps": steps });
            service.post("/plan", &plan)
        };
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let create = &create;
            let creating: Vec<_> = (0..6).map(|n| scope.spawn(move || create(n))).collect();
            let answers = creating.into_iter().map(|answer| answer.join().unwrap());
            answers.map(|answer| answer.status).collect()
        });
        let created = statuses.iter().filter(|&&status| status == 201).count();
        let refused = statuses.iter().filter(|&&status| status == 409).count();
        assert_eq!((created, refused), (1, 5), "{statuses:?}");
        let plan = service.get(&format!("/plan/{id}")).ends(200).json();
        assert_eq!(plan["version"], 1, "{plan}");
    }
}

#[test]
fn a_persons_pause_is_a_persons_to_lift_and_what_others_wait_for_is_an_approvers_to_leave_out() {
    let service = Service::new();
    service.plan(
        "p",
        json!([
            sleep("a", 300, &[]),
            echo("check", 1, &["a"]),
            effect("act", &["check"]),
            echo("last", 2, &["a"])
        ]),
    );
    service.approve("p");
    let run = service.run("p");
    service.request("POST", "/plan/p/pause").send().ends(202);
    service.wait_for("p", "paused");
    let bot = service.token("operator", "agent", "bot");
    let refused = service.bare("POST", "/plan/p/resume").token(&bot).send();
    refused.refuses(403, "only a person can");
    let olga = service.token("operator", "person", "olga");
    let skip = |step: &str| {
        let path = format!("/plan/p/steps/{step}/skip");
        service.bare("POST", &path).token(&olga).send()
    };
    skip("check").refuses(403, "may not skip");
    skip("last").ends(200);
    let resumed = service.bare("POST", "/plan/p/resume").token(&olga).send();
    resumed.ends(202);
    service.wait_for("p", "completed");
    let result = service.result("p", &run);
    assert_eq!(step(&result, "check")["status"], "completed");
    assert_eq!(step(&result, "last")["status"], "skipped");
}
