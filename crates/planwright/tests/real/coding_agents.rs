//! Coding agents as executors: a stand-in for each program takes exactly its command line and its
//! configuration, and works over MCP with the MCP project's own client, in both eras.

use planwright_testing::peers::installed;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ERAS: [&str; 2] = ["legacy", "2026-07-28"];

/// A workspace whose user has this coding agent, under its own name, on the path.
struct Desk {
    bench: Bench,
    kind: &'static str,
}

impl Desk {
    fn new(kind: &'static str) -> Self {
        let bench = Bench::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/coding_agent.py");
        let python = installed("py/bin/python");
        let program = bench.home().join("bin").join(kind);
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        let line = format!("#!/bin/sh\nexec {python:?} {script:?} {kind} \"$@\"\n");
        std::fs::write(&program, line).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // The name says what it is.
        bench.write_own(
            "planwright.toml",
            &format!("[executors.{kind}]\nenv = [\"STANDIN_ORDER\"]\ntimeout_seconds = 300\n"),
        );
        Self { bench, kind }
    }

    /// A plan with one step for the agent, who may append to files, and echo.
    fn plan(&self) -> String {
        self.bench.document(json!({
            "id": "p", "goal": "see", "toolsRequired": ["demo.echo", "local.append_file"],
            "steps": [{"id": "work", "agent": {"instruction": "append once", "executor": self.kind}}],
        }))
    }

    fn command(&self, args: &[&str], era: &str, calls: &Value) -> Command {
        let order = json!({"era": era, "calls": calls, "tell": self.bench.path("seen.json")});
        let mut command = self.bench.command(args);
        let path = format!("{}:/usr/bin:/bin", self.bench.home().join("bin").display());
        command
            .env("PATH", path)
            .env("STANDIN_ORDER", order.to_string());
        command
    }

    fn seen(&self) -> Value {
        let text = self.bench.read("seen.json");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    fn turns(&self) -> Vec<Value> {
        let log = self.bench.log("p").into_iter();
        log.filter(|entry| entry["kind"] == "agent_turn").collect()
    }

    /// What the journal says about each call that was wanted.
    fn wanted(&self) -> Vec<Value> {
        let turns = self.turns().into_iter();
        let calls = turns.filter_map(|turn| turn["calls"].as_array().cloned());
        calls.flatten().collect()
    }
}

/// In scope, out of it, a tool of the plans, another spelling of something out of scope.
fn some_calls() -> Value {
    let file = |name: &str| json!({"path": name, "content": "once\n"});
    json!([
        ["local__append_file", file("effects.txt")],
        ["demo__echo", {"value": "seven"}],
        ["local__write_file", file("other.txt")],
        ["local.write_file", file("other.txt")],
        ["mcp__local__write_file", file("other.txt")],
        ["plan_propose", {"plan": {"id": "q", "steps": []}}],
        ["plan_execute", {"id": "p"}],
        ["", {}],
    ])
}

/// Lets the agent work in each of these eras, and looks at what it saw, did and left.
fn work_with(kind: &'static str, eras: &[&str]) {
    for era in eras {
        let desk = Desk::new(kind);
        let file = desk.plan();
        let run = ["run", &file, "--yes", "--late", "work=any", "--json"];
        let output = desk.command(&run, era, &some_calls()).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{kind} {era}: {out}{err}");
        let result: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(result["steps"][0]["value"], "did the work", "{kind} {era}");
        check_what_was_seen(&desk, era);
        check_what_was_journaled(&desk, era);
        check_that_it_is_over(&desk, era);
    }
}

#[test]
fn claude_has_the_tools_of_its_step_and_nothing_else() {
    work_with("claude", &ERAS);
}

#[test]
fn codex_has_the_tools_of_its_step_and_nothing_else() {
    work_with("codex", &ERAS[..1]);
}

#[test]
fn gemini_has_the_tools_of_its_step_and_nothing_else() {
    work_with("gemini", &ERAS[1..]);
}

#[test]
fn goose_has_the_tools_of_its_step_and_nothing_else() {
    work_with("goose", &ERAS[..1]);
}

fn check_what_was_seen(desk: &Desk, era: &str) {
    let kind = desk.kind;
    let seen = desk.seen();
    let tools = seen["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["demo__echo", "local__append_file"], "{kind} {era}");
    let listed = desk.bench.run(&["tools", "--json"]).ends(0).json();
    let own = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "append_file");
    let own = own.unwrap_or_else(|| panic!("{listed:#}"));
    assert_eq!(tools[1]["inputSchema"], own["inputSchema"], "{kind} {era}");
    for (hint, value) in own["annotations"].as_object().unwrap() {
        assert_eq!(
            tools[1]["annotations"][hint], *value,
            "{kind} {era}: {hint}"
        );
    }

    let results = seen["results"].as_array().unwrap();
    assert_eq!(
        results[0]["isError"], false,
        "{kind} {era}: {:#}",
        results[0]
    );
    assert!(results[1].to_string().contains("seven"), "{:#}", results[1]);
    for refused in &results[2..] {
        let is_refused = refused["isError"] == true || refused.get("raised").is_some();
        assert!(is_refused, "{kind} {era}: {refused:#}");
    }
    let scope = "not available in plan scope. Only [demo.echo, local.append_file] are available.";
    assert!(results[2].to_string().contains(scope), "{:#}", results[2]);
    for nothing in ["resources", "prompts"] {
        let list = &seen[nothing];
        let none = list.get("raised").is_some() || list[nothing] == json!([]);
        assert!(none, "{kind} {era}: {list:#}");
    }
    let wrong = seen["wrong_token"]["raised"].as_str().unwrap();
    assert!(
        wrong.contains("the token is not the one of this step"),
        "{wrong}"
    );
    let elsewhere = seen["other_place"]["raised"].as_str().unwrap();
    assert!(
        elsewhere.contains("is no address of a gateway"),
        "{elsewhere}"
    );
    assert_eq!(seen["statuses"], json!([200, 401, 421]), "{kind} {era}");
    let prompt = seen["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("append once\n"), "{prompt}");
    assert!(prompt.contains(r#""goal":"see""#), "{prompt}");
    // Nothing of the workspace counts for the agent, and its folder goes with the attempt.
    let place = Path::new(seen["cwd"].as_str().unwrap());
    assert!(
        !place.starts_with(desk.bench.root().canonicalize().unwrap()),
        "{place:?}"
    );
    assert!(!place.exists(), "{place:?}");
}

fn check_what_was_journaled(desk: &Desk, era: &str) {
    let kind = desk.kind;
    assert_eq!(
        desk.bench.read("effects.txt"),
        "once\n",
        "{kind} {era}: called once"
    );
    assert!(!desk.bench.path("other.txt").exists(), "{kind} {era}");
    let wanted = desk.wanted();
    assert_eq!(
        wanted.len(),
        8,
        "{kind} {era}: every call is in the journal: {wanted:#?}"
    );
    for (call, tool) in wanted.iter().zip(["local.append_file", "demo.echo"]) {
        assert_eq!(call["tool"], tool);
        let run = call["run"].as_str().unwrap();
        let log = desk.bench.log(run);
        assert!(
            log.iter().any(|entry| entry["kind"] == "attempt_succeeded"),
            "{log:#?}"
        );
    }
    for call in &wanted[2..] {
        assert!(
            call["refused"].is_object() && call.get("run").is_none(),
            "{call:#}"
        );
    }
    let used: Vec<Value> = desk.bench.log("p");
    let used = used.iter().find(|entry| entry["kind"] == "model_used");
    let used = used.unwrap_or_else(|| panic!("{kind} {era}: no tokens were noted"));
    assert!(used.to_string().contains(r#""input":30"#), "{used:#}");
}

/// A second connection after the end of the attempt gets nothing.
fn check_that_it_is_over(desk: &Desk, era: &str) {
    let seen = desk.seen();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/gateway_client.py");
    let bridge = desk.bench.command(&["mcp", "--step"]);
    let order = json!({"command": bridge.get_program().to_str().unwrap(), "args": ["mcp", "--step"], "era": era, "answer": null, "calls": []});
    let mut late = Command::new(installed("py/bin/python"));
    late.arg(script).arg(order.to_string()).env_clear();
    late.env("PLANWRIGHT_GATEWAY", seen["gateway"].as_str().unwrap());
    late.env("PLANWRIGHT_STEP_TOKEN", seen["token"].as_str().unwrap());
    let output = late.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{} {era}", desk.kind);
    assert!(
        err.contains("the step is over"),
        "{} {era}: {err}",
        desk.kind
    );
}

#[test]
fn a_call_that_needs_a_person_waits_for_one() {
    let desk = Desk::new("claude");
    let file = desk.plan();
    let calls = json!([["local__append_file", {"path": "effects.txt", "content": "once\n"}]]);
    let mut command = desk.command(&["run", &file, "--yes"], "legacy", &calls);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::of(command);
    let asked = || {
        let run = desk.wanted().first()?["run"].as_str()?.to_owned();
        let log = desk.bench.log(&run);
        let request = log
            .iter()
            .find(|entry| entry["kind"] == "approval_requested")?;
        Some((run, request["call"]["digest"].as_str()?.to_owned()))
    };
    wait_until("the call is asked about", || asked().is_some());
    assert!(!desk.bench.path("effects.txt").exists());
    let (run, digest) = asked().unwrap();
    let approve = ["approve", &run, "--step", "call", "--digest", &digest];
    desk.bench.run(&approve).ends(0);
    running.wait().ends(0);
    assert_eq!(desk.bench.read("effects.txt"), "once\n");
    assert_eq!(desk.seen()["results"][0]["isError"], false);
}
