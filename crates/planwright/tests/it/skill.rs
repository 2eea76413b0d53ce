//! `skills/planwright/SKILL.md`: its form is what agents' clients expect, and everything it names is
//! there.

use planwright_testing::workbench::{Bench, said};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

fn skill() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/planwright/SKILL.md");
    std::fs::read_to_string(path).unwrap()
}

/// The frontmatter, one `key: value` per line, and the body.
fn split(text: &str) -> (Vec<(String, String)>, String) {
    let rest = text.strip_prefix("---\n").unwrap();
    let (head, body) = rest.split_once("\n---\n").unwrap();
    let pairs = head.lines().map(|line| {
        let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        (key.to_owned(), value.to_owned())
    });
    (pairs.collect(), body.to_owned())
}

#[test]
fn the_frontmatter_keeps_the_rules_of_skills() {
    let text = skill();
    let (pairs, body) = split(&text);
    let value = |key: &str| {
        let found = pairs.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    };
    let known = [
        "name",
        "description",
        "license",
        "compatibility",
        "metadata",
        "allowed-tools",
    ];
    for (key, value) in &pairs {
        assert!(known.contains(&key.as_str()), "{key}");
        // Plain YAML: nothing in it is read as something else.
        assert!(
            !value.contains(": ") && !value.contains(" #"),
            "{key}: {value}"
        );
    }
    let name = value("name").unwrap();
    assert_eq!(name, "planwright", "the name of its folder");
    assert!((1..=64).contains(&name.len()));
    assert!(
        name.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    );
    let description = value("description").unwrap();
    assert!((1..=1024).contains(&description.chars().count()));
    assert!(
        description.contains("Use when"),
        "what it does, and when to use it"
    );
    assert!(value("compatibility").unwrap().chars().count() <= 500);
    assert!(body.lines().count() < 500);
    assert!(body.len() < 20_000, "5,000 tokens");
}

/// The tools that `planwright mcp` offers.
fn plan_tools(bench: &Bench) -> BTreeSet<String> {
    let mut command = bench.command(&["mcp"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let client = json!({ "name": "test", "version": "1" });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    // The reader of the answers knows when to stop; this reads until they are there.
    use std::io::BufRead as _;
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut names = BTreeSet::new();
    for line in lines {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if answer["id"] == 2 {
            for tool in answer["result"]["tools"].as_array().unwrap() {
                names.insert(tool["name"].as_str().unwrap().to_owned());
            }
            break;
        }
    }
    drop(stdin);
    drop(said(child.wait_with_output().unwrap()));
    names
}

/// The words that follow `planwright ` in a text.
fn commands_in(text: &str) -> BTreeSet<String> {
    let parts = text.split("`planwright ").skip(1);
    let words = parts.filter_map(|part| {
        part.split(|c: char| !c.is_ascii_lowercase() && c != '-')
            .next()
    });
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words that look like a plan tool.
fn tools_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("plan_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_tool_and_field_it_names_exists() {
    let bench = Bench::new();
    let text = skill();
    let (_, body) = split(&text);
    let commands = commands_in(&body);
    assert!(commands.len() >= 6, "{commands:?}");
    for command in &commands {
        bench.run(&[command, "--help"]).ends(0);
    }
    let offered = plan_tools(&bench);
    let named = tools_in(&body);
    assert!(named.len() >= 4, "{named:?}");
    assert_eq!(
        named.difference(&offered).count(),
        0,
        "{named:?} {offered:?}"
    );
    // What a session is told names only what is there, too.
    let payload =
        json!({ "session_id": "s", "cwd": bench.root(), "hook_event_name": "SessionStart" });
    let mut command = bench.command(&["hook", "session-start"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(payload.to_string().as_bytes())
        .unwrap();
    let told = said(child.wait_with_output().unwrap()).out;
    assert!(tools_in(&told).is_subset(&offered), "{told}");
    for command in commands_in(&told) {
        bench.run(&[&command, "--help"]).ends(0);
    }
    // The fields of steps and of plans.
    let schema = bench.run(&["schema"]).ends(0).out;
    for field in [
        "dependsOn",
        "when",
        "forEach",
        "expect",
        "undo",
        "constraints",
        "retry",
        "timeoutSeconds",
        "approvalRequired",
        "tool",
        "think",
        "agent",
        "input",
        "plan",
        "toolsRequired",
    ] {
        assert!(
            body.contains(&format!("`{field}`")),
            "{field} is not explained"
        );
        assert!(
            schema.contains(&format!("\"{field}\"")),
            "{field} is no field"
        );
    }
}

#[test]
fn the_plan_in_it_is_a_plan() {
    let bench = Bench::new();
    let text = skill();
    let (_, rest) = text.split_once("```json\n").unwrap();
    let (plan, _) = rest.split_once("```").unwrap();
    bench.write("plan.json", plan);
    bench.run(&["import", "plan.json"]).ends(0);
    assert_eq!(bench.status("refund-4711"), "proposed");
}
