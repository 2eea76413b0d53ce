//! A coding agent as people use it, with what `planwright setup` wrote and a model that does as the
//! script says. It is large, so `cargo xtask prove servers` installs it and runs this.

use planwright_testing::peers::installed;
use planwright_testing::provider::{Provider, RecordedRequest, ScriptedReply};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const RULES: &str = r#"
[policy]
guarded_tools = ["demo.echo"]

[[policy.rules]]
tool = "Write"
if = "args.file_path.contains('kept')"
then = "deny"
reason = "this file is kept"

[[policy.rules]]
tool = "Bash"
if = "args.command.contains('rm -rf')"
then = "deny"
reason = "nothing is removed like that"
"#;

/// What the model was told about the calls it made so far.
fn results(asked: &RecordedRequest) -> Vec<Value> {
    let messages = asked.body["messages"].as_array().into_iter().flatten();
    let parts = messages.flat_map(|message| message["content"].as_array().cloned());
    let results = parts.flatten().filter(|part| part["type"] == "tool_result");
    results.collect()
}

/// A model that wants these calls, one after the other. Other questions of the client have no tools.
fn model(calls: Vec<(&'static str, Value)>) -> Provider {
    // A client that asks for ever must not hang the test.
    let mut left = 20 * calls.len();
    Provider::answering(move |asked| {
        left = left.saturating_sub(1);
        let next = calls.get(results(asked).len()).filter(|_| left > 0);
        match next.filter(|_| asked.body["tools"][0].is_object()) {
            Some((tool, args)) => ScriptedReply::calls([(*tool, args.clone())]),
            None => ScriptedReply::text("That is all."),
        }
    })
}

/// Lets Claude Code work until its model is done, and returns what each call came to. Its user
/// allowed every tool, so that only the hook is in the way.
fn let_claude_work(bench: &Bench, model: &Provider) -> Vec<Value> {
    let program = installed("node-strangers/node_modules/claude-code/claude");
    let output = Command::new(program)
        .args(["-p", "go", "--output-format", "json"])
        .args(["--allowedTools", "Write,Bash,mcp__planwright"])
        .current_dir(bench.root())
        .env_clear()
        .env("HOME", bench.home())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let asked = model.asked();
    let last = asked
        .iter()
        .rfind(|asked| asked.body["tools"][0].is_object());
    results(last.expect("the model was asked"))
}

/// Whether the call failed, and what the model was told.
fn told(result: &Value) -> (bool, String) {
    (result["is_error"] == true, result["content"].to_string())
}

fn set_up() -> Bench {
    let bench = Bench::new();
    bench.run(&["setup", "claude-code", "--yes"]).ends(0);
    bench
}

#[test]
#[ignore = "installs a large package: cargo xtask prove servers"]
fn claude_code_asks_before_it_calls_and_proposes_what_is_guarded() {
    let bench = set_up();
    bench.configure(RULES);
    let file = |name: &str| bench.path(name).display().to_string();
    let echo = json!({ "id": "say", "tool": "demo.echo", "args": { "value": "hello" } });
    let write = json!({ "id": "w", "tool": "local.write_file", "args": { "path": "w.txt", "content": "w" } });
    let model = model(vec![
        (
            "Write",
            json!({ "file_path": file("free.txt"), "content": "free" }),
        ),
        (
            "Write",
            json!({ "file_path": file("kept.txt"), "content": "no" }),
        ),
        (
            "Bash",
            json!({ "command": format!("touch {}; rm -rf none", file("removed")) }),
        ),
        (
            "mcp__planwright__plan_propose",
            json!({ "plan": { "id": "p", "goal": "say", "steps": [echo, write] } }),
        ),
        ("mcp__planwright__plan_approve", json!({ "planId": "p" })),
        ("mcp__planwright__plan_execute", json!({ "planId": "p" })),
    ]);
    let results = let_claude_work(&bench, &model);
    let told: Vec<(bool, String)> = results.iter().map(told).collect();
    assert_eq!(told.len(), 6, "{told:#?}");
    assert_eq!(
        (bench.read("free.txt").as_str(), told[0].0),
        ("free", false),
        "{told:#?}"
    );
    assert!(
        told[1].0 && told[1].1.contains("this file is kept"),
        "{told:#?}"
    );
    assert!(
        told[2].0 && told[2].1.contains("nothing is removed like that"),
        "{told:#?}"
    );
    assert!(told[3].1.contains("sha256:"), "{told:#?}");
    for name in ["kept.txt", "removed", "w.txt"] {
        assert!(!bench.path(name).exists(), "{name}: {told:#?}");
    }
    // Without a person at the client nothing is approved, and what was proposed waits.
    assert_eq!(bench.status("p"), "proposed", "{told:#?}");
    // The agent was told how to plan here when its session began.
    let asked = model.asked();
    let guarded = "Guarded tools: `demo.echo`";
    assert!(asked.iter().any(|asked| asked.text().contains(guarded)));
}

#[test]
#[ignore = "installs a large package: cargo xtask prove servers"]
fn claude_code_calls_nothing_when_the_hook_cannot_decide() {
    let bench = set_up();
    bench.write("planwright.toml", "[policy\nguarded");
    let file = bench.path("a.txt").display().to_string();
    let model = model(vec![(
        "Write",
        json!({ "file_path": file, "content": "a" }),
    )]);
    let results = let_claude_work(&bench, &model);
    let (failed, told) = told(&results[0]);
    assert!(failed && told.contains("planwright.toml"), "{told}");
    assert!(!bench.path("a.txt").exists());
}
