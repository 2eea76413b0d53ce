//! The life of a plan: versions, rejections, deletion.

use planwright_testing::steps::{echo, effect, sleep};
use planwright_testing::workbench::Bench;
use serde_json::json;

#[test]
fn the_same_content_is_the_same_version_and_every_edit_is_the_next() {
    let bench = Bench::new();
    let import = |steps| {
        let plan = bench.plan("p", steps);
        bench.run(&["import", &plan, "--json"]).ends(0).json()
    };
    let first = import(json!([effect("a", &[])]));
    assert_eq!(
        (&first["version"], &first["status"]),
        (&json!(1), &json!("proposed"))
    );
    assert_eq!(import(json!([effect("a", &[])])), first);
    let second = import(json!([effect("b", &[])]));
    assert_eq!(second["version"], 2);
    assert_ne!(second["digest"], first["digest"]);
    let exported = bench.run(&["export", "p", "--version", "1"]).ends(0).json();
    assert_eq!(exported["steps"][0]["id"], "a");
    bench
        .run(&["export", "p", "--version", "3"])
        .complains(2, "has no version 3");
}

#[test]
fn running_a_file_again_runs_the_same_plan_and_an_edited_one_its_next_version() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    assert_eq!(bench.run(&["run", &plan, "--json"]).json()["version"], 1);
    assert_eq!(bench.run(&["run", &plan, "--json"]).json()["version"], 1);
    let plan = bench.plan("p", json!([echo("a", 2, &[])]));
    assert_eq!(bench.run(&["run", &plan, "--json"]).json()["version"], 2);
}

#[test]
fn the_third_rejection_needs_a_review_and_the_feedback_is_kept() {
    let bench = Bench::new();
    for round in 1..=3 {
        let plan = bench.plan("p", json!([effect(&format!("round{round}"), &[])]));
        bench.run(&["import", &plan]).ends(0);
        let reason = format!("reason {round}");
        let said = bench
            .run(&[
                "reject",
                "p",
                "--version",
                &round.to_string(),
                "--reason",
                &reason,
                "--json",
            ])
            .ends(0);
        assert_eq!(
            said.json()["status"],
            if round < 3 {
                "rejected"
            } else {
                "needs_review"
            }
        );
    }
    assert_eq!(bench.status("p"), "needs_review");
    bench
        .run(&["run", "p"])
        .complains(3, "needs a review by a person");
    let shown = bench.run(&["show", "p"]).ends(0).out;
    for round in 1..=3 {
        assert!(
            shown.contains(&format!("rejected (version {round})")),
            "{shown}"
        );
        assert!(shown.contains(&format!("reason {round}")), "{shown}");
    }
}

#[test]
fn a_deleted_plan_is_gone_from_lists_and_its_files_are_removed() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &plan]).ends(0);
    assert!(bench.path(".plans/p/plan.json").is_file());
    bench
        .run(&["delete", "p"])
        .complains(3, "there is no terminal to ask at");
    bench.run(&["delete", "p", "--yes"]).ends(0);
    assert_eq!(bench.run(&["list", "--json"]).json(), json!([]));
    assert_eq!(
        bench.run(&["list", "--all", "--json"]).json()[0]["status"],
        "deleted"
    );
    bench.run(&["show", "p"]).complains(2, "it was deleted");
    bench.run(&["run", "p"]).complains(2, "it was deleted");
    assert!(!bench.path(".plans/p").exists());
    bench.run(&["verify"]).ends(0);
    assert_eq!(
        bench.run(&["import", &plan, "--json"]).ends(0).json()["version"],
        2
    );
}

#[test]
fn a_plan_is_not_deleted_while_another_process_executes_it() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    let running = bench.start(&["run", &plan]);
    bench.wait_for("p", "attempt_started", "a");
    bench
        .run(&["delete", "p", "--yes"])
        .complains(3, "the plan is executing");
    running.kill();
}

#[test]
fn an_executing_plan_without_a_process_is_stalled_after_the_configured_time() {
    let bench = Bench::new();
    bench.configure("stalled_after_minutes = 0\n");
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    let running = bench.start(&["run", &plan]);
    bench.wait_for("p", "attempt_started", "a");
    assert_eq!(bench.status("p"), "executing");
    running.kill();
    assert_eq!(bench.status("p"), "stalled");
    let said = bench.run(&["show", "p"]);
    assert!(said.err.contains("planwright resume p"), "{said:#?}");
}

#[test]
fn a_unique_prefix_finds_a_plan_for_reading_and_an_ambiguous_one_lists_the_candidates() {
    let bench = Bench::new();
    for id in ["alpha-one", "alpha-two", "beta"] {
        let plan = bench.plan(id, json!([echo("a", 1, &[])]));
        bench.run(&["import", &plan]).ends(0);
    }
    assert_eq!(
        bench.run(&["show", "be", "--json"]).ends(0).json()["id"],
        "beta"
    );
    let said = bench.run(&["show", "alpha"]).complains(2, "alpha-one");
    assert!(said.err.contains("alpha-two"), "{said:#?}");
    for command in [
        &["run", "be"][..],
        &["delete", "be", "--yes"],
        &["approve", "be", "--version", "1"],
        &["cancel", "be"],
    ] {
        bench.run(command).complains(2, "there is no plan `be`");
    }
}

#[test]
fn a_plan_comes_back_as_it_went_in() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            echo("a", json!({ "deep": [1, null, "x"] }), &[]),
            echo("b", "${a}", &[])
        ]),
    );
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["export", "p", "-o", "copy.json"]).ends(0);
    assert_eq!(
        bench.run(&["import", "copy.json", "--json"]).ends(0).json()["version"],
        1
    );
    let page = bench.run(&["export", "p", "--format", "md"]).ends(0).out;
    assert!(page.starts_with("---\n"), "{page}");
    assert_eq!(
        bench.read(".plans/p/plan.md").lines().next(),
        page.lines().next()
    );
}
