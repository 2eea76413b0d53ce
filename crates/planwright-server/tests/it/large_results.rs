//! Large values: an answer has a bounded size, and what is not in it is linked.

use crate::service::{Service, Setup};
use planwright_testing::steps::{call, echo, step};
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};

/// No answer about a run is longer, for any result.
const MOST: usize = 6 << 20;

/// `count` steps that each answer with the text of the first, so often.
fn repeating(length: usize, count: usize, times: usize) -> Value {
    let first = echo("first", "x".repeat(length), &[]);
    let all = "${first}".repeat(times);
    let others = (0..count).map(|number| echo(&format!("s{number}"), all.clone(), &["first"]));
    Value::Array([first].into_iter().chain(others).collect())
}

#[test]
fn the_pages_of_a_run_add_up_to_all_of_it() {
    let service = Service::new();
    service.plan("p", repeating(200 << 10, 60, 1));
    let run = service.run("p");
    service.wait_for("p", "completed");
    let mut seen: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = service
            .get(&format!("/plan/p/runs/{run}?{cursor}"))
            .ends(200);
        assert!(answer.body.len() < 2 * MOST, "{}", answer.body.len());
        let page = answer.json();
        seen.extend(page["steps"].as_array().unwrap().iter().cloned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("cursor={next}"),
            None => break,
        }
    }
    let ids: Vec<&str> = seen
        .iter()
        .map(|step| step["id"].as_str().unwrap())
        .collect();
    let all: Vec<String> = (0..60).map(|number| format!("s{number}")).collect();
    assert_eq!(ids[0], "first");
    assert_eq!(ids[1..], all);
    for step in &seen {
        assert_eq!(step["value"].as_str().map(str::len), Some(200 << 10));
    }
    let two = service.get(&format!("/plan/p/runs/{run}?limit=2")).json();
    assert_eq!(two["steps"].as_array().unwrap().len(), 2);
    assert_eq!(two["nextCursor"], "s0");
    for bad in ["limit=0", "limit=1001", "cursor=missing"] {
        let asked = service.get(&format!("/plan/p/runs/{run}?{bad}"));
        asked.refuses(400, "");
    }
}

#[test]
fn a_large_value_is_previewed_and_linked_and_the_link_has_all_of_it() {
    let service = Service::new();
    service.plan("p", repeating(300 << 10, 16, 4));
    let run = service.run("p");
    service.wait_for("p", "completed");
    let answer = service.get(&format!("/plan/p/runs/{run}")).ends(200);
    assert!(answer.body.len() < MOST, "{}", answer.body.len());
    let result = answer.json();
    let large = &step(&result, "s3")["largeValue"];
    assert!(step(&result, "s3").get("value").is_none());
    assert_eq!(large["bytes"], 4 * (300 << 10) + 2);
    assert!(large["preview"].as_str().unwrap().starts_with("\"xxx"));
    let whole = service.get(large["href"].as_str().unwrap()).ends(200);
    let text = whole.json();
    assert_eq!(text.as_str().map(str::len), Some(4 * (300 << 10)));
    let sent = service.get(&format!("/plan/p/runs/{run}/steps/s3/arguments"));
    let sent = sent.ends(200).json();
    assert_eq!(sent["value"].as_str().map(str::len), Some(4 * (300 << 10)));
    service
        .get(&format!("/plan/p/runs/{run}/steps/missing/value"))
        .refuses(404, "no step");
}

#[test]
fn an_approver_is_told_when_arguments_are_too_large_and_where_they_are() {
    let setup = Setup {
        policy: json!({ "late_bound": "ask" }),
        ..Setup::default()
    };
    let service = Service::start(setup);
    let first = echo("first", "x".repeat(300 << 10), &[]);
    let content = "${first}".repeat(5);
    let write = call(
        "write",
        "local.write_file",
        json!({ "path": "a", "content": content }),
        &["first"],
    );
    service.plan("p", json!([first, write]));
    service.approve("p");
    let run = service.run("p");
    wait_until("the question", || !service.inbox().is_empty());
    let asked = service.inbox().remove(0);
    let result = service.get(&format!("/plan/p/runs/{run}")).json();
    for call in [&asked["call"], &step(&result, "write")["call"]] {
        let words = call["args"].as_str().unwrap();
        assert!(
            words.starts_with("NOT SHOWN: the arguments have 1536"),
            "{words}"
        );
        let href = call["largeArgs"]["href"].as_str().unwrap();
        let whole = service.get(href).ends(200).json();
        assert_eq!(
            whole["content"].as_str().map(str::len),
            Some(5 * (300 << 10))
        );
        assert_eq!(whole["path"], "a");
    }
    assert_eq!(service.files.read("a"), "");
    let yes = json!({ "decision": "approve", "digest": asked["digest"] });
    service.post("/plan/p/steps/write/approve", &yes).ends(200);
    service.wait_for("p", "completed");
    assert_eq!(service.files.read("a").len(), 5 * (300 << 10));
}

#[test]
fn values_are_linked_from_the_size_on_that_is_asked_for_and_sent_once() {
    let service = Service::new();
    let mut first = echo("a", "x".repeat(20 << 10), &[]);
    first["result"] = json!("text");
    service.plan("p", json!([first, echo("b", "short", &[])]));
    let run = service.run("p");
    service.wait_for("p", "completed");
    let path = format!("/plan/p/runs/{run}");
    let whole = service.get(&path).ends(200).json();
    assert!(whole["variables"]["text"].is_string());
    let small = service.get(&format!("{path}?inline=16384")).ends(200);
    assert!(small.body.len() < 8 << 10, "{}", small.body.len());
    let small = small.json();
    assert_eq!(step(&small, "a")["largeValue"]["bytes"], (20 << 10) + 2);
    assert_eq!(step(&small, "b")["value"], "short");
    assert_eq!(small["variables"], json!({}));
}
