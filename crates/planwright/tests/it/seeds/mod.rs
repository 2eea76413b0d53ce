//! What the five documents that Planwright grew from promise, as they print it.

mod features;
mod requests;
mod rows;
mod shows;

pub(crate) use rows::{all_tests, is_run};

use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn step<'a>(result: &'a Value, id: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == id).unwrap()
}

/// A plan as pi-plan-mode writes it: servers as its scope, a bare model, and what the planner knew.
pub(super) const PI_PLAN: &str = r#"---
id: PLAN-a1b2c3d4
title: "Remind the client"
status: stalled
version: 1
created_at: 2026-02-11T12:00:00Z
planner_model: claude-sonnet-4-5
tools_required:
  - demo
executor_model: model
---
## Steps
1. Fetch the invoice (demo: echo)
2. Note that it was seen (demo: echo)

## Context

### Notes
Payment goes through bank account XYZ.

### Artifacts
- invoice-2024-0847.pdf

## Risks
- The invoice might be paid already
"#;

#[test]
fn a_folder_of_pi_plans_is_imported_and_its_plans_run_as_they_are_printed() {
    let call = || ScriptedReply::calls([("demo.echo", json!({"value": "seen"}))]);
    let provider = Provider::scripted([
        call(),
        ScriptedReply::text("fetched"),
        call(),
        ScriptedReply::text("noted"),
    ]);
    let bench = Bench::new();
    bench.configure(&provider.config());
    std::fs::create_dir_all(bench.path(".pi/plans/archive")).unwrap();
    bench.write(".pi/plans/PLAN-a1b2c3d4.md", PI_PLAN);
    bench.write(".pi/plans/archive/old.md", "not a plan");
    bench.write(
        ".pi/plans.json",
        r#"{"guardedTools": ["gmail_send"], "stale_after_days": 30, "executor_timeout_minutes": 30}"#,
    );
    let said = bench.run(&["import", ".pi/plans", "--json"]).ends(0);
    assert_eq!(said.json()["imported"][0]["id"], "PLAN-a1b2c3d4");
    for words in [
        "[policy] guarded_tools = [\"gmail_send\"]",
        "[plans] executor_timeout_minutes = 30",
    ] {
        assert!(said.err.contains(words), "{words:?} is not in {}", said.err);
    }
    let shown = bench.run(&["run", "PLAN-a1b2c3d4", "--dry-run"]).ends(0);
    for words in ["bank account XYZ", "demo.echo", "demo.sleep"] {
        assert!(
            shown.out.contains(words),
            "{words:?} is not in {}",
            shown.out
        );
    }
    let said = bench
        .run(&["run", "PLAN-a1b2c3d4", "--yes", "--json"])
        .ends(0);
    assert_eq!(said.json()["status"], "completed");
    let told: Vec<String> = provider.asked().iter().map(|asked| asked.text()).collect();
    assert_eq!(told.len(), 4, "one step after the other");
    for words in ["bank account XYZ", "invoice-2024-0847.pdf"] {
        assert!(told[0].contains(words), "{words:?} is not in {}", told[0]);
    }
}

#[test]
fn the_settings_of_pi_are_settings_here() {
    let bench = Bench::new();
    bench.write(
        "planwright.toml",
        "[policy]\nguardedTools = [\"gmail_send\"]\n[plans]\nstale_after_days = 30\nexecutor_timeout_minutes = 30\n",
    );
    bench.run(&["policy", "check"]).ends(0);
    bench.run(&["list"]).ends(0);
}

#[test]
fn instructions_of_plan_propose_are_carried_out_in_the_order_they_are_written() {
    let bench = Bench::new();
    let plan = json!({"title": "Remind", "steps": [
        {"description": "Fetch the invoice", "tool": "demo", "operation": "read", "target": "2024-0847"},
        {"description": "Send the reminder", "tool": "demo", "operation": "send"},
        {"description": "Both at once", "tool": "demo", "operation": "send", "dependsOn": ["1"]},
    ], "context": "Payment goes through bank account XYZ."});
    bench.write("propose.json", &plan.to_string());
    bench.run(&["import", "propose.json"]).ends(0);
    let shown = bench.run(&["show", "remind", "--json"]).ends(0).json();
    assert_eq!(step(&shown, "2")["dependsOn"], json!(["1"]));
    assert_eq!(step(&shown, "3")["dependsOn"], json!(["1"]));
    assert_eq!(
        shown["context"]["notes"],
        "Payment goes through bank account XYZ."
    );
}

#[test]
fn what_failed_is_resumed_and_what_was_done_is_kept() {
    let bench = Bench::new();
    bench.document(json!({"id": "p", "steps": [
        {"id": "a", "tool": "local.append_file", "args": {"path": "done.txt", "content": "a\n"}},
        {"id": "left-out", "tool": "demo.echo", "args": {"value": 1}, "when": "false", "dependsOn": ["a"]},
        {"id": "b", "tool": "local.append_file", "args": {"path": "done.txt", "content": "b\n"},
         "dependsOn": ["left-out"]},
        {"id": "c", "tool": "local.read_file", "args": {"path": "missing.txt"}, "dependsOn": ["b"]},
        {"id": "d", "tool": "demo.echo", "args": {"value": "${c}"}},
    ]}));
    let file = bench.path("p.json").display().to_string();
    let said = bench.run(&["run", &file, "--yes"]).ends(1);
    assert!(
        said.err.contains("planwright resume p"),
        "the next command is not in {}",
        said.err
    );
    bench.write("missing.txt", "there");
    let result = bench
        .run(&["resume", "p", "--yes", "--json"])
        .ends(0)
        .json();
    assert_eq!(result["status"], "completed");
    assert_eq!(step(&result, "d")["value"], "there");
    assert_eq!(bench.read("done.txt"), "a\nb\n", "nothing is done twice");
    bench
        .run(&["resume", "p"])
        .complains(3, "has already ended (completed)");
}

#[test]
fn a_plan_is_written_in_yaml_and_its_title_is_its_id() {
    let bench = Bench::new();
    let plan = |word: &str| {
        format!(
            "# with comments\ntitle: Say Hello\nvariables: {{who: {word}}}\nsteps:\n  - id: hello\n    tool: demo.echo\n    \
             args:\n      value: |\n        Hello ${{who}},\n        and welcome.\n"
        )
    };
    bench.write("plan.yaml", &plan("Ada"));
    let result = bench.run(&["run", "plan.yaml", "--json"]).ends(0).json();
    assert_eq!(result["planId"], "say-hello");
    assert_eq!(
        step(&result, "hello")["value"],
        "Hello Ada,\nand welcome.\n"
    );
    bench.write("plan.yaml", &plan("Grace"));
    let result = bench.run(&["run", "plan.yaml", "--json"]).ends(0).json();
    assert_eq!(
        (&result["planId"], &result["version"]),
        (&json!("say-hello"), &json!(2)),
        "an edited file is the next version"
    );
    bench.write("bad.yml", "title: [\n");
    bench
        .run(&["validate", "bad.yml"])
        .complains(2, "cannot be read");
    bench.write("twice.yaml", "title: a\ntitle: b\nsteps: []\n");
    bench.run(&["validate", "twice.yaml"]).ends(2);
}

#[test]
fn the_plan_tools_go_by_their_own_names_and_take_plan_id() {
    let provider = Provider::scripted([
        ScriptedReply::calls([("plan_execute", json!({"plan_id": "p"}))]),
        ScriptedReply::text("done"),
    ]);
    let bench = Bench::new();
    bench.configure(&provider.config());
    let file = bench.plan(
        "p",
        json!([{"id": "a", "tool": "demo.echo", "args": {"value": "made it"}}]),
    );
    bench.run(&["import", &file]).ends(0);
    let mut chat = bench.command(&["chat", "--plan-tools"]);
    bench.write("message.txt", "run p\n");
    let message = std::fs::File::open(bench.path("message.txt")).unwrap();
    let said = planwright_testing::workbench::said(chat.stdin(message).output().unwrap());
    let told: Vec<String> = provider.asked().iter().map(|asked| asked.text()).collect();
    assert!(
        told[0].contains("\"plan_create_and_execute\""),
        "{}",
        told[0]
    );
    assert!(!told[0].contains("planwright__plan_create"), "{}", told[0]);
    assert!(told[1].contains("made it"), "{} {said:?}", told[1]);
}
