//! The plans that were written to deceive their approver, as `planwright chat` shows them before it asks.

use planwright_testing::deceptive::{Deception, child, corpus};
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

const QUESTION: &str = "Approve and run?";
const PROMPT: &str = "› ";

/// The tools that the plans use besides those of this machine. They are never called.
const SERVER: &str = r#"
import json, sys
ADDS, READS = {"destructiveHint": False}, {"readOnlyHint": True, "openWorldHint": True}
TOOLS = {"mail": [("send", {}), ("unsend", {})], "git": [("push", ADDS)], "db": [("delete_rows", {})],
         "web": [("fetch", READS)], "pay": [("transfer", ADDS)]}[sys.argv[1]]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": sys.argv[1], "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": name, "description": "A tool.", "inputSchema": {"type": "object"},
                             "annotations": hints} for name, hints in TOOLS]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A workspace with those tools and a model that wants to run every plan, one after the other.
fn workspace(plans: usize) -> (Bench, Provider) {
    let wants = |number: usize| {
        let plan = json!({ "planId": format!("p{number}") });
        let wanted = ScriptedReply::calls([("plan_execute", plan)]);
        [wanted, ScriptedReply::text("As you wish.")]
    };
    let provider = Provider::scripted((0..plans).flat_map(wants));
    let bench = Bench::new();
    bench.write("server.py", SERVER);
    let server = |name: &str| {
        format!("[servers.{name}]\ncommand = \"python3\"\nargs = [\"server.py\", \"{name}\"]\n")
    };
    let servers: String = ["mail", "git", "db", "web", "pay"].map(server).concat();
    bench.configure(&format!(
        "[local]\nrun_command = true\n[local.http_get]\nenabled = true\nallow = [\"*\"]\n\
         [secrets]\nAPI_TOKEN = {{ env = \"EXAMPLE_TOKEN\" }}\n{servers}{}",
        provider.config()
    ));
    (bench, provider)
}

fn import(bench: &Bench, plan: &Value) -> bool {
    bench.write("plan.json", &plan.to_string());
    bench.run(&["import", "plan.json"]).code == 0
}

/// Stores the plans, and that which some of them run in version 3. Returns those that were taken.
fn store_plans(bench: &Bench, corpus: Vec<Deception>) -> Vec<(usize, Deception)> {
    for title in ["One", "Two", "Nothing"] {
        let mut child = child();
        child["title"] = json!(title);
        assert!(import(bench, &child));
    }
    let mut stored = Vec::new();
    for (number, deception) in corpus.into_iter().enumerate() {
        let mut plan = deception.plan.clone();
        plan["id"] = json!(format!("p{number}"));
        if import(bench, &plan) {
            stored.push((number, deception));
        }
    }
    stored
}

#[test]
fn a_reader_of_the_chat_can_name_tool_target_and_effect() {
    let corpus = corpus();
    let all = corpus.len();
    let (bench, provider) = workspace(all);
    let stored = store_plans(&bench, corpus);
    let mut command = bench.command(&["chat", "--plan-tools"]);
    command.env("NO_COLOR", "1").env("EXAMPLE_TOKEN", "hidden");
    let mut terminal = Terminal::narrow(command, 80);
    terminal.wait_for(PROMPT);
    let mut misses = Vec::new();
    let mut not_asked = Vec::new();
    let mut asked = 0;
    for number in 0..all {
        let before = terminal.seen().len();
        let heard = provider.times_asked();
        let seen = |terminal: &Terminal| terminal.seen()[before..].replace('\r', "");
        terminal.types("go on\n");
        wait_until("the question, or none", || {
            seen(&terminal).contains(QUESTION) || provider.times_asked() >= heard + 2
        });
        let screen = seen(&terminal);
        if screen.contains(QUESTION) {
            terminal.types("n\n");
        }
        wait_until("the answer", || provider.times_asked() >= heard + 2);
        wait_until("the prompt", || {
            seen(&terminal).contains("As you wish.") || seen(&terminal).matches(PROMPT).count() >= 1
        });
        let Some((_, deception)) = stored.iter().find(|(stored, _)| *stored == number) else {
            continue;
        };
        if !screen.contains(QUESTION) {
            // What is not asked deceives no reader.
            not_asked.push(format!("{}: {screen}", deception.name));
            continue;
        }
        asked += 1;
        let (screen, _) = screen.split_once(QUESTION).unwrap();
        misses.extend(deception.misses(screen));
        // A chat that shows the heads of steps alone deceives every reader.
        let heads = |line: &&str| line.len() - line.trim_start().len() < 4;
        let blind: Vec<&str> = screen.lines().filter(heads).collect();
        assert!(
            !deception.misses(&blind.join("\n")).is_empty(),
            "{}: the reader finds what is not there\n{}",
            deception.name,
            blind.join("\n")
        );
    }
    println!("{asked} of {all} plans were asked about");
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n----\n")
    );
    assert!(
        asked >= 60,
        "{asked} of {all} were asked:\n{}",
        not_asked.join("\n----\n")
    );
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), Some(0));
}
