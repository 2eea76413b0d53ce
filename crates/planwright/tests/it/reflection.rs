//! `run --reflect`, `--replan` and `--check`, and `check`, against a provider that answers from a
//! script.

use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

/// `a` is written, `b` reads a file that is not there, `c` writes what `b` found.
fn plan(bench: &Bench) -> String {
    bench.document(
        json!({"id": "p", "goal": "copy the note", "successCriteria": ["the copy is there"], "steps": [
            {"id": "a", "tool": "local.write_file", "args": {"path": "a.txt", "content": "hello"}},
            {"id": "b", "tool": "local.read_file", "args": {"path": "missing.txt"}, "dependsOn": ["a"]},
            {"id": "c", "tool": "local.write_file", "args": {"path": "c.txt", "content": "${b}"}},
        ]}),
    )
}

fn says(assessment: &str, adjustments: Value) -> Value {
    json!({"assessment": assessment, "reasoning": "the file has another name", "adjustments": adjustments})
}

fn retry_b() -> Value {
    says(
        "needs_adjustment",
        json!([{"type": "retry", "step": "b", "args": {"path": "a.txt"}}]),
    )
}

fn bench(
    replies: impl IntoIterator<Item = ScriptedReply>,
    more: &str,
) -> (Bench, Provider, String) {
    let bench = Bench::new();
    let provider = Provider::scripted(replies);
    bench.configure(&format!("{}{more}", provider.config()));
    let file = plan(&bench);
    (bench, provider, file)
}

#[test]
fn an_adjustment_waits_for_an_approver_and_the_hints_lead_to_the_rest_and_no_further() {
    let (bench, provider, file) = bench([ScriptedReply::fenced(&retry_b())], "");
    let said = bench.run(&["run", &file, "--yes", "--reflect"]).ends(4);
    assert!(
        said.err.contains("▸ asking a model to assess the run"),
        "{said:#?}"
    );
    assert!(
        said.out
            .contains("needs adjustment: the file has another name"),
        "{said:#?}"
    );
    let approve = said.hinted("approve", "approves");
    let resume = said.hinted("resume", "continues");
    assert_eq!(resume, ["resume", "p"]);
    assert!(!said.err.contains("planwright run"), "{said:#?}");
    assert_eq!(bench.status("p"), "proposed");
    let kinds: Vec<Value> = bench
        .log("p")
        .into_iter()
        .map(|entry| entry["kind"].clone())
        .collect();
    let last = &kinds[kinds.len() - 3..];
    assert_eq!(
        last,
        [
            json!("model_used"),
            json!("run_reflected"),
            json!("run_adjusted")
        ]
    );

    // A person who looks sees the change, and what was agreed to already.
    let shown = bench.run(&["show", "p"]).ends(0);
    assert!(shown.out.contains("changed since version 1"), "{shown:#?}");
    assert!(
        shown.out.contains("already approved and unchanged: a, c"),
        "{shown:#?}"
    );
    let versions = bench.run(&["versions", "p"]).ends(0);
    assert!(versions.out.contains("reflector"), "{versions:#?}");

    // Nothing goes on by itself, and `--yes` is about something else.
    assert_eq!(bench.run(&["resume", "p", "--yes"]).code, 4);
    assert_eq!(bench.read("c.txt"), "");
    let type_in = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        bench.run(&words).ends(0)
    };
    type_in(&approve);
    assert_eq!(bench.read("c.txt"), "", "approving runs nothing");
    let done = type_in(&[&resume[..], &["--json".to_owned()]].concat()).json();
    // What was done is not done again.
    let written = bench.log("p");
    let again = written
        .iter()
        .filter(|entry| entry["kind"] == "attempt_started" && entry["step"] == "a");
    assert_eq!(again.count(), 0, "{written:#?}");
    assert_eq!(
        (bench.read("c.txt").as_str(), &done["status"]),
        ("hello", &json!("completed"))
    );
    assert_eq!(
        (&done["version"], &done["replanned"]),
        (&json!(2), &json!(false))
    );
    assert!(done["continues"].as_str().unwrap().starts_with("run_"));
    assert_eq!(provider.times_asked(), 1);
}

#[test]
fn whoever_agrees_in_advance_or_lets_policy_agree_to_reading_is_not_asked() {
    let (bench, _provider, file) = self::bench([ScriptedReply::json(retry_b())], "");
    bench
        .run(&["run", &file, "--yes", "--reflect", "--yes-adjustments"])
        .ends(0);
    assert_eq!(bench.read("c.txt"), "hello");

    let (bench, _provider, _) = self::bench(
        [ScriptedReply::json(retry_b())],
        "[policy]\nadjust = \"auto\"\n",
    );
    let file = bench.plan(
        "p",
        json!([
            {"id": "a", "title": "A", "tool": "local.write_file", "args": {"path": "a.txt", "content": "hello"}},
            {"id": "b", "title": "B", "tool": "local.read_file", "args": {"path": "missing.txt"}, "dependsOn": ["a"]},
        ]),
    );
    let said = bench.run(&["run", &file, "--yes", "--reflect"]).ends(0);
    assert!(said.err.contains("approved by policy"), "{said:#?}");

    // What is written was agreed to after `b` as it was.
    let (bench, _provider, file) = self::bench(
        [ScriptedReply::json(retry_b())],
        "[policy]\nadjust = \"auto\"\n",
    );
    bench.run(&["run", &file, "--yes", "--reflect"]).ends(4);
    assert_eq!(bench.read("c.txt"), "");

    // Policy never agrees to a write.
    let write = json!([{"type": "replace", "step": "b", "new": {"tool": "local.write_file", "args": {"path": "x.txt", "content": "x"}}}]);
    let (bench, _provider, file) = self::bench(
        [ScriptedReply::json(says("needs_adjustment", write))],
        "[policy]\nadjust = \"auto\"\n",
    );
    bench.run(&["run", &file, "--yes", "--reflect"]).ends(4);
    assert_eq!(bench.read("x.txt"), "");
}

#[test]
fn a_model_that_is_down_or_talks_nonsense_makes_no_failure_a_success() {
    for replies in [
        vec![ScriptedReply::status(500, "{}")],
        vec![
            ScriptedReply::text("Great!"),
            ScriptedReply::text("Really."),
        ],
        vec![ScriptedReply::json(says("complete", json!([])))],
    ] {
        let (bench, _provider, file) = bench(replies, "");
        let said = bench
            .run(&["run", &file, "--yes", "--reflect", "--json"])
            .ends(1)
            .json();
        assert_eq!(
            (&said["status"], &said["success"]),
            (&json!("failed"), &json!(false))
        );
        assert!(said["reflection"]["assessment"].is_string(), "{said}");
    }
}

#[test]
fn nobody_begins_a_run_whose_model_cannot_be_asked() {
    let bench = Bench::new();
    let file = plan(&bench);
    bench
        .run(&["run", &file, "--yes", "--reflect"])
        .complains(7, "no model is configured for the reflector");
    bench
        .run(&["run", &file, "--yes", "--max-cycles", "2"])
        .ends(2);
    assert_eq!(bench.read("a.txt"), "");
}

#[test]
fn the_remaining_work_can_be_planned_anew() {
    let revised = json!({"title": "Copy the note", "steps": [
        {"id": "read", "tool": "local.read_file", "args": {"path": "a.txt"}, "dependsOn": []},
        {"id": "copy", "tool": "local.write_file", "args": {"path": "c.txt", "content": "${read}"}, "dependsOn": ["read"]},
    ]});
    let (bench, provider, file) = bench([ScriptedReply::json(revised)], "");
    let said = bench.run(&[
        "run",
        &file,
        "--yes",
        "--replan",
        "--yes-adjustments",
        "--no-guards",
        "--json",
    ]);
    let done = said.ends(0).json();
    assert_eq!(
        (
            &done["status"],
            &done["replanned"],
            bench.read("c.txt").as_str()
        ),
        (&json!("completed"), &json!(true), "hello")
    );
    assert_eq!(provider.times_asked(), 1);
    // What was done is done.
    assert_eq!(done["steps"][0]["attempts"], json!(0));
}

#[test]
fn criteria_are_checked_with_evidence_and_what_nobody_can_tell_is_no_success() {
    let holds = |holds: Value| json!({"checks": [{"criterion": 1, "holds": holds, "evidence": "step c wrote it"}]});
    let (bench, _provider, _) = bench(
        [
            ScriptedReply::json(holds(json!(true))),
            ScriptedReply::json(holds(json!(false))),
            ScriptedReply::status(500, "{}"),
        ],
        "",
    );
    let file = bench.document(
        json!({"id": "q", "successCriteria": ["the copy is there"], "steps": [
            {"id": "c", "tool": "local.write_file", "args": {"path": "c.txt", "content": "x"}},
        ]}),
    );
    let said = bench.run(&["run", &file, "--yes", "--check"]).ends(0);
    assert!(
        said.out.contains("✓ the copy is there  (step c wrote it)"),
        "{said:#?}"
    );
    let said = bench.run(&["check", "q", "--json"]).ends(1).json();
    assert_eq!(
        (&said["success"], &said["criteria"][0]["holds"]),
        (&json!(false), &json!(false))
    );
    let said = bench.run(&["check", "q"]).ends(1);
    assert!(said.out.contains("? the copy is there"), "{said:#?}");
    let shown = bench.run(&["show", "q"]).ends(0);
    assert!(shown.out.contains("? the copy is there"), "{shown:#?}");
    let none = bench.document(
        json!({"id": "r", "steps": [{"id": "c", "tool": "demo.echo", "args": {"value": 1}}]}),
    );
    bench.run(&["run", &none, "--yes"]).ends(0);
    bench
        .run(&["check", "r"])
        .complains(2, "names no success criteria");
}
