//! The commands that are not part of a run.

use planwright_testing::steps::echo;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
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
    let store = &diagnosis["store"];
    assert_eq!(store["kind"], "sqlite", "{store}");
    assert_eq!(store["encrypted"], false, "{store}");
    assert!(
        store["version"].as_str().unwrap().starts_with("3."),
        "{store}"
    );
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

/// What a bash offers behind these words, asked with the script that is printed for it.
fn offered(bench: &Bench, words: &[&str]) -> String {
    let program = bench.command(&[]).get_program().to_owned();
    let folder = std::path::Path::new(&program).parent().unwrap().to_owned();
    let script = r#"
        source <(planwright completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_planwright planwright
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = bench.command(&[]);
    bash = with_program(&bash, "bash");
    bash.args(["--norc", "-c", script, "bash"])
        .args(words)
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let said = bash.output().unwrap();
    String::from_utf8(said.stdout).unwrap()
}

/// The same surroundings for another program.
fn with_program(command: &std::process::Command, program: &str) -> std::process::Command {
    let mut other = std::process::Command::new(program);
    other.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            other.env(name, value);
        }
    }
    other.current_dir(command.get_current_dir().unwrap());
    other
}

#[test]
fn shells_are_offered_the_names_of_the_workspace() {
    let bench = Bench::new();
    bench.write("planwright.toml", "[servers.odoo]\ncommand = \"odoo\"\n");
    let plan = bench.plan("tidy-notes", json!([echo("look-around", 1, &[])]));
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    let run = result["runId"].as_str().unwrap();
    for (words, name) in [
        (&["planwright", "show", "tid"][..], "tidy-notes"),
        (
            &["planwright", "approve", "tidy-notes", "--step", ""],
            "look-around",
        ),
        (&["planwright", "runs", "receipt", "ru"], run),
        (&["planwright", "server", "trust", ""], "odoo"),
        (&["planwright", "app"], "approve"),
    ] {
        let said = offered(&bench, words);
        assert!(said.lines().any(|line| line == name), "{words:?}: {said}");
    }
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
