//! Servers that answer a call with a task. The server is Planwright itself, in another workspace.

use planwright_testing::mcp_client::McpClient;
use planwright_testing::steps::{call, effect, sleep, step, value};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, program_path};
use serde_json::{Value, json};

/// A workspace whose server is Planwright in another one.
struct Workspaces {
    outer: Bench,
    inner: Bench,
}

impl Workspaces {
    fn new(policy: &str) -> Self {
        let outer = Bench::new();
        let inner = Bench::new();
        // Through a shell: a workspace does not start Planwright itself as a server. It stands for any
        // server that asks its client's person; under another Planwright it would ask no one.
        let script = "unset PLANWRIGHT_AGENT; exec \"$0\" mcp";
        let server = json!({
            "command": "/bin/sh", "args": ["-c", script, program_path()], "cwd": inner.root(),
            "env": { "HOME": inner.home() },
        });
        let servers = json!({ "mcpServers": { "inner": server } });
        outer.write(".mcp.json", &servers.to_string());
        outer.configure(policy);
        Self { outer, inner }
    }

    /// A plan of the inner workspace that a person approved, and one of the outer that runs it.
    fn plans(&self, steps: Value) -> String {
        let plan = self.inner.plan("slow", steps);
        self.inner.run(&["import", &plan]).ends(0);
        let digest = self.inner.digest("slow");
        self.inner
            .run(&["approve", "slow", "--digest", &digest])
            .ends(0);
        let run = call("go", "inner.plan_execute", json!({ "planId": "slow" }), &[]);
        self.outer.plan("outer", json!([run]))
    }
}

#[test]
fn a_call_that_becomes_a_task_ends_when_the_task_does() {
    let both = Workspaces::new("");
    let plan = both.plans(json!([sleep("wait", 1500, &[]), effect("done", &["wait"])]));
    let result = both.outer.run(&["run", &plan, "--yes", "--json"]).ends(0);
    let result = result.json();
    let ran = value(&result, "go");
    assert_eq!(ran["status"], "completed", "{ran:#}");
    // A call that is waited for instead says something else.
    assert_eq!(ran["next"], "the run is over (completed)", "{ran:#}");
    assert_eq!(step(&result, "go")["attempts"], 1);
    assert_eq!(both.inner.read("effects.txt"), "done\n");
}

#[test]
fn a_cancelled_call_cancels_its_task() {
    let both = Workspaces::new("");
    let plan = both.plans(json!([
        sleep("wait", 600_000, &[]),
        effect("done", &["wait"])
    ]));
    let running = both.outer.start(&["run", &plan, "--yes", "--json"]);
    wait_until("the task", || both.inner.status("slow") == "executing");
    // The call is answered with the task half a second later.
    std::thread::sleep(std::time::Duration::from_secs(1));
    both.outer.run(&["cancel", "outer"]).ends(0);
    running.wait();
    wait_until("its end", || both.inner.status("slow") == "cancelled");
    assert_eq!(both.inner.read("effects.txt"), "");
}

#[test]
fn a_task_that_was_interrupted_is_not_made_again() {
    let both = Workspaces::new("");
    let plan = both.plans(json!([
        effect("done", &[]),
        sleep("wait", 600_000, &["done"])
    ]));
    let running = both.outer.start(&["run", &plan, "--yes"]);
    wait_until("the task", || both.inner.read("effects.txt") == "done\n");
    running.kill();
    both.outer.run(&["resume", "outer"]);
    let shown = both.outer.run(&["show", "outer", "--json"]).ends(0).json();
    assert_eq!(shown["status"], "waiting", "{shown:#}");
    let lost = |entry: &Value| entry["kind"] == "outcome_lost" && entry["step"] == "go";
    let log = both.outer.log("outer");
    assert!(log.iter().any(lost), "{log:#?}");
    assert_eq!(both.inner.read("effects.txt"), "done\n");
}

#[test]
fn what_a_task_asks_reaches_the_person_behind_the_gateway() {
    let both = Workspaces::new("[[policy.rules]]\ntool = 'inner.*'\nthen = 'allow'\n");
    let mut gated = effect("done", &["wait"]);
    gated["approvalRequired"] = json!(true);
    both.plans(json!([sleep("wait", 1000, &[]), gated]));
    let asks = json!({ "elicitation": { "form": {} } });
    let mut client = McpClient::legacy(both.outer.command(&["mcp", "--gateway"]), asks);
    let run = json!({ "name": "inner__plan_execute", "arguments": { "planId": "slow" } });
    let id = client.begin("tools/call", run);
    let question = client.wait_for(|message| message["method"] == "elicitation/create");
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains("Step done of plan slow"), "{text}");
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes }));
    let ended = client.answer(id);
    let ran = &ended["result"]["structuredContent"];
    assert_eq!(ran["status"], "completed", "{ended:#}");
    assert_eq!(both.inner.read("effects.txt"), "done\n");
    client.close();
    // The call is in the journal once.
    let listed = both.outer.run(&["list", "--label", "session", "--json"]);
    let session = listed.ends(0).json()[0]["id"].as_str().unwrap().to_owned();
    let log = both.outer.log(&session);
    let calls = log.iter().filter(|entry| entry["kind"] == "agent_turn");
    assert_eq!(calls.count(), 1, "{log:#?}");
}
