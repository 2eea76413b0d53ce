//! Coding agents as executors at the command line: how they are configured and trusted, and what
//! becomes of a program that fails. `tests/real` has stand-ins that work over MCP.

use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const KINDS: [&str; 4] = ["claude", "codex", "gemini", "goose"];

/// A program of this name on the path of the user.
fn install(bench: &Bench, name: &str, script: &str) {
    let program = bench.home().join("bin").join(name);
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn command(bench: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    let path = format!("{}:/usr/bin:/bin", bench.home().join("bin").display());
    command.env("PATH", path);
    command
}

fn run(bench: &Bench, args: &[&str]) -> Said {
    said(command(bench, args).output().unwrap())
}

fn plan(bench: &Bench, executor: &str, max_calls: u32) -> String {
    bench.document(json!({"id": "p", "goal": "see", "toolsRequired": ["demo.echo"], "steps": [
        {"id": "work", "agent": {"instruction": "look", "executor": executor, "maxCalls": max_calls}},
    ]}))
}

/// The error of the step.
fn failure(bench: &Bench, file: &str) -> Value {
    let said = run(bench, &["run", file, "--yes", "--json"]);
    let result = said.json();
    assert_eq!(result["steps"][0]["status"], "failed", "{said:#?}");
    result["steps"][0]["error"].clone()
}

/// What a program prints that did nothing and says so.
const CLAUDE_SAYS: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"done",
    "usage":{"input_tokens":3,"output_tokens":1}}'"#;

#[test]
fn a_program_that_fails_or_prints_nonsense_or_nothing_fails_the_step() {
    for kind in KINDS {
        let cases = [
            (
                "cat > /dev/null; echo no credit >&2; exit 3",
                "exited with code 3",
            ),
            ("cat > /dev/null; echo hello there", "it printed"),
            ("cat > /dev/null", "it printed nothing"),
            ("exit 0", "it printed nothing"),
        ];
        for (script, words) in cases {
            let bench = Bench::new();
            bench.write_own("planwright.toml", &format!("[executors.{kind}]\n"));
            install(&bench, kind, script);
            let file = plan(&bench, kind, 5);
            let error = failure(&bench, &file);
            assert_eq!(error["code"], "executor_failed", "{kind} {script}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(words), "{kind} {script}: {message}");
            assert!(message.contains(&format!("`{kind}`")), "{message}");
        }
    }
}

#[test]
fn an_agent_that_called_nothing_did_nothing() {
    let bench = Bench::new();
    bench.write_own("planwright.toml", "[executors.helper]\nkind = \"claude\"\n");
    install(&bench, "claude", &format!("cat > /dev/null; {CLAUDE_SAYS}"));
    let file = plan(&bench, "helper", 5);
    let error = failure(&bench, &file);
    assert_eq!(error["code"], "nothing_done", "{error}");
    // One that may call nothing is asked for its word only.
    let file = plan(&bench, "helper", 0);
    let result = run(&bench, &["run", &file, "--yes", "--json"])
        .ends(0)
        .json();
    assert_eq!(result["steps"][0]["value"], "done");
    let log = bench.log("p");
    let used = log.iter().find(|entry| entry["kind"] == "model_used");
    let used = &used.unwrap_or_else(|| panic!("{log:#?}"))["used"];
    assert_eq!(used["model"], "helper");
    assert_eq!(used["usage"], json!({"input": 3, "output": 1}));
}

#[test]
fn a_program_that_is_not_installed_is_named_by_the_doctor_and_by_the_step() {
    let bench = Bench::new();
    bench.write_own(
        "planwright.toml",
        "[executors.goose]\n[executors.mine]\ncommand = [\"x\"]\n",
    );
    let words = "the executor `goose` of your own file cannot start: there is no program `goose`";
    let said = run(&bench, &["doctor"]);
    assert!(
        said.out.contains(words) || said.err.contains(words),
        "{said:#?}"
    );
    let file = plan(&bench, "goose", 5);
    let error = failure(&bench, &file);
    assert_eq!(error["code"], "executor_not_started", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("there is no program `goose`: install it"),
        "{message}"
    );
    install(&bench, "goose", "exit 0");
    let said = run(&bench, &["doctor"]);
    assert!(
        !said.out.contains("no program") && !said.err.contains("no program"),
        "{said:#?}"
    );
}

#[test]
fn an_agent_that_a_project_brings_needs_trust_in_what_it_may_do() {
    let bench = Bench::new();
    install(
        &bench,
        "claude",
        &format!("touch \"$HOME/ran\"; cat > /dev/null; {CLAUDE_SAYS}"),
    );
    let file = plan(&bench, "claude", 0);
    // On the path alone it is no executor.
    run(&bench, &["run", &file, "--yes"]).complains(3, "needs the executor `claude`");
    bench.write("planwright.toml", "[executors.claude]\n");
    run(&bench, &["run", &file, "--yes"]).complains(3, "needs the executor `claude`");
    let shown = run(&bench, &["executors", "trust", "claude", "--yes"]).ends(0);
    assert!(
        shown.err.contains("claude, without tools of its own"),
        "{shown:#?}"
    );
    let listed = run(&bench, &["executors", "--json"]).ends(0).json();
    assert_eq!(listed[0]["command"], json!(["claude"]));
    assert_eq!(listed[0]["kind"], "claude");
    assert_eq!(listed[0]["trusted"], true);
    assert!(!bench.home().join("ran").exists());
    run(&bench, &["run", "p", "--yes"]).ends(0);
    assert!(bench.home().join("ran").exists());
    // Its own tools are another thing to trust, and so is another model.
    for more in ["own_tools = true", "model = \"other\""] {
        bench.write("planwright.toml", &format!("[executors.claude]\n{more}\n"));
        let listed = run(&bench, &["executors", "--json"]).ends(0).json();
        assert_eq!(listed[0]["trusted"], false, "{more}: {listed:#}");
    }
}

#[test]
fn what_makes_no_sense_for_an_agent_is_said() {
    let cases = [
        (
            "[executors.x]\nkind = \"cursor\"\n",
            "is no coding agent known here",
        ),
        (
            "[executors.x]\nmodel = \"m\"\ncommand = [\"y\"]\n",
            "model of [executors.x] is for coding agents",
        ),
        (
            "[executors.x]\nown_tools = true\ncommand = [\"y\"]\n",
            "own_tools of [executors.x] is for coding agents",
        ),
        (
            "[executors.claude]\ncwd = \".\"\n",
            "cwd of [executors.claude] has no use",
        ),
        ("[executors.x]\n", "the executor `x` has no command"),
        ("[executors.claude]\nown_tool = true\n", "own_tool"),
    ];
    for (text, words) in cases {
        let bench = Bench::new();
        bench.write_own("planwright.toml", text);
        let said = run(&bench, &["executors"]);
        assert_ne!(said.code, 0, "{text}: {said:#?}");
        assert!(said.err.contains(words), "{text}: {said:#?}");
    }
}

#[test]
fn an_agent_sees_its_own_folder_and_the_variables_that_are_named() {
    let bench = Bench::new();
    bench.write_own("planwright.toml", "[executors.claude]\nenv = [\"SEEN\"]\n");
    install(
        &bench,
        "claude",
        &format!(
            "pwd > \"$HOME/place\"; ls -A > \"$HOME/files\"; cat mcp.json > \"$HOME/config\"; env > \"$HOME/env\"; cat > /dev/null; {CLAUDE_SAYS}"
        ),
    );
    let file = plan(&bench, "claude", 0);
    let mut command = command(&bench, &["run", &file, "--yes"]);
    command.env("SEEN", "yes").env("SECRET", "no");
    said(command.output().unwrap()).ends(0);
    let read = |name: &str| std::fs::read_to_string(bench.home().join(name)).unwrap();
    let attempts = bench.home().join(".local/state/planwright/attempts");
    let place = read("place");
    let place = std::path::Path::new(place.trim());
    assert_eq!(place.parent().unwrap(), attempts.canonicalize().unwrap());
    assert_eq!(read("files"), ".git\nmcp.json\n");
    let env = read("env");
    assert!(
        env.contains("SEEN=yes") && !env.contains("SECRET="),
        "{env}"
    );
    let token = env
        .lines()
        .find_map(|line| line.strip_prefix("PLANWRIGHT_STEP_TOKEN="));
    assert!(
        !read("config").contains(token.unwrap()),
        "the token is in no file"
    );
    let config: Value = serde_json::from_str(&read("config")).unwrap();
    let server = &config["mcpServers"]["planwright"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_planwright"));
    assert_eq!(server["args"], json!(["mcp", "--step"]));
    assert!(!place.exists(), "it goes with the attempt");
}

#[test]
fn the_server_of_a_step_says_where_it_works() {
    let bench = Bench::new();
    bench
        .run(&["mcp", "--step"])
        .complains(2, "PLANWRIGHT_GATEWAY and PLANWRIGHT_STEP_TOKEN");
    bench
        .run(&["mcp", "--step", "--gateway"])
        .complains(2, "cannot be used with");
    let help = bench.run(&["mcp", "--help"]).ends(0);
    assert!(help.out.contains("--step"), "{help:#?}");
}
