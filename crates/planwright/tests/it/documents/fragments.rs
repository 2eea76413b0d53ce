//! Settings and plans in the documents are such as the program takes.

use super::block::{Block, Mark, all_blocks};
use crate::service::Served;
use planwright_testing::steps::call;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What may be wrong with a step or a plan that is shown without what is around it: its tool belongs
/// to a server that is not here, its references to steps that are not shown, a plan it runs is
/// elsewhere. Models are not configured here.
const OF_THE_SURROUNDINGS: [&str; 3] = ["E0120", "E0123", "E0140"];

fn of_language(language: &str) -> impl Iterator<Item = Block> {
    let excused = |block: &Block| matches!(block.mark, Mark::ByTest(_) | Mark::NotRun(_));
    all_blocks()
        .into_iter()
        .filter(move |block| block.language == language && !excused(block))
}

#[test]
fn settings_in_the_documents_are_accepted() {
    let mut wrong = String::new();
    let mut count = 0;
    for block in of_language("toml") {
        count += 1;
        let bench = Bench::new();
        if block.text.contains("[[always]]") {
            bench.write_own("always.toml", &block.text);
            let listed = bench.run(&["policy", "list", "--json"]);
            if listed.code != 0 || !listed.out.contains("always-1") {
                writeln!(wrong, "{}: {listed:#?}", block.place()).unwrap();
            }
            continue;
        }
        // What a person's own file says, that of a folder may not always say.
        if block.text.contains("~/.config") {
            bench.write_own("planwright.toml", &block.text);
        } else {
            bench.write("planwright.toml", &block.text);
            bench.run(&["trust", "--yes"]);
        }
        let read = bench.run(&["policy", "check"]);
        let listed = bench.run(&["list"]);
        for said in [read, listed] {
            // The passphrase that the configuration names is not there.
            if said.code != 0 && !said.err.contains("passphrase") {
                writeln!(wrong, "{}: {said:#?}", block.place()).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 20, "{count} blocks of settings were found");
}

/// The findings about a plan, without what is only missing around it.
fn findings(bench: &Bench, plan: &Value, alone: bool) -> Vec<String> {
    let file = bench.document(plan.clone());
    let said = bench.run(&["validate", &file, "--json"]).json();
    let found = [&said["findings"], &said["error"]["findings"]];
    let found = found.iter().filter_map(|list| list.as_array()).flatten();
    found
        .filter(|finding| {
            let code = finding["code"].as_str().unwrap();
            let own = finding["message"]
                .as_str()
                .is_some_and(|message| message.contains("`local.") || message.contains("`demo."));
            let excused = alone && OF_THE_SURROUNDINGS.contains(&code) && !own;
            code.starts_with('E') && !excused
        })
        .map(Value::to_string)
        .collect()
}

/// Keeps a plan for those that run it. One that is not valid by itself is looked at later.
fn import_whole(bench: &Bench, text: &str) {
    let plan: Value = serde_json::from_str(text).unwrap_or_default();
    if plan["id"].is_string() && plan["steps"].is_array() {
        let file = bench.document(plan);
        bench.run(&["import", &file]);
    }
}

#[test]
fn plans_and_steps_in_the_documents_are_valid() {
    let mut wrong = String::new();
    let mut count = 0;
    let mut last = (String::new(), Bench::new());
    let all: Vec<Block> = of_language("json").collect();
    for block in &all {
        let place = block.place();
        let Ok(mut plan) = serde_json::from_str::<Value>(&block.text) else {
            writeln!(wrong, "{place}: it is no JSON").unwrap();
            continue;
        };
        if last.0 != block.document {
            // Plans of one document may run each other.
            last = (block.document.clone(), Bench::new());
            last.1
                .configure("[local]\nrun_command = true\n[local.http_get]\nenabled = true\n");
            for other in all.iter().filter(|one| one.document == block.document) {
                import_whole(&last.1, &other.text);
            }
        }
        let bench = &last.1;
        if plan.get("mcpServers").is_some() {
            bench.write(".mcp.json", &block.text);
            let listed = bench.run(&["servers", "list", "--json"]).ends(0).json();
            // Planwright is a server of others, and not its own.
            if !listed[0]["reason"]
                .to_string()
                .contains("Planwright itself")
            {
                writeln!(wrong, "{place}: {listed:#}").unwrap();
            }
            std::fs::remove_file(bench.path(".mcp.json")).unwrap();
            continue;
        }
        if plan.get("id").is_none() {
            writeln!(
                wrong,
                "{place}: neither a plan nor a step, and no test is named"
            )
            .unwrap();
            continue;
        }
        count += 1;
        let alone = plan.get("steps").is_none();
        if alone {
            plan = json!({ "id": "alone", "steps": [plan] });
        }
        for finding in findings(bench, &plan, alone) {
            writeln!(wrong, "{place}: {finding}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 14, "{count} plans and steps were found");
}

#[test]
fn the_plan_file_that_is_shown_can_be_read() {
    for block in of_language("markdown") {
        let bench = Bench::new();
        bench.write("plan.md", &block.text.replace("\n…\n", "\n"));
        let said = bench.run(&["validate", "plan.md", "--json"]).json();
        let found = said["findings"].as_array().cloned().unwrap_or_default();
        let codes: Vec<&str> = found
            .iter()
            .filter_map(|one| one["code"].as_str())
            .collect();
        assert!(
            codes.iter().all(|code| OF_THE_SURROUNDINGS.contains(code)) && !codes.is_empty(),
            "{}: {said:#}",
            block.place()
        );
    }
}

/// The JSON block of a document that has these words.
fn shown(document: &str, words: &str) -> Value {
    let blocks = all_blocks();
    let block = blocks.iter().find(|block| {
        block.document == document && block.language == "json" && block.text.contains(words)
    });
    let block = block.unwrap_or_else(|| panic!("no {words} in {document}"));
    serde_json::from_str(&block.text).unwrap()
}

/// The names of all fields, with the way to them.
fn fields(value: &Value, way: &str, into: &mut Vec<String>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        let way = format!("{way}/{name}");
        fields(inner, &way, into);
        into.push(way);
    }
}

/// What a document shows has the fields that are really there.
#[track_caller]
pub(crate) fn assert_shown(document: &str, words: &str, real: &Value) {
    let named = |value: &Value| {
        let mut found = Vec::new();
        fields(value, "", &mut found);
        found.sort();
        found
    };
    assert_eq!(
        named(&shown(document, words)),
        named(real),
        "{document}: {real:#}"
    );
}

#[test]
fn a_failure_looks_as_it_is_shown() {
    let bench = Bench::new();
    let plan = r#"{"id": "p", "steps": [{"id": "a", "tool": "demo.echo", "dependsOn": ["b"]}]}"#;
    bench.write("plan.json", plan);
    let said = bench.run(&["import", "plan.json", "--json"]).ends(2).json();
    assert_shown("docs/terminal.md", "\"error\"", &said);
    let shown = shown("docs/terminal.md", "\"error\"");
    for key in ["code", "kind", "message"] {
        assert_eq!(shown["error"][key], said["error"][key], "{said:#}");
    }
}

#[test]
fn an_entry_looks_as_it_is_shown() {
    let bench = Bench::new();
    bench.write("notes.txt", "milk");
    let read = call("2", "local.read_file", json!({ "path": "notes.txt" }), &[]);
    let file = bench.plan("p", json!([read]));
    bench.run(&["run", &file]).ends(0);
    let log = bench.log("p");
    let real = log.iter().find(|entry| entry["kind"] == "attempt_started");
    let real = real.unwrap();
    let shown = shown("docs/journal.md", "attempt_started");
    assert_eq!(shown["cause"], real["cause"]);
    let mut event = shown["event"]["attempt_started"].clone();
    event["call"] = real["call"].clone();
    for (name, value) in event.as_object().unwrap() {
        assert_eq!(*value, real[name], "{name} of {real:#}");
    }
}

#[test]
fn a_line_of_the_log_looks_as_it_is_shown() {
    let bench = Bench::new();
    let words = [
        "serve",
        "--listen",
        ":0",
        "--json",
        "--log-format",
        "json",
        "--log-level",
        "info",
    ];
    let served = Served::start(bench.command(&words));
    served.get("/plan/none", &[]);
    served.wait_for_log("\"answered\"");
    let logs = served.logs();
    let line = logs
        .lines()
        .find(|line| line.contains("\"answered\""))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_shown("docs/observability.md", "answered", &line);
}
