//! Nothing runs that no approver agreed to.

use planwright_testing::steps::{echo, effect, step};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

/// The entries of a plan's own journal.
fn plan_log(bench: &Bench, plan: &str) -> Vec<Value> {
    let said = bench.run(&["log", plan, "--plan", "--json"]).ends(0);
    said.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn an_unapproved_plan_that_writes_is_refused_and_told_how_to_be_approved() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let said = bench
        .run(&["run", &plan])
        .complains(3, "the plan is not approved");
    let digest = bench.digest("p");
    assert!(
        said.err
            .contains(&format!("planwright approve p --digest {digest}")),
        "{said:#?}"
    );
    // Who reads this may be the agent that the approval is about.
    assert!(!said.err.contains("--yes"), "{said:#?}");
    assert!(!bench.path("effects.txt").exists());
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    assert_eq!(bench.status("p"), "approved");
    bench.run(&["run", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn an_approval_is_spent_by_the_run_it_starts() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    bench
        .run(&["run", "p"])
        .complains(3, "the plan is not approved");
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn yes_is_recorded_as_the_person_at_the_keyboard() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let approved = plan_log(&bench, "p")
        .into_iter()
        .find(|entry| entry["kind"] == "plan_approved")
        .unwrap();
    assert_eq!(approved["by"]["kind"], "person");
    assert_eq!(approved["assurance"], "command_line");
    assert_eq!(approved["digest"], json!(bench.digest("p")));
}

#[test]
fn a_plan_that_only_reads_runs_and_is_recorded_as_policys() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[]), echo("b", 2, &["a"])]));
    bench.run(&["run", &plan]).ends(0);
    let approved = plan_log(&bench, "p")
        .into_iter()
        .find(|entry| entry["kind"] == "plan_approved")
        .unwrap();
    assert_eq!(
        approved["by"],
        json!({ "kind": "policy", "name": "read-only" })
    );
    assert_eq!(approved["assurance"], "policy");
}

#[test]
fn a_gate_makes_even_a_reading_plan_a_persons_matter() {
    let bench = Bench::new();
    let mut gated = echo("a", 1, &[]);
    gated["approvalRequired"] = json!(true);
    let plan = bench.plan("p", json!([gated]));
    bench.run(&["run", &plan]).complains(3, "not approved");
}

#[test]
fn variables_are_part_of_what_is_approved() {
    let bench = Bench::new();
    let mut write = effect("a", &[]);
    write["args"]["content"] = json!("${text}");
    let plan =
        bench.document(json!({ "id": "p", "variables": { "text": "one" }, "steps": [write] }));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["approve", "p", "--digest", &bench.digest("p")])
        .ends(0);
    bench
        .run(&["run", "p", "--var", "text=two"])
        .complains(3, "not approved");
    let said = bench.run(&["run", "p", "--var", "text=two"]);
    let hint = said
        .err
        .lines()
        .find(|line| line.starts_with("hint: "))
        .unwrap();
    let digest = hint
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"))
        .unwrap()
        .trim_end_matches(',');
    bench
        .run(&["approve", "p", "--var", "text=two", "--digest", digest])
        .ends(0);
    bench.run(&["run", "p", "--var", "text=two"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "two");
}

#[test]
fn approving_needs_what_was_shown() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let digest = bench.digest("p");
    for command in [&["approve", "p"][..], &["reject", "p", "--reason", "no"]] {
        let said = bench.run(command).complains(2, "--version N or --digest");
        assert!(
            said.err.contains(&digest),
            "the current one is shown: {said:#?}"
        );
    }
    let stale = format!("sha256:{}", "0".repeat(64));
    let said = bench
        .run(&["approve", "p", "--digest", &stale])
        .complains(3, &stale);
    assert!(said.err.contains(&digest), "both are named: {said:#?}");
    bench
        .run(&["approve", "p", "--version", "7"])
        .complains(3, "shown version 7, now version 1");
    bench
        .run(&["approve", "p", "--digest", "yes"])
        .complains(2, "not a digest");
    bench.run(&["approve", "p", "--version", "1"]).ends(0);
    bench
        .run(&["approve", "p", "--version", "1"])
        .complains(3, "approved already");
}

#[test]
fn editing_an_approved_plan_voids_the_approval() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["approve", "p", "--version", "1"]).ends(0);
    let plan = bench.plan("p", json!([effect("b", &[])]));
    let imported = bench.run(&["import", &plan, "--json"]).ends(0).json();
    assert_eq!(
        (&imported["version"], &imported["status"]),
        (&json!(2), &json!("proposed"))
    );
    bench.run(&["run", "p"]).complains(3, "not approved");
}

#[test]
fn a_rejected_plan_does_not_run_even_with_yes() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["reject", "p", "--version", "1", "--reason", "too risky"])
        .ends(0);
    assert_eq!(bench.status("p"), "rejected");
    bench
        .run(&["run", "p", "--yes"])
        .complains(3, "the plan was rejected: too risky");
    assert!(!bench.path("effects.txt").exists());
    bench
        .run(&["reject", "p", "--version", "1", "--reason", " "])
        .complains(2, "--reason");
}

#[test]
fn a_dry_run_needs_no_consent() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let result = bench
        .run(&["run", "p", "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(step(&result, "a")["verdict"], "ask");
    assert!(!bench.path("effects.txt").exists());
    assert_eq!(bench.status("p"), "proposed");
}
