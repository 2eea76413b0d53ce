//! Steps that wait for a person.

use planwright_testing::steps::{effect, step};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn gated(bench: &Bench) -> String {
    let mut gate = effect("gate", &["before"]);
    gate["approvalRequired"] = json!(true);
    bench.plan(
        "p",
        json!([effect("before", &[]), gate, effect("after", &["gate"])]),
    )
}

fn count(bench: &Bench, kind: &str) -> usize {
    bench
        .log("p")
        .iter()
        .filter(|entry| entry["kind"] == kind)
        .count()
}

#[test]
fn a_gated_step_waits_even_with_yes_and_runs_once_it_is_approved() {
    let bench = Bench::new();
    let plan = gated(&bench);
    let said = bench.run(&["run", &plan, "--yes", "--json"]).ends(4);
    let result = said.json();
    assert_eq!(result["status"], "waiting");
    assert_eq!(step(&result, "gate")["status"], "awaiting_approval");
    assert_eq!(bench.read("effects.txt"), "before\n");
    let digest = result["digest"].as_str().unwrap();
    assert!(
        said.err.contains(&format!(
            "planwright approve p --step gate --digest {digest}"
        )),
        "{said:#?}"
    );
    bench
        .run(&["approve", "p", "--step", "after", "--digest", digest])
        .complains(3, "it is not waiting for approval");
    bench
        .run(&["approve", "p", "--step", "nobody", "--digest", digest])
        .complains(2, "has no step `nobody`");
    bench
        .run(&["approve", "p", "--step", "gate"])
        .complains(2, "--version N or --digest");
    let approved = bench
        .run(&["approve", "p", "--step", "gate", "--digest", digest])
        .ends(0);
    assert!(
        approved.err.contains("planwright resume p"),
        "{approved:#?}"
    );
    assert_eq!(
        bench.read("effects.txt"),
        "before\n",
        "approving does not run anything"
    );
    bench.run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "before\ngate\nafter\n");
}

#[test]
fn a_step_that_waits_at_restart_is_announced_again_and_not_dispatched() {
    let bench = Bench::new();
    let plan = gated(&bench);
    bench.run(&["run", &plan, "--yes"]).ends(4);
    let said = bench.run(&["resume", "p"]).ends(4);
    assert!(
        said.err.contains("planwright approve p --step gate"),
        "{said:#?}"
    );
    assert_eq!(bench.read("effects.txt"), "before\n");
}

#[test]
fn a_rejected_step_is_never_called_and_its_reason_is_kept() {
    let bench = Bench::new();
    let plan = gated(&bench);
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(4).json();
    let digest = result["digest"].as_str().unwrap();
    bench
        .run(&[
            "reject",
            "p",
            "--step",
            "gate",
            "--digest",
            digest,
            "--reason",
            "not today",
        ])
        .ends(0);
    assert_eq!(bench.status("p"), "failed");
    let denied = bench
        .log("p")
        .into_iter()
        .find(|entry| entry["kind"] == "approval_denied")
        .unwrap();
    assert_eq!(denied["reason"], "not today");
    assert_eq!(bench.read("effects.txt"), "before\n");
}

#[test]
fn a_stale_digest_approves_no_step() {
    let bench = Bench::new();
    let plan = gated(&bench);
    bench.run(&["run", &plan, "--yes"]).ends(4);
    let stale = format!("sha256:{}", "1".repeat(64));
    bench
        .run(&["approve", "p", "--step", "gate", "--digest", &stale])
        .complains(3, "since it was shown");
    assert_eq!(count(&bench, "approval_granted"), 0);
}

#[test]
fn a_second_process_approves_a_step_while_the_first_executes_the_plan() {
    let bench = Bench::new();
    let plan = gated(&bench);
    let running = bench.start(&["run", &plan, "--yes", "--json", "--wait"]);
    bench.wait_for("p", "approval_requested", "gate");
    let digest = bench.digest("p");
    bench
        .run(&["approve", "p", "--step", "nobody", "--digest", &digest])
        .complains(2, "has no step `nobody`");
    bench
        .run(&["approve", "p", "--step", "gate", "--digest", &digest])
        .ends(0);
    let said = running.wait().ends(0);
    let result: Value = said.json();
    assert_eq!(step(&result, "after")["status"], "completed");
    assert_eq!(bench.read("effects.txt"), "before\ngate\nafter\n");
    assert_eq!(count(&bench, "approval_granted"), 1);
}
