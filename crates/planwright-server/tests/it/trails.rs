//! What happened in a run, call by call: times, journals that can be checked, and large values in part.

use crate::service::Service;
use planwright_testing::steps::{echo, effect, step};
use serde_json::{Value, json};

#[test]
fn each_step_says_when_it_began_and_ended_and_how_its_calls_went() {
    let service = Service::new();
    let mut bad = json!({ "id": "bad", "tool": "local.read_file", "args": { "path": "nosuch" } });
    bad["critical"] = json!(false);
    service.plan("p", json!([echo("a", 1, &[]), bad]));
    service.approve("p");
    let run = service.run("p");
    let ended = ["failed", "completed", "completed_with_failures"];
    planwright_testing::wait::wait_until("the run to end", || {
        ended.contains(&service.status("p").as_str())
    });
    let result = service.result("p", &run);
    let good = step(&result, "a");
    assert!(
        good["startedAt"].as_str() <= good["endedAt"].as_str(),
        "{good}"
    );
    assert!(good["startedAt"].is_string(), "{good}");
    let place = format!("/plan/p/runs/{run}");
    let trail = service.get(&format!("{place}/steps/bad")).ends(200).json();
    let attempts = trail["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{trail}");
    assert_eq!(attempts[0]["outcome"], "failed");
    let words = attempts[0]["error"]["message"].as_str().unwrap();
    assert!(words.contains("there is no nosuch"), "{words}");
    service.get(&format!("{place}/steps/nosuch")).ends(404);
}

#[test]
fn journals_are_read_in_pages_and_verified() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[]), effect("b", &["a"])]));
    service.approve("p");
    let run = service.run("p");
    service.wait_for("p", "completed");
    let plan = service.get("/plan/p/journal").ends(200).json();
    let kinds: Vec<&Value> = plan
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["kind"])
        .collect();
    assert_eq!(kinds, ["plan_proposed", "plan_approved", "run_opened"]);
    let path = format!("/plan/p/runs/{run}/journal");
    let whole = service.get(&path).ends(200).json();
    let mut pages = Vec::new();
    let mut next = Some(format!("{path}?limit=2"));
    while let Some(asked) = next {
        let answer = service.get(&asked).ends(200);
        let link = answer.header("link");
        next = link.map(|link| link[1..link.find('>').unwrap()].to_owned());
        pages.extend(answer.json().as_array().unwrap().clone());
    }
    assert_eq!(Value::Array(pages), whole);
    assert_eq!(whole[0]["kind"], "run_started");
    let verified = service.get("/plan/p/verify").ends(200).json();
    assert_eq!(verified["ok"], true);
    assert_eq!(verified["journals"][0]["entries"], 3);
    let last = whole.as_array().unwrap().last().unwrap();
    assert_eq!(verified["journals"][1]["hash"], last["hash"]);
    service.get("/plan/nosuch/verify").ends(404);
}

#[test]
fn a_large_value_is_read_by_its_digest_in_part() {
    let service = Service::new();
    let text = "0123456789".repeat(40_000);
    service.plan("p", json!([echo("a", text.clone(), &[])]));
    service.approve("p");
    let run = service.run("p");
    service.wait_for("p", "completed");
    let result = service.result("p", &run);
    let large = &step(&result, "a")["largeValue"];
    let digest = large["digest"].as_str().unwrap();
    let path = format!("/plan/p/runs/{run}/artifacts/{digest}");
    let whole = service.get(&format!("{path}?download=true")).ends(200);
    assert_eq!(whole.json(), json!(text));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let name = whole.header("content-disposition").unwrap();
    assert!(name.starts_with("attachment"), "{name}");
    let part = |path: &str, range: &str| service.request("GET", path).header("Range", range).send();
    let first = part(&path, "bytes=0-10").ends(206);
    assert_eq!(first.body, b"\"0123456789");
    assert_eq!(first.header("content-range"), Some("bytes 0-10/400002"));
    part(&path, "bytes=400002-").ends(416);
    let by_step = format!("/plan/p/runs/{run}/steps/a/value");
    assert_eq!(part(&by_step, "bytes=-3").ends(206).body, b"89\"");
    let other = format!("/plan/p/runs/{run}/artifacts/sha256:{}", "0".repeat(64));
    service.get(&other).ends(404);
}

#[test]
fn the_events_of_one_run_are_told_alone() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let mut runs = Vec::new();
    for _ in 0..2 {
        let digest = service.get("/plan/p").ends(200).json()["digest"].clone();
        let yes = json!({ "decision": "approve", "digest": digest });
        service.post("/plan/p/approve", &yes).ends(200);
        runs.push(service.run("p"));
        service.wait_for("p", "completed");
    }
    let events = |query: &str| {
        let answer = service.get(&format!("/plan/p/events{query}")).ends(200);
        answer.json()["events"].as_array().unwrap().clone()
    };
    let of_second = events(&format!("?run={}", runs[1]));
    assert!(!of_second.is_empty());
    assert!(of_second.iter().all(|event| event["runId"] == runs[1]));
    let all = events("");
    let counted = all.iter().filter(|event| event["runId"] == runs[1]);
    assert_eq!(counted.count(), of_second.len());
}
