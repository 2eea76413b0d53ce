//! Rows of `docs/seeds.md` that are settings, fields of plans, files and crates.

use super::rows::{Row, Show};
use super::shows::{plan, with};
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::steps::{call, echo, effect, sleep, step};
use planwright_testing::workbench::{Bench, said};
use serde_json::{Value, json};

pub(super) const SHOWS: &[(&str, Show)] = &[
    ("0.9", one_budget),
    ("0.16", the_library),
    ("0.17", plans_on_disk),
    ("1.12", not_critical),
    ("1.13", retries),
    ("2.11", stale_plans),
    ("2.15", guarded_tools),
    ("2.16", the_scope),
    ("2.17", the_session),
    ("3.3", cycles),
    ("3.9", optional),
    ("3.10", think),
    ("4.11", time_limits),
];

/// A setting as the row names it, `[table] key`, with a value.
fn setting(row: &Row, value: &str) -> String {
    let (table, key) = row.shown.split_once("] ").unwrap();
    format!("{table}]\n{key} = {value}\n")
}

/// A step with the field that the row names: `name: value`, or a name and the value given here.
fn with_field(row: &Row, mut step: Value, value: Value) -> Value {
    match row.shown.split_once(": ") {
        Some((name, text)) => step[name] = serde_json::from_str(text).unwrap(),
        None => step[row.shown.as_str()] = value,
    }
    step
}

fn one_budget(row: &Row) {
    let read = || ScriptedReply::calls([("local__read_file", json!({ "path": "note.txt" }))]);
    let provider = Provider::scripted([read(), read(), ScriptedReply::text("Enough.")]);
    let bench = Bench::new();
    bench.write("note.txt", "milk");
    bench.configure(&format!("{}{}", provider.config(), setting(row, "1")));
    bench.write("lines.txt", "read it twice\n");
    let mut chat = bench.command(&["chat", "--plan-tools"]);
    let lines = std::fs::File::open(bench.path("lines.txt")).unwrap();
    let said = said(chat.stdin(lines).output().unwrap()).ends(0);
    let told = provider.asked()[2].text();
    assert!(told.contains("the budget of 1 calls is used up"), "{told}");
    assert!(said.err.contains("1 call of 1"), "{}", said.err);
}

fn the_library(row: &Row) {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(&row.shown)
        .join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    assert!(text.contains(&format!("name = \"{}\"", row.shown)));
}

fn ended() -> Bench {
    let stage = with(plan(json!([echo("a", 1, &[])])));
    stage.bench.run(&["run", "p"]).ends(0);
    stage.bench
}

fn plans_on_disk(row: &Row) {
    let bench = ended();
    let folder = bench.path(&row.shown.replace("ID", "p"));
    for name in ["plan.json", "plan.md", "session.jsonl"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

fn the_session(row: &Row) {
    let bench = ended();
    let text = bench.read(&row.shown.replace("ID", "p"));
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries.len(), bench.log("p").len());
}

fn not_critical(row: &Row) {
    let failing = call("a", "demo.fail", json!({ "retryable": false }), &[]);
    let failing = with_field(row, failing, Value::Null);
    let stage = with(plan(json!([
        failing,
        echo("b", 1, &["a"]),
        echo("c", 2, &[])
    ])));
    let result = stage.bench.run(&["run", "p", "--json"]).ends(0).json();
    let states = ["a", "b", "c"].map(|id| step(&result, id)["status"].clone());
    assert_eq!(states, ["failed", "blocked", "completed"]);
}

fn retries(row: &Row) {
    let flaky = call("a", "demo.fail", json!({ "times": 2 }), &[]);
    let flaky = with_field(row, flaky, json!({ "max": 3, "backoff": 0.01 }));
    let stage = with(plan(json!([flaky])));
    let result = stage.bench.run(&["run", "p", "--json"]).ends(0).json();
    assert_eq!(step(&result, "a")["attempts"], 3, "{result:#}");
}

fn stale_plans(row: &Row) {
    let bench = Bench::new();
    bench.configure(&setting(row, "0"));
    bench.run(&["list"]).ends(0);
    bench.configure(&setting(row, "30"));
    bench.run(&["list"]).ends(0);
    bench.write("planwright.toml", &setting(row, "\"soon\""));
    let refused = bench.run(&["list"]).ends(2);
    assert!(
        refused.err.contains("stale_after_days") || refused.err.contains("line 2"),
        "{refused:?}"
    );
}

fn guarded_tools(row: &Row) {
    let bench = Bench::new();
    let file = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &file]).ends(0);
    bench.configure(&setting(row, "[\"demo.echo\"]"));
    let refused = bench.run(&["run", "p"]).ends(3);
    assert!(refused.err.contains("not approved"), "{refused:?}");
}

fn the_scope(row: &Row) {
    for (scope, words) in [("\"enforce\"", "scope"), ("\"observe\"", "buy milk")] {
        let read = || ScriptedReply::calls([("local.read_file", json!({ "path": "note.txt" }))]);
        let provider = Provider::scripted([read(), ScriptedReply::text("done")]);
        let bench = Bench::new();
        bench.write("note.txt", "buy milk");
        bench.configure(&format!("{}{}", provider.config(), setting(row, scope)));
        let file = bench.document(
            json!({ "id": "p", "toolsRequired": ["demo.echo"], "steps": [
            { "id": "a", "agent": { "instruction": "Look at it" } } ] }),
        );
        bench.run(&["run", &file, "--yes"]);
        let told = provider.asked()[1].body["messages"].to_string();
        let last = told.rsplit("\"role\":\"tool\"").next().unwrap().to_owned()
            + told.rsplit("tool_call_id").next().unwrap();
        assert!(last.contains(words), "{scope}: {told}");
    }
}

fn cycles(row: &Row) {
    let (table, key) = row.shown.split_once('.').unwrap();
    let adjust = json!({ "assessment": "needs_adjustment", "reasoning": "another path",
        "adjustments": [{ "type": "retry", "step": "read", "args": { "path": "gone.txt" } }] });
    let asked_for_ever = Provider::answering(move |_| ScriptedReply::json(adjust.clone()));
    let bench = Bench::new();
    bench.configure(&asked_for_ever.config());
    let mut plan = plan(json!([call(
        "read",
        "local.read_file",
        json!({ "path": "note.txt" }),
        &[]
    )]));
    plan[table] = json!({ "onFailure": "reflect" });
    plan[table][key] = json!(1);
    let file = bench.document(plan);
    bench
        .run(&["run", &file, "--yes", "--yes-adjustments"])
        .ends(1);
    assert!(
        asked_for_ever.asked().len() <= 2,
        "{}",
        asked_for_ever.asked().len()
    );
}

fn optional(row: &Row) {
    let missing = with_field(row, call("a", "gone.tool", json!({}), &[]), Value::Null);
    let bench = Bench::new();
    let file = bench.plan("p", json!([missing, echo("b", 1, &["a"])]));
    let result = bench.run(&["run", &file, "--json", "--yes"]).ends(0).json();
    assert_eq!(step(&result, "a")["status"], "skipped");
}

fn think(row: &Row) {
    let provider = Provider::scripted([ScriptedReply::text("four")]);
    let bench = Bench::new();
    bench.configure(&provider.config());
    let thinking = with_field(
        row,
        json!({ "id": "a" }),
        json!({ "prompt": "Two and two?" }),
    );
    let file = bench.plan("p", json!([thinking]));
    let result = bench.run(&["run", &file, "--json", "--yes"]).ends(0).json();
    assert_eq!(step(&result, "a")["value"], "four");
}

fn time_limits(row: &Row) {
    let slow = with_field(row, sleep("a", 60_000, &[]), json!(1));
    let stage = with(plan(json!([slow, effect("b", &["a"])])));
    let result = stage
        .bench
        .run(&["run", "p", "--json", "--yes"])
        .ends(1)
        .json();
    assert_eq!(step(&result, "a")["error"]["code"], "timeout");
}
