//! Going on after a crash, a pause, an edit.

use planwright_testing::steps::{echo, effect, sleep, step};
use planwright_testing::workbench::Bench;
use serde_json::json;

/// Runs the plan and kills the process while `step` is in flight.
fn crash_during(bench: &Bench, plan: &str, id: &str, step: &str) {
    let running = bench.start(&["run", plan, "--yes"]);
    bench.wait_for(id, "attempt_started", step);
    running.kill();
}

#[test]
fn after_a_crash_only_what_was_not_done_runs() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            effect("a", &[]),
            effect("b", &["a"]),
            sleep("c", 4_000, &["b"]),
            effect("d", &["c"])
        ]),
    );
    crash_during(&bench, &plan, "p", "c");
    assert_eq!(bench.status("p"), "executing");
    let listed = bench.run(&["list"]).ends(0);
    assert!(listed.out.contains("(interrupted)"), "{listed:#?}");
    let result = bench.run(&["resume", "p", "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
    assert_eq!(step(&result, "c")["attempts"], 2);
    assert_eq!(bench.read("effects.txt"), "a\nb\nd\n");
    let replayed = bench
        .run(&["replay", "p", "--offline", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&replayed["ok"], &replayed["status"]),
        (&json!(true), &json!("completed"))
    );
}

/// A sleep that the operator calls unsafe.
fn unsafe_sleep(bench: &Bench) -> String {
    bench.configure("[tools.\"demo.sleep\"]\nclass = \"unsafe\"\n");
    bench.plan(
        "p",
        json!([sleep("wire", 4_000, &[]), effect("after", &["wire"])]),
    )
}

fn unknown(bench: &Bench) {
    let plan = unsafe_sleep(bench);
    crash_during(bench, &plan, "p", "wire");
    let said = bench.run(&["resume", "p", "--json"]).ends(4);
    assert_eq!(step(&said.json(), "wire")["status"], "outcome_unknown");
    assert_eq!(said.json()["status"], "waiting");
    assert!(
        said.err.contains("planwright resolve p wire --happened"),
        "{said:#?}"
    );
    assert!(
        !bench.path("effects.txt").exists(),
        "nothing goes on by itself"
    );
}

#[test]
fn an_unsafe_call_is_not_repeated_and_a_person_says_that_it_happened() {
    let bench = Bench::new();
    unknown(&bench);
    bench
        .run(&["resolve", "p", "wire", "--happened", "--value", "{broken"])
        .complains(2, "--value");
    bench
        .run(&["resolve", "p", "nobody", "--happened"])
        .complains(2, "has no step `nobody`");
    bench
        .run(&["resolve", "p", "after", "--happened"])
        .complains(3, "not unknown");
    let large = "x".repeat(100_000);
    bench
        .run(&[
            "resolve",
            "p",
            "wire",
            "--happened",
            "--value",
            &json!(large).to_string(),
        ])
        .ends(0);
    let result = bench.run(&["resume", "p", "--json"]).ends(0).json();
    assert_eq!(step(&result, "wire")["value"], json!(large));
    assert_eq!(bench.read("effects.txt"), "after\n");
}

#[test]
fn an_unsafe_call_that_did_not_happen_has_failed() {
    let bench = Bench::new();
    unknown(&bench);
    bench
        .run(&["resolve", "p", "wire", "--did-not-happen"])
        .ends(0);
    let status = bench.status("p");
    assert_eq!(status, "failed");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn an_unsafe_call_runs_again_only_when_a_person_says_so() {
    let bench = Bench::new();
    unknown(&bench);
    bench.run(&["resolve", "p", "wire", "--run-again"]).ends(0);
    let result = bench.run(&["resume", "p", "--json"]).ends(0).json();
    assert_eq!(step(&result, "wire")["attempts"], 2);
}

#[test]
fn resolve_wants_exactly_one_outcome() {
    let bench = Bench::new();
    bench.run(&["resolve", "p", "a"]).ends(2);
    bench
        .run(&["resolve", "p", "a", "--happened", "--run-again"])
        .ends(2);
    bench
        .run(&["resolve", "p", "a", "--run-again", "--value", "1"])
        .ends(2);
}

#[test]
fn an_edited_plan_is_not_resumed_and_both_versions_are_named() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[]), sleep("b", 60_000, &["a"])]));
    crash_during(&bench, &plan, "p", "b");
    let edited = bench.plan("p", json!([effect("a", &[]), sleep("b", 1, &["a"])]));
    bench.run(&["import", &edited]).ends(0);
    let said = bench.run(&["resume", "p"]).complains(3, "version 1");
    assert!(said.err.contains("version 2"), "{said:#?}");
}

#[test]
fn there_has_to_be_something_to_resume() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["resume", "p"])
        .complains(2, "no run that could be resumed");
    bench.run(&["run", "p"]).ends(0);
    bench
        .run(&["resume", "p"])
        .complains(3, "has already ended (completed)");
    bench
        .run(&["cancel", "p"])
        .complains(3, "it has no run to send this to");
}

#[test]
fn a_plan_that_goes_on_is_not_started_twice_or_deleted() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    crash_during(&bench, &plan, "p", "a");
    let said = bench.run(&["run", "p"]).complains(3, "already executing");
    assert!(said.err.contains("planwright resume p"), "{said:#?}");
    bench
        .run(&["delete", "p", "--yes"])
        .complains(3, "the plan is executing");
    bench.run(&["cancel", "p"]).ends(0);
    assert_eq!(bench.status("p"), "cancelled");
    bench.run(&["delete", "p", "--yes"]).ends(0);
}

#[test]
fn a_resumed_run_keeps_the_variables_it_was_approved_with() {
    let bench = Bench::new();
    let steps = json!([sleep("a", 4_000, &[]), echo("b", "${n}", &["a"])]);
    let plan = bench.document(json!({ "id": "p", "variables": { "n": 1 }, "steps": steps }));
    let running = bench.start(&["run", &plan, "--var", "n=2"]);
    bench.wait_for("p", "attempt_started", "a");
    running.kill();
    bench
        .run(&["resume", "p", "--var", "n=3"])
        .complains(3, "another value of `n`");
    let result = bench
        .run(&["resume", "p", "--var", "n=2", "--json"])
        .ends(0)
        .json();
    assert_eq!(step(&result, "b")["value"], 2);
}

#[test]
fn a_fork_reuses_results_up_to_where_it_starts_again() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([effect("a", &[]), effect("b", &["a"]), effect("c", &["b"])]),
    );
    let first = bench.run(&["run", &plan, "--yes", "--json"]).ends(0).json();
    bench
        .run(&["fork", "p", "--from", "b"])
        .complains(3, "not approved");
    bench
        .run(&["fork", "p", "--from", "nobody", "--yes"])
        .complains(2, "has no step `nobody`");
    let forked = bench
        .run(&["fork", "p", "--from", "b", "--yes", "--json"])
        .ends(0)
        .json();
    assert_ne!(first["runId"], forked["runId"]);
    assert_eq!(step(&forked, "a")["attempts"], 0, "taken over");
    assert_eq!(step(&forked, "a")["value"], step(&first, "a")["value"]);
    assert_eq!(bench.read("effects.txt"), "a\nb\nc\nb\nc\n");
    let first_run = first["runId"].as_str().unwrap();
    bench
        .run(&["fork", "p", "--run", first_run, "--from", "c", "--yes"])
        .ends(0);
    assert_eq!(bench.read("effects.txt"), "a\nb\nc\nb\nc\nc\n");
    let runs = bench.run(&["show", "p", "--json"]).json()["runs"]
        .as_array()
        .map(Vec::len);
    assert_eq!(runs, Some(3));
    bench
        .run(&["fork", "p", "--run", "run_nothing", "--from", "c"])
        .complains(2, "has no run");
}

#[test]
fn replay_is_offline_only() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    bench
        .run(&["replay", "p"])
        .complains(2, "only an offline replay exists");
    let replayed = bench
        .run(&["replay", "p", "--offline", "--json"])
        .ends(0)
        .json();
    let mut keys: Vec<&String> = replayed.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        ["entries", "ok", "planId", "runId", "stateDigest", "status"]
    );
    let recorded = bench
        .log("p")
        .last()
        .map(|entry| entry["stepsDigest"].clone());
    assert_eq!(recorded, Some(replayed["stateDigest"].clone()));
    assert_eq!(bench.read("effects.txt"), "a\n");
}
