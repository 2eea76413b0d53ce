//! `create` and `regenerate`: the real program, and a provider that answers from a script.

use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// A workspace whose models are this provider.
fn bench(provider: &Provider) -> Bench {
    let bench = Bench::new();
    let prices = "[models.prices.\"scripted/model\"]\ninput = 1.0\noutput = 2.0\n";
    bench.configure(&format!("{}{prices}", provider.config()));
    bench.write("notes.txt", "remember the milk");
    bench
}

fn plan() -> Value {
    json!({ "title": "Read the notes", "steps": [
        { "id": "s1", "title": "Read", "tool": "local.read_file", "args": { "path": "notes.txt" }, "dependsOn": [] },
        { "id": "s2", "title": "Look around", "tool": "local.list_dir", "args": { "path": "." }, "dependsOn": ["s1"] },
    ], "successCriteria": ["the notes were read"] })
}

fn unknown_tool() -> Value {
    json!({ "title": "T", "steps": [{ "id": "s1", "tool": "local.raed_file", "args": { "path": "notes.txt" } }] })
}

#[test]
fn a_goal_becomes_a_plan_that_can_be_run() {
    let provider = Provider::scripted([
        ScriptedReply::json(unknown_tool()).using(1_000, 100, 0),
        ScriptedReply::fenced(&json!({ "plan": plan() })).using(2_000, 200, 0),
    ]);
    let bench = bench(&provider);
    let made = bench
        .run(&["create", "read the notes, then look around", "--json"])
        .ends(0);
    assert!(
        made.err.contains("round 1 gave no valid plan: E0120"),
        "{made:#?}"
    );
    let made = made.json();
    assert_eq!(
        (&made["status"], &made["version"]),
        (&json!("proposed"), &json!(1))
    );
    assert_eq!(made["plan"]["goal"], "read the notes, then look around");
    assert_eq!(made["plan"]["plannerModel"], "scripted/model");
    assert_eq!(made["planning"]["rounds"], 2);
    assert_eq!(
        (
            &made["planning"]["inputTokens"],
            &made["planning"]["outputTokens"]
        ),
        (&json!(3_000), &json!(300))
    );
    assert_eq!(made["planning"]["costUsd"], 0.0036);
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    let first = asked[0].body.to_string();
    assert!(
        first.contains("local.read_file") && first.contains("notes.txt"),
        "{first}"
    );
    assert!(asked[1].body.to_string().contains("E0120"));
    // It is a plan like any other.
    let id = made["id"].as_str().unwrap();
    let shown = bench.run(&["show", id]).ends(0);
    assert!(
        shown
            .out
            .contains("planned by scripted/model in 2 rounds: 3000 tokens in, 300 out, $0.003600"),
        "{shown:#?}"
    );
    assert_eq!(
        bench.run(&["show", id, "--json"]).json()["models"][0]["answers"],
        2
    );
    let stats = bench.run(&["stats", "--json"]).ends(0).json();
    assert_eq!(
        (&stats["models"][0]["model"], &stats["modelCostUsd"]),
        (&json!("scripted/model"), &json!(0.0036))
    );
    bench.run(&["run", id, "--yes"]).ends(0);
}

#[test]
fn without_a_plan_nothing_is_stored_and_the_reason_is_told() {
    let provider = Provider::scripted([
        ScriptedReply::text("I would rather not."),
        ScriptedReply::json(unknown_tool()).too_long(),
    ]);
    let bench = bench(&provider);
    let failed = bench.run(&["create", "read the notes", "--rounds", "1"]);
    let failed = failed.complains(
        7,
        "`scripted/model` gave no valid plan in 2 rounds: the answer was cut off",
    );
    assert!(
        failed.err.contains("tokens in") && failed.err.contains("--fallback"),
        "{failed:#?}"
    );
    assert_eq!(bench.run(&["list", "--json"]).json(), json!([]));
    let down = Provider::scripted([ScriptedReply::status(500, "{}")]);
    bench.configure(&down.config());
    bench
        .run(&["create", "read the notes"])
        .complains(7, "scripted/model");
}

#[test]
fn without_a_model_nothing_is_made_at_all() {
    let bench = Bench::new();
    let none = bench
        .run(&["create", "read the notes"])
        .complains(7, "no model is configured for the planner");
    assert!(none.err.contains("hint: set PLANWRIGHT_MODEL"), "{none:#?}");
    assert!(!bench.path(".plans").exists());
    bench
        .run(&["create", "  ", "--fallback"])
        .complains(2, "the goal is empty");
}

#[test]
fn a_fallback_is_a_draft_for_people() {
    let bench = Bench::new();
    let made = bench
        .run(&[
            "create",
            "--fallback",
            "read the file, then write the file",
            "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(
        (&made["status"], &made["planning"]["fallback"]),
        (&json!("draft"), &json!(true))
    );
    let id = made["id"].as_str().unwrap();
    let tools: Vec<&str> = made["plan"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["local.read_file", "local.write_file"]);
    assert!(
        bench
            .run(&["show", id])
            .ends(0)
            .out
            .contains("fallback: put together without a model")
    );
    bench
        .run(&["run", id, "--yes"])
        .complains(2, "the plan is not valid");
    let mut agent = bench.command(&["propose", id]);
    agent.env("PLANWRIGHT_AGENT", "eager");
    planwright_testing::workbench::said(agent.output().unwrap())
        .complains(3, "a person has to review");
}

#[test]
fn a_template_that_fits_is_what_a_fallback_begins_with() {
    let bench = Bench::new();
    let template = json!({ "id": "t", "title": "Summarise meeting notes",
        "inputs": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] },
        "steps": [{ "id": "read", "tool": "local.read_file", "args": { "path": "${path}" } }] });
    let file = bench.document(template);
    bench
        .run(&["template", "save", &file, "--name", "minutes"])
        .ends(0);
    let goal = "summarise the notes of the meeting path=notes.txt";
    let made = bench
        .run(&["create", "--fallback", goal, "--json"])
        .ends(0)
        .json();
    assert_eq!(made["plan"]["context"]["template"]["id"], "minutes");
    assert_eq!(made["plan"]["variables"], json!({ "path": "notes.txt" }));
}

#[test]
fn a_dry_run_prints_the_prompt_and_asks_nobody() {
    let provider = Provider::scripted([]);
    let bench = bench(&provider);
    bench.write(".env", "KEY=hunter2");
    bench.write("hints.md", "prefer short plans");
    bench.write(".plans/prompts/create.md", "Our way: {{context}}{{goal}}");
    bench.trust();
    let dry = [
        "create",
        "read the notes",
        "--dry-run",
        "--context",
        "hints.md",
        "--server",
        "local",
    ];
    let shown = bench.run(&dry).ends(0);
    assert!(
        shown.out.contains("--- system") && shown.out.contains("--- schema of the answer"),
        "{shown:#?}"
    );
    assert!(
        shown.out.contains("Our way") && shown.out.contains("prefer short plans"),
        "{shown:#?}"
    );
    assert!(
        !shown.out.contains("demo.echo") && !shown.out.contains("hunter2"),
        "{shown:#?}"
    );
    let json = bench
        .run(&["create", "read the notes", "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(json["messages"][1]["role"], "user");
    assert!(json["schema"]["properties"]["steps"].is_object());
    assert!(provider.asked().is_empty());
    bench.write(".plans/prompts/create.md", "{{gaol}}");
    bench.trust();
    bench
        .run(&["create", "x", "--dry-run"])
        .complains(2, "`{{gaol}}`");
}

#[test]
fn steps_are_written_again_and_the_rest_stays() {
    let again = json!({ "title": "T", "steps": [
        { "id": "s2", "title": "Search", "tool": "local.search_code", "args": { "query": "milk" }, "dependsOn": ["s1"] }] });
    let provider = Provider::scripted([ScriptedReply::json(plan()), ScriptedReply::json(again)]);
    let bench = bench(&provider);
    let id = bench
        .run(&["create", "read the notes", "--json"])
        .ends(0)
        .json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let before = bench.run(&["show", &id, "--json"]).json();
    bench
        .run(&["comment", &id, "--step", "s2", "look for milk instead"])
        .ends(0);
    let done = bench
        .run(&[
            "regenerate",
            &id,
            "--steps",
            "s2",
            "--feedback",
            "search",
            "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(
        (&done["version"], &done["changed"], &done["status"]),
        (&json!(2), &json!(true), &json!("proposed"))
    );
    let after = bench.run(&["show", &id, "--json"]).json();
    assert_eq!(after["steps"][0], before["steps"][0]);
    assert_eq!(after["steps"][1]["tool"], "local.search_code");
    let asked = provider.asked()[1].body.to_string();
    assert!(
        asked.contains("look for milk instead") && asked.contains("search"),
        "{asked}"
    );
    let versions = bench.run(&["versions", &id, "--json"]).json();
    assert_eq!(
        (&versions[1]["reason"], &versions[1]["planning"]["rounds"]),
        (&json!("search"), &json!(1))
    );
    bench
        .run(&["regenerate", &id, "--steps", "s9"])
        .complains(2, "the plan has no step `s9`");
}

#[test]
fn an_interrupted_planner_is_left_alone() {
    let provider = Provider::scripted([ScriptedReply::json(plan()).after(Duration::from_secs(60))]);
    let bench = bench(&provider);
    let running = bench.start(&["create", "read the notes"]);
    wait_until("the model to be asked", || provider.times_asked() == 1);
    running.signal(Signal::INT);
    let said = running.wait();
    assert_eq!(said.code, 130, "{said:#?}");
    assert_eq!(bench.run(&["list", "--json"]).json(), json!([]));
}
