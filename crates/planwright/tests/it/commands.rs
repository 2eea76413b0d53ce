//! The commands that are not part of a run.

use planwright_testing::workbench::Bench;
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn a_new_plan_is_valid_runs_and_is_not_overwritten() {
    let bench = Bench::new();
    bench
        .run(&["new", "--title", "Mine", "-o", "plan.json"])
        .ends(0);
    assert!(bench.read("plan.json").contains("\"Mine\""));
    bench
        .run(&["new", "-o", "plan.json"])
        .complains(2, "is not overwritten");
    bench.run(&["validate", "plan.json"]).ends(0);
    bench.run(&["run", "plan.json", "--yes"]).ends(0);
    assert!(bench.read("files.json").contains("plan.json"));
    assert!(bench.run(&["new"]).ends(0).json()["steps"].is_array());
}

#[test]
fn tools_are_listed_with_what_is_turned_off() {
    let bench = Bench::new();
    let tools = bench.run(&["tools", "--json"]).ends(0).json();
    let find = |tools: &Value, name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .cloned()
            .unwrap()
    };
    let read = find(&tools, "read_file");
    assert_eq!(
        (read["server"].as_str(), read["readOnly"].as_bool()),
        (Some("local"), Some(true))
    );
    assert!(read["inputSchema"].is_object() && read["digest"].is_string());
    assert_eq!(find(&tools, "run_command")["enabled"], false);
    bench
        .run(&["tools", "run_command"])
        .complains(2, "local.run_command is turned off");
    bench
        .run(&["tools", "reed_file"])
        .complains(2, "unknown tool");
    bench.run(&["tools", "echo"]).ends(0);
    assert!(bench.run(&["tools"]).ends(0).out.contains("local.http_get"));
    bench.configure("[local]\nrun_command = true\n");
    let tools = bench.run(&["tools", "--json"]).ends(0).json();
    assert_eq!(find(&tools, "run_command")["enabled"], true);
}

#[test]
fn the_schema_is_a_json_schema_that_names_the_steps() {
    let schema = Bench::new().run(&["schema"]).ends(0).json();
    assert!(schema["properties"]["steps"].is_object());
}

#[test]
fn the_doctor_looks_at_everything() {
    let bench = Bench::new();
    bench.run(&["new", "-o", "plan.json"]).ends(0);
    bench.run(&["import", "plan.json"]).ends(0);
    let diagnosis = bench.run(&["doctor", "--json"]).ends(0).json();
    assert_eq!(diagnosis["ok"], true);
    let names: Vec<&str> = diagnosis["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    for name in [
        "workspace",
        "permissions",
        "free space",
        "config",
        "SQLite",
        "store",
        "runs",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    bench.write("planwright.toml", "nonsense = 1\n");
    let said = bench.run(&["doctor", "--json"]);
    assert_eq!(said.code, 2);
    assert_eq!(said.json()["ok"], false);
}

#[test]
fn completions_exist_for_every_shell() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            bench
                .run(&["completions", shell])
                .ends(0)
                .out
                .contains("planwright"),
            "{shell}"
        );
    }
    bench.run(&["completions", "tcsh"]).ends(2);
}

#[test]
fn the_demo_tells_the_whole_story_without_a_terminal() {
    let bench = Bench::new();
    let since = Instant::now();
    let said = bench.run(&["demo", "--dir", "stage"]).ends(0);
    assert!(since.elapsed() < Duration::from_secs(30));
    for words in [
        "is not approved",
        "SIGKILL",
        "interrupted, will be called again",
        "6 of 6 steps",
        "nothing is lost",
    ] {
        assert!(said.err.contains(words), "{words:?} is not in {said:#?}");
    }
    assert!(bench.read("stage/notes.txt").contains("all links work"));
    bench
        .run(&["demo", "--dir", "stage"])
        .complains(2, "is not empty");
    let temporary = bench
        .command(&["demo"])
        .env("TMPDIR", bench.root())
        .output()
        .unwrap();
    assert!(temporary.status.success());
    let left = std::fs::read_dir(bench.root()).unwrap().count();
    assert_eq!(left, 1, "only the stage that was named is kept");
}
