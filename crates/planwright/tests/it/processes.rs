//! Several processes on one store, and signals.

use planwright_testing::steps::{echo, effect, sleep, step};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use rustix::process::Signal;
use serde_json::json;

#[test]
fn ctrl_c_pauses_cleanly_and_resume_goes_on() {
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        let plan = bench.plan("p", json!([sleep("a", 4_000, &[]), effect("b", &["a"])]));
        let running = bench.start(&["run", &plan, "--yes", "--json"]);
        bench.wait_for("p", "attempt_started", "a");
        running.signal(signal);
        let said = running.wait().ends(130);
        assert!(said.err.contains("pausing"), "{said:#?}");
        let result = said.json();
        assert_eq!(result["status"], "paused");
        assert_eq!(
            step(&result, "a")["status"],
            "completed",
            "what was in flight finished"
        );
        assert!(!bench.path("effects.txt").exists(), "nothing new started");
        assert_eq!(bench.status("p"), "paused");
        bench.run(&["resume", "p"]).ends(0);
        assert_eq!(bench.read("effects.txt"), "b\n");
    }
}

#[test]
fn ctrl_c_twice_cancels() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[]), effect("b", &["a"])]));
    let running = bench.start(&["run", &plan, "--yes", "--json"]);
    bench.wait_for("p", "attempt_started", "a");
    running.interrupt();
    wait_until("the pause", || bench.status("p") == "paused");
    running.interrupt();
    let said = running.wait().ends(1);
    let result = said.json();
    assert_eq!(result["status"], "cancelled");
    assert_eq!(step(&result, "a")["status"], "cancelled");
    assert_eq!(step(&result, "b")["status"], "cancelled");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn ctrl_c_ends_a_run_that_waits_for_a_person() {
    let bench = Bench::new();
    let mut gate = effect("a", &[]);
    gate["approvalRequired"] = json!(true);
    let plan = bench.plan("p", json!([gate]));
    let running = bench.start(&["run", &plan, "--yes", "--wait"]);
    bench.wait_for("p", "approval_requested", "a");
    running.interrupt();
    running.wait().ends(130);
    assert_eq!(bench.status("p"), "paused");
}

#[test]
fn another_process_pauses_and_cancels() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([sleep("a", 5_000, &[]), sleep("b", 60_000, &["a"])]),
    );
    let running = bench.start(&["run", &plan, "--json"]);
    bench.wait_for("p", "attempt_started", "a");
    bench
        .run(&["resume", "p"])
        .complains(3, "another process executes");
    bench.run(&["pause", "p"]).ends(0);
    assert_eq!(running.wait().ends(4).json()["status"], "paused");
    let running = bench.start(&["resume", "p", "--json"]);
    bench.wait_for("p", "attempt_started", "b");
    bench.run(&["cancel", "p"]).ends(0);
    assert_eq!(running.wait().ends(1).json()["status"], "cancelled");
}

#[test]
fn the_log_can_be_followed_until_the_run_ends() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 400, &[]), echo("b", 1, &["a"])]));
    let running = bench.start(&["run", &plan]);
    bench.wait_for("p", "attempt_started", "a");
    let following = bench.start(&["log", "p", "--follow", "--json"]);
    let said = following.wait().ends(0);
    running.wait().ends(0);
    let kinds: Vec<String> = said
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("run_started"));
    assert_eq!(kinds.last().map(String::as_str), Some("run_completed"));
    assert_eq!(kinds.len(), 6, "each entry once: {kinds:?}");
}

#[test]
fn many_processes_run_different_plans_on_one_store() {
    let bench = Bench::new();
    let ids: Vec<String> = (0..4).map(|n| format!("p{n}")).collect();
    let running: Vec<_> = ids
        .iter()
        .map(|id| {
            let plan = bench.plan(id, json!([echo("a", 1, &[]), effect(id, &["a"])]));
            bench.start(&["run", &plan, "--yes", "--json"])
        })
        .collect();
    for each in running {
        each.wait().ends(0);
    }
    let text = bench.read("effects.txt");
    let mut effects: Vec<&str> = text.lines().collect();
    effects.sort_unstable();
    assert_eq!(effects, ids);
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let bench = Bench::new();
    let steps: Vec<_> = (0..300)
        .map(|n| echo(&format!("s{n}"), "x".repeat(1_000), &[]))
        .collect();
    let plan = bench.plan("p", json!(steps));
    bench.run(&["run", &plan, "--json"]).ends(0);
    let mut command = bench.command(&["log", "p", "--json"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}
