//! Plans that cannot run are answered with what is wrong with them, and are never approved; and what
//! is tried on paper is not stored.

use crate::service::{Service, Setup};
use planwright_testing::steps::{echo, effect};
use serde_json::{Value, json};

/// A plan with a reference to nothing and an argument that its tool lacks.
fn broken() -> Value {
    json!([
        { "id": "a", "tool": "demo.echo", "args": { "valuex": 1 } },
        { "id": "b", "tool": "demo.echo", "args": { "value": "${nope}" } },
    ])
}

/// The codes of the errors, sorted.
fn errors(answer: &Value) -> Vec<String> {
    let errors = answer["findings"].as_array().unwrap().iter();
    let mut codes: Vec<String> = errors
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect();
    codes.sort();
    codes
}

#[test]
fn a_plan_with_errors_is_kept_with_its_findings_and_never_approved() {
    let service = Service::new();
    let created = service.plan("p", broken());
    assert_eq!(errors(&created), ["E0122", "E0123"], "{created}");
    let shown = service.get("/plan/p").ends(200).json();
    assert_eq!(errors(&shown), ["E0122", "E0123"]);
    assert_eq!(shown["approval"]["mayApprove"], false);
    assert_eq!(shown["approval"]["reason"], "the plan is not valid");
    let yes = json!({ "decision": "approve", "version": 1 });
    let refused = service.post("/plan/p/approve", &yes).ends(422).json();
    assert_eq!(errors(&refused), ["E0122", "E0123"]);
    assert_eq!(service.status("p"), "proposed");
    let edits = json!({
        "edits": [
            { "op": "set", "path": "steps.a.args", "value": { "value": 1 } },
            { "op": "set", "path": "steps.b.args", "value": { "value": "${a}" } },
        ],
        "reason": "as the tool wants it",
    });
    let tag = service.get("/plan/p").header("etag").unwrap().to_owned();
    let edited = service
        .request("PATCH", "/plan/p")
        .header("If-Match", &tag)
        .json(&edits)
        .send()
        .ends(200)
        .json();
    assert_eq!(errors(&edited), [""; 0]);
    let versions = service.get("/plan/p/versions").ends(200).json();
    assert_eq!(versions[1]["reason"], "as the tool wants it");
    let yes = json!({ "decision": "approve", "version": 2 });
    let approved = service.post("/plan/p/approve", &yes).ends(200).json();
    assert_eq!(approved["status"], "approved");
}

#[test]
fn a_draft_is_proposed_and_a_version_restored_with_their_findings() {
    let service = Service::new();
    service.post("/plan", &json!({ "goal": "g" })).ends(201);
    let drafts = service.get("/plan?status=draft").ends(200).json();
    let draft = drafts["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/plan/{draft}");
    let tag = service.get(&path).header("etag").unwrap().to_owned();
    service
        .request("PATCH", &path)
        .header("If-Match", &tag)
        .body(
            "application/merge-patch+json",
            json!({ "steps": broken() }).to_string().as_bytes(),
        )
        .send()
        .ends(200);
    let proposed = service.post(&format!("{path}/propose"), &json!({}));
    assert_eq!(errors(&proposed.ends(200).json()), ["E0122", "E0123"]);
    let restored = service.post(&format!("{path}/restore"), &json!({ "version": 1 }));
    assert_eq!(errors(&restored.ends(200).json()), [""; 0]);
}

#[test]
fn validation_says_everything_at_once_and_stores_nothing() {
    let service = Service::new();
    let plan = json!({ "goal": "g", "steps": broken() });
    let found = service.post("/validate", &plan).ends(200).json();
    assert_eq!(found["ok"], false);
    assert_eq!(errors(&found), ["E0122", "E0123"]);
    assert_eq!(found["levels"], json!([["a", "b"]]));
    let sound = json!([echo("a", 1, &[]), echo("b", "${a}", &[])]);
    let found = service
        .post("/validate", &json!({ "steps": sound }))
        .ends(200);
    let found = found.json();
    assert_eq!(found["ok"], true);
    assert_eq!(found["criticalPath"], json!(["a", "b"]));
    let no_plan = service
        .post("/validate", &json!({ "steps": 7 }))
        .ends(200)
        .json();
    assert_eq!(errors(&no_plan), ["E0101"]);
    assert_eq!(service.get("/plan").ends(200).json()["items"], json!([]));
}

#[test]
fn a_run_on_paper_shows_what_would_be_sent() {
    let service = Service::new();
    service.plan(
        "p",
        json!([echo("a", 1, &[]), echo("b", "${a} ${who}", &[])]),
    );
    service
        .post("/plan/p/dry-run", &json!({}))
        .refuses(422, "not valid");
    let body = json!({ "variables": { "who": "ada" } });
    let paper = service.post("/plan/p/dry-run", &body).ends(200).json();
    assert_eq!(paper["status"], "dry_run");
    assert_eq!(paper["runId"], Value::Null);
    assert_eq!(paper["steps"][1]["dependsOn"], json!(["a"]));
    assert_eq!(paper["steps"][0]["args"], json!({ "value": 1 }));
    let runs = service.get("/plan/p/runs").ends(200).json();
    assert_eq!(runs, json!([]));
    service.post("/plan/nosuch/dry-run", &json!({})).ends(404);
}

#[test]
fn a_position_is_a_whole_number_however_it_is_written() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[]), echo("b", 1, &[])]));
    let preview = |to: Value| {
        let edits = json!({ "edits": [{ "op": "move", "step": "b", "to": to }] });
        service.post("/plan/p/edits/preview", &edits)
    };
    for to in [json!(1), json!(1.0)] {
        let moved = preview(to).ends(200).json();
        assert_eq!(moved["steps"][0]["id"], "b", "{moved}");
    }
    preview(json!(1.5)).refuses(400, "these are no edits");
}

#[test]
fn an_edit_is_previewed_with_the_digest_that_it_would_have() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let edits = |value: Value| json!({ "edits": [{ "op": "set", "path": "steps.a.args", "value": value }] });
    let good = edits(json!({ "value": 2 }));
    let preview = service
        .post("/plan/p/edits/preview", &good)
        .ends(200)
        .json();
    assert_eq!(
        (&preview["ok"], &preview["executable"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(preview["steps"][0]["id"], "a", "{preview}");
    let bad = edits(json!({ "other": 2 }));
    let found = service.post("/plan/p/edits/preview", &bad).ends(200).json();
    assert_eq!((&found["ok"], found.get("digest")), (&json!(false), None));
    assert_eq!(errors(&found), ["E0122"]);
    assert_eq!(
        service
            .get("/plan/p/versions")
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let tag = service.get("/plan/p").header("etag").unwrap().to_owned();
    let edited = service
        .request("PATCH", "/plan/p")
        .header("If-Match", &tag)
        .json(&good)
        .send();
    assert_eq!(edited.ends(200).json()["digest"], preview["digest"]);
}

#[test]
fn an_expression_is_read_and_decided() {
    let service = Service::new();
    let check = |body: Value| service.post("/expressions/check", &body).ends(200).json();
    let read = check(json!({ "expression": "args.amount < limit" }));
    assert_eq!(
        (&read["ok"], &read["names"]),
        (&json!(true), &json!(["args", "limit"]))
    );
    let values = json!({ "args": { "amount": 5 }, "limit": 3 });
    let decided = check(json!({ "expression": "args.amount < limit", "values": values }));
    assert_eq!(decided["holds"], false);
    let broken = check(json!({ "expression": "args.amount <" }));
    assert_eq!(broken["ok"], false);
    assert!(
        broken["error"].as_str().unwrap().contains("column"),
        "{broken}"
    );
    let undecided = check(json!({ "expression": "args.amount < 1", "values": {} }));
    assert_eq!(
        (&undecided["ok"], undecided.get("holds")),
        (&json!(false), None)
    );
}

#[test]
fn a_policy_is_explained_also_one_that_is_not_in_force() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let explain = |body: Value| service.post("/policy/explain", &body);
    let in_force = explain(json!({ "id": "p" })).ends(200).json();
    assert_eq!(in_force["verdict"], "ask");
    let other = json!({ "rules": [{ "name": "no writes", "tool": "local.*", "then": "deny" }] });
    let what_if = explain(json!({ "id": "p", "policy": other }))
        .ends(200)
        .json();
    assert_eq!(what_if["verdict"], "deny", "{what_if}");
    assert_eq!(what_if["steps"][0]["rule"], "no writes");
    assert_ne!(what_if["policyVersion"], in_force["policyVersion"]);
    let document = json!({ "steps": [echo("a", 1, &[])] });
    let unstored = explain(json!({ "document": document })).ends(200).json();
    assert_eq!(unstored["verdict"], "allow");
    explain(json!({})).refuses(400, "either `id` or `document`");
    explain(json!({ "id": "p", "policy": { "rulez": [] } })).refuses(422, "rulez");
}

#[test]
fn a_plan_says_what_follows_from_it() {
    let service = Service::new();
    let mut last = effect("c", &["a"]);
    last["when"] = json!("b == 1");
    service.plan(
        "p",
        json!([echo("a", 1, &[]), echo("b", "${a}", &[]), last]),
    );
    let plan = service.get("/plan/p").ends(200).json();
    let edge =
        |from: &str, to: &str, reason: &str| json!({ "from": from, "to": to, "reasons": [reason] });
    assert_eq!(
        plan["graph"]["edges"],
        json!([
            edge("a", "b", "reference"),
            edge("a", "c", "declared"),
            edge("b", "c", "expression"),
        ])
    );
    assert_eq!(plan["graph"]["levels"], json!([["a"], ["b"], ["c"]]));
    assert_eq!(plan["graph"]["criticalPath"], json!(["a", "b", "c"]));
    assert_eq!(plan["facts"][0]["risk"], "low");
    assert_eq!(
        plan["facts"][2]["effect"]["kind"], "changes",
        "{}",
        plan["facts"]
    );
    assert_eq!(plan["risk"], "medium");
    assert_eq!(plan["createdBy"]["name"], "ada");
    assert_eq!(plan["approval"]["required"], 1);
    assert_eq!(plan["approval"]["mayApprove"], true);
    let viewer = service.token("viewer", "person", "vera");
    let seen = service.bare("GET", "/plan/p").token(&viewer).send();
    let seen = seen.ends(200).json();
    assert_eq!(seen["approval"]["mayApprove"], false);
    let reason = seen["approval"]["reason"].as_str().unwrap();
    assert!(reason.contains("viewer"), "{reason}");
    let first = service.get("/plan/p/versions/1").ends(200).json();
    assert_eq!(first["document"]["steps"][1]["id"], "b");
    assert_eq!(
        (&first["version"], &first["current"]),
        (&json!(1), &json!(true))
    );
    service.get("/plan/p/versions/2").ends(404);
    service.get("/plan/p/versions/x").ends(400);
}

#[test]
fn the_author_is_told_that_another_person_has_to_decide() {
    let service = Service::start(Setup {
        policy: json!({ "approval": { "four_eyes": true, "required": 2 } }),
        ..Setup::default()
    });
    service.plan("p", json!([effect("a", &[])]));
    let standing = |token: &str| {
        let plan = service.bare("GET", "/plan/p").token(token).send();
        plan.ends(200).json()["approval"].clone()
    };
    let own = standing(&service.admin);
    assert_eq!(own["mayApprove"], false, "{own}");
    assert!(own["reason"].as_str().unwrap().contains("ada"), "{own}");
    let bob = service.token("approver", "person", "bob");
    assert_eq!(standing(&bob)["mayApprove"], true);
    let yes = json!({ "decision": "approve", "version": 1 });
    let approve = service.bare("POST", "/plan/p/approve").token(&bob);
    approve.json(&yes).send().ends(200);
    let after = standing(&bob);
    assert_eq!(after["givenBy"][0]["name"], "bob");
    assert_eq!(
        (&after["remaining"], &after["mayApprove"]),
        (&json!(1), &json!(false))
    );
}

#[test]
fn a_policy_is_checked_and_the_settings_are_told() {
    let service = Service::new();
    let check = |policy: Value| {
        let answer = service.post("/policy/check", &json!({ "policy": policy }));
        answer.ends(200).json()
    };
    let good = check(json!({ "rules": [{ "tool": "local.*", "then": "deny" }] }));
    assert_eq!((&good["valid"], &good["rules"]), (&json!(true), &json!(1)));
    assert_eq!(check(json!({ "rulez": [] }))["valid"], false);
    let bad = check(json!({ "rules": [{ "tool": "local.*", "if": "args.x <", "then": "deny" }] }));
    assert_eq!(bad["valid"], false, "{bad}");
    assert!(bad["error"].is_string());
    let settings = service.get("/settings").ends(200).json();
    assert_eq!(
        settings["approval"],
        json!({ "required": 1, "fourEyes": false })
    );
    assert_eq!(settings["servers"][0]["name"], "demo");
    assert_eq!(settings["servers"][0]["tools"], 2);
    assert_eq!(settings["models"], json!([]));
}
