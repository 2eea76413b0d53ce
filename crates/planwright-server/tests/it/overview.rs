//! All plans at a glance: searched lists, the inbox counted and decided, and figures over time.

use crate::service::{Service, Setup};
use planwright_core::journal::StreamName;
use planwright_testing::steps::{echo, effect};
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

/// Three plans: `done` ran, `gated` waits at its second step, `new` is proposed by another author.
fn some_plans() -> Service {
    let service = Service::new();
    service.plan("done", json!([echo("a", 1, &[])]));
    service.approve("done");
    let mut gate = effect("b", &["a"]);
    gate["approvalRequired"] = json!(true);
    service.plan("gated", json!([echo("a", 1, &[]), gate]));
    service.approve("gated");
    let bob = service.token("author", "person", "bob");
    let plan = json!({ "id": "new", "title": "Tidy the attic", "steps": [effect("a", &[])] });
    service
        .bare("POST", "/plan")
        .token(&bob)
        .json(&plan)
        .send()
        .ends(201);
    service.run("done");
    service.wait_for("done", "completed");
    service.run("gated");
    service.wait_for("gated", "waiting");
    service
}

#[test]
fn plans_are_found_by_words_author_tool_and_status() {
    let service = some_plans();
    let find = |query: &str| service.get(&format!("/plan?{query}")).ends(200).json();
    assert_eq!(ids(&find("q=attic%20TIDY")), ["new"]);
    assert_eq!(ids(&find("author=bob")), ["new"]);
    assert_eq!(ids(&find("tool=demo.echo")), ["gated", "done"]);
    assert_eq!(ids(&find("status=waiting,proposed")), ["new", "gated"]);
    assert_eq!(ids(&find("q=nothing")), [""; 0]);
    service
        .get("/plan?status=bogus,void")
        .refuses(400, "there is no status `bogus`");
    let by_activity = find("sort=activity");
    assert_eq!(ids(&by_activity), ["gated", "done", "new"]);
    assert_eq!(by_activity["total"], 3);
    let gated = &by_activity["items"][0];
    assert_eq!(gated["progress"], json!({ "done": 1, "total": 2 }));
    assert_eq!(gated["author"]["name"], "ada");
    assert_eq!(by_activity["items"][1].get("progress"), None);
    // Pages hold everything once.
    let first = find("sort=activity&limit=2");
    assert_eq!(ids(&first), ["gated", "done"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = find(&format!("sort=activity&limit=2&cursor={cursor}"));
    assert_eq!(
        (ids(&second), second.get("nextCursor")),
        (vec!["new"], None)
    );
    service.post("/plan/done/archive", &json!({})).ends(200);
    assert_eq!(ids(&find("archived=true")), ["done"]);
    assert_eq!(ids(&find("archived=false")), ["new", "gated"]);
    service.request("DELETE", "/plan/new").send().ends(204);
    assert_eq!(ids(&find("archived=false")), ["gated"]);
    service.get("/plan?sort=size").ends(400);
}

#[test]
fn figures_are_kept_up_to_date_and_by_day() {
    let service = Service::new();
    let stats = || service.get("/stats").ends(200).json();
    assert_eq!(stats()["runs"], json!({}));
    service.plan("p", json!([echo("a", 1, &[]), effect("b", &["a"])]));
    assert_eq!(stats()["plans"], json!({ "proposed": 1 }));
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    let now = stats();
    assert_eq!(now["plans"], json!({ "completed": 1 }));
    assert_eq!(now["runs"], json!({ "completed": 1 }));
    assert_eq!(now["approvals"]["approvals"], 1);
    let calls: u64 = now["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["calls"].as_u64().unwrap())
        .sum();
    assert_eq!(calls, 2);
    let days = now["days"].as_array().unwrap();
    let sum = |field: &str| -> u64 { days.iter().map(|day| day[field].as_u64().unwrap()).sum() };
    assert_eq!((sum("runs"), sum("ended"), sum("failures")), (1, 1, 0));
    assert_eq!((sum("calls"), sum("approvals")), (2, 1));
    let later = service.get("/stats?since=2999-01-01T00:30:00Z").ends(200);
    let later = later.json();
    assert_eq!(
        (&later["runs"], &later["since"]),
        (&json!({}), &json!("2999-01-01T00:00:00.000Z"))
    );
    // A second run knows how long the tools took.
    let plan = service.get("/plan/p").ends(200).json();
    assert!(plan["predictedMs"].is_u64(), "{plan}");
}

#[test]
fn looking_again_reads_only_what_came_since() {
    let service = Service::new();
    for number in 0..20 {
        service.plan(&format!("p{number}"), json!([echo("a", 1, &[])]));
    }
    service.get("/stats").ends(200);
    let journal = StreamName::Plan("p7".parse().unwrap());
    let before = service.store.reads_of(&journal);
    assert!(before > 0);
    service.plan("one-more", json!([echo("a", 1, &[])]));
    let stats = service.get("/stats").ends(200).json();
    assert_eq!(stats["plans"], json!({ "proposed": 21 }));
    service.get("/plan?sort=activity").ends(200);
    assert_eq!(service.store.reads_of(&journal), before);
}

#[test]
fn the_inbox_is_counted_filtered_and_decided_at_once() {
    let service = some_plans();
    let count = || service.get("/approvals/count").ends(200).json();
    let counted = count();
    assert_eq!(
        (&counted["total"], &counted["plans"], &counted["steps"]),
        (&json!(2), &json!(1), &json!(1))
    );
    let kinds = |query: &str| -> Vec<Value> {
        let page = service.get(&format!("/approvals?{query}")).ends(200).json();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["kind"].clone()).collect()
    };
    assert_eq!(kinds("kind=plan"), ["plan"]);
    assert_eq!(kinds("kind=step,plan"), ["plan", "step"]);
    assert_eq!(kinds("risk=high"), [""; 0]);
    assert_eq!(kinds("risk=medium"), ["plan", "step"]);
    service.get("/approvals?kind=gift").refuses(400, "gift");
    let inbox = service.inbox();
    assert_eq!(inbox[0]["tools"], json!(["append_file"]), "{}", inbox[0]);
    assert_eq!(inbox[0]["mayApprove"], true);
    let decision = |item: &Value, word: &str| {
        json!({ "planId": item["planId"], "step": item.get("step"), "runId": item.get("runId"),
            "digest": item["digest"], "decision": word, "reason": "because" })
    };
    let stale = json!({ "planId": "done", "decision": "approve", "digest": format!("sha256:{}", "0".repeat(64)) });
    let body = json!({ "decisions": [stale, decision(&inbox[0], "reject"), decision(&inbox[1], "approve")] });
    let results = service.post("/approvals/decide", &body).ends(200).json();
    let oks: Vec<&Value> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["ok"])
        .collect();
    assert_eq!(oks, [false, true, true], "{results}");
    assert_eq!(results[0]["status"], 409, "{results}");
    service.wait_for("gated", "completed");
    assert_eq!(service.status("new"), "rejected");
    wait_until("the count to be taken again", || count()["total"] == 0);
    assert_ne!(count()["mark"], counted["mark"]);
    service
        .post("/approvals/decide", &json!({ "decisions": [] }))
        .ends(400);
}

#[test]
fn a_listener_is_told_when_something_else_waits() {
    let service = Service::new();
    let stream = service
        .request("GET", "/approvals/events")
        .header("Accept", "text/event-stream")
        .open();
    let mut lines = BufReader::new(stream).lines();
    let mut next = || loop {
        let line = lines.next().unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            break serde_json::from_str::<Value>(data).unwrap();
        }
    };
    assert_eq!(next()["total"], 0);
    service.plan("p", json!([effect("a", &[])]));
    assert_eq!(next()["plans"], 1);
    service.approve("p");
    assert_eq!(next()["total"], 0);
}

#[test]
fn only_what_the_reader_may_decide_is_theirs() {
    let service = Service::start(Setup {
        policy: json!({ "approval": { "four_eyes": true } }),
        ..Setup::default()
    });
    service.plan("own", json!([effect("a", &[])]));
    assert_eq!(service.inbox().len(), 1);
    let mine = service.get("/approvals?mine=true").ends(200).json();
    assert_eq!(mine["items"], json!([]));
    let bob = service.token("approver", "person", "bob");
    let of_bob = service.bare("GET", "/approvals?mine=true").token(&bob);
    assert_eq!(of_bob.send().ends(200).json()["items"][0]["planId"], "own");
}

#[test]
fn a_template_is_listed_and_used_with_its_inputs() {
    let service = Service::new();
    let inputs = json!({ "type": "object", "required": ["who"],
        "properties": { "who": { "type": "string" }, "greeting": { "type": "string", "default": "hello" } } });
    let steps = json!([echo("a", "${greeting} ${who}", &[])]);
    let template = json!({ "id": "greet", "title": "Greet", "inputs": inputs, "steps": steps });
    service.post("/plan", &template).ends(201);
    service.plan("other", json!([echo("a", 1, &[])]));
    let listed = service.get("/templates").ends(200).json();
    assert_eq!(ids(&listed), ["greet"]);
    assert_eq!(
        listed["items"][0]["inputs"][0]["required"], true,
        "{listed}"
    );
    assert_eq!(
        listed["items"][0]["inputSchema"]["required"],
        json!(["who"])
    );
    service.get("/templates/other").ends(404);
    let use_it = |body: Value| service.post("/templates/greet/use", &body);
    let refused = use_it(json!({ "inputs": { "who": 7 } })).ends(422).json();
    assert_eq!(refused["findings"][0]["severity"], "error");
    let made = use_it(json!({ "inputs": { "who": "ada" }, "id": "greet-ada" }));
    let made = made.ends(201).json();
    assert_eq!(
        (&made["plan"]["status"], &made["findings"]),
        (&json!("proposed"), &Value::Null)
    );
    service.approve("greet-ada");
    service.run("greet-ada");
    service.wait_for("greet-ada", "completed");
    use_it(json!({ "inputs": { "who": "ada" }, "id": "greet-ada" })).ends(409);
}
