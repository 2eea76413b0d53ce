//! Every plan in `examples/` does what its folder's README says.

use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::steps::step;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A workspace with the files of one folder.
fn stage(folder: &str) -> Bench {
    let bench = Bench::new();
    for entry in std::fs::read_dir(examples().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(
            &path,
            bench.path(path.file_name().unwrap().to_str().unwrap()),
        )
        .unwrap();
    }
    bench
}

fn run(bench: &Bench, plan: &str, more: &[&str], code: i32) -> Value {
    bench
        .run(&[&["run", plan, "--yes", "--json"], more].concat())
        .ends(code)
        .json()
}

#[test]
fn every_example_is_valid_and_every_folder_says_how_to_try_it() {
    for folder in [
        "basics",
        "execution",
        "parallel",
        "guards",
        "control-flow",
        "models",
    ] {
        let bench = stage(folder);
        let readme = bench.read("README.md");
        for entry in std::fs::read_dir(bench.root()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".json") {
                bench.run(&["validate", &name]).ends(0);
                assert!(
                    readme.contains(&name),
                    "{folder}/README.md does not mention {name}"
                );
            }
        }
    }
}

#[test]
fn basics() {
    let bench = stage("basics");
    run(&bench, "refactor.json", &[], 0);
    assert!(bench.read("handler.txt").contains("refactored"));
}

#[test]
fn execution() {
    let bench = stage("execution");
    let result = run(&bench, "report.json", &["--var", "author=\"Ada\""], 0);
    assert!(bench.read("report.txt").contains("Ada"), "{result:#}");
    let result = run(&bench, "flaky.json", &[], 0);
    assert_eq!(step(&result, "flaky")["attempts"], 3);
    let result = run(&bench, "failing.json", &[], 0);
    assert_eq!(step(&result, "after")["status"], "blocked");
}

#[test]
fn control_flow() {
    let bench = stage("control-flow");
    run(&bench, "release.json", &[], 4);
    bench
        .run(&["input", "release", "ask", "--set", "channel=stable"])
        .ends(0);
    let result = bench.run(&["resume", "release", "--json"]).ends(0).json();
    assert_eq!(step(&result, "notes")["value"][1], Value::Null);
    assert_eq!(bench.read("notes/cli.txt"), "cli: 5 changes (stable)\n");
    assert!(
        bench.path("notes/announcement.txt").exists() && !bench.path("notes/spikes.txt").exists()
    );
}

#[test]
fn parallel() {
    let bench = stage("parallel");
    let diamond = run(&bench, "diamond.json", &[], 0);
    let alone = run(&bench, "diamond.json", &["--max-concurrency", "1"], 0);
    assert!(diamond["durationMs"].as_u64() < alone["durationMs"].as_u64());
    run(&bench, "lanes.json", &[], 0);
}

#[test]
fn guards() {
    let bench = stage("guards");
    let result = run(&bench, "budget.json", &[], 1);
    let blocked = step(&result, "third")["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(blocked.starts_with("Guard blocked: "), "{blocked}");
    run(&bench, "budget.json", &["--no-guards"], 0);
    // It says to go on without what fails, and does not call that a success.
    let result = run(&bench, "per-tool.json", &[], 1);
    assert_eq!(result["status"], "completed_with_failures");
    for blocked in ["again", "three"] {
        assert_eq!(
            step(&result, blocked)["error"]["code"],
            "guard_blocked",
            "{result:#}"
        );
    }
    let waiting = run(&bench, "gate.json", &[], 4);
    assert_eq!(step(&waiting, "publish")["status"], "awaiting_approval");
}

#[test]
fn reuse() {
    let bench = stage("reuse");
    bench
        .run(&["template", "save", "greet.json", "--name", "greet"])
        .ends(0);
    bench
        .run(&[
            "template",
            "use",
            "greet",
            "--input",
            "name=Grace",
            "--id",
            "grace",
        ])
        .ends(0);
    run(&bench, "grace", &[], 0);
    run(&bench, "letters.json", &[], 0);
    assert_eq!(bench.read("letters.txt"), "Hello Ada\nDear Bob\n");
    bench.run(&["undo", "letters", "--yes"]).ends(0);
    assert_eq!(bench.read("letters.txt"), "");
}

#[test]
fn models() {
    let repaired = json!({ "assessment": "needs_adjustment", "reasoning": "the file is called notes.txt",
        "adjustments": [{ "type": "retry", "step": "read", "args": { "path": "notes.txt" } }] });
    let provider = Provider::scripted([
        ScriptedReply::text("A font slows the login page down."),
        ScriptedReply::json(
            json!({ "checks": [{ "criterion": 1, "holds": true, "evidence": "one sentence" }] }),
        ),
        ScriptedReply::calls([("read_file", json!({ "path": "notes.txt" }))]),
        ScriptedReply::text("notes.txt: four seconds"),
        ScriptedReply::json(repaired),
        ScriptedReply::json(
            json!({ "assessment": "complete", "reasoning": "it is there", "adjustments": [] }),
        ),
    ]);
    let bench = stage("models");
    bench.configure(&provider.config());
    run(&bench, "summary.json", &[], 0);
    assert_eq!(
        bench.read("summary.txt"),
        "A font slows the login page down.\n"
    );
    bench.run(&["check", "summary"]).ends(0);
    let result = run(&bench, "agent.json", &[], 0);
    assert_eq!(step(&result, "look")["value"], "notes.txt: four seconds");
    run(
        &bench,
        "repair.json",
        &["--reflect", "--yes-adjustments"],
        0,
    );
    assert_eq!(bench.read("copy.txt"), bench.read("notes.txt"));
}
