//! `planwright mcp`: what takes long, what a person decides later, and what a client hears of it.

use crate::service::Served;
use planwright_testing::http::HttpRequest;
use planwright_testing::mcp_client::McpClient;
use planwright_testing::steps::{call, echo, effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

const ASKS: &str = r#"{"elicitation":{"form":{}}}"#;

fn asks() -> Value {
    serde_json::from_str(ASKS).unwrap()
}

/// A client that can ask, and comes back for results.
fn asks_and_waits() -> Value {
    json!({ "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

fn modern(bench: &Bench, capabilities: Value) -> McpClient {
    McpClient::modern(bench.command(&["mcp"]), capabilities)
}

fn legacy(bench: &Bench, capabilities: Value) -> McpClient {
    McpClient::legacy(bench.command(&["mcp"]), capabilities)
}

fn propose(client: &mut McpClient, id: &str, steps: Value) {
    let plan = json!({ "id": id, "title": "Do it", "steps": steps });
    let proposed = client.call("plan_propose", json!({ "plan": plan }));
    assert_eq!(
        proposed["structuredContent"]["success"], true,
        "{proposed:#}"
    );
}

/// A step that its plan lets a person decide on.
fn gated(mut step: Value) -> Value {
    step["approvalRequired"] = json!(true);
    step
}

fn approve() -> Value {
    json!({ "action": "accept", "content": { "decision": "approve" } })
}

#[test]
fn a_plan_that_waits_for_its_person_runs_by_itself_once_they_agreed() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    propose(&mut client, "p", json!([effect("a", &[])]));
    let pending = client.call("plan_execute", json!({ "planId": "p" }));
    let pending = &pending["structuredContent"];
    assert_eq!(pending["status"], "pending_approval", "{pending:#}");
    let next = pending["next"].as_str().unwrap();
    assert!(
        next.contains("planwright inbox") && next.contains("runs by itself"),
        "{next}"
    );
    assert_eq!(bench.read("effects.txt"), "");
    let digest = bench.digest("p");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    wait_until("the run", || bench.read("effects.txt") == "a\n");
    wait_until("its end", || bench.status("p") == "completed");
    let status = client.call("plan_status", json!({ "planId": "p" }));
    assert_eq!(
        status["structuredContent"]["run"]["status"], "completed",
        "{status:#}"
    );
}

/// A plan that waits for its approval, and whose client and server are gone.
fn leave_pending(bench: &Bench, id: &str) {
    let mut client = modern(bench, json!({}));
    propose(&mut client, id, json!([effect(id, &[])]));
    let pending = client.call("plan_execute", json!({ "planId": id }));
    let status = &pending["structuredContent"]["status"];
    assert_eq!(status, "pending_approval", "{pending:#}");
    client.kill();
}

fn approve_at_terminal(bench: &Bench, id: &str) -> String {
    let digest = bench.digest(id);
    let approved = bench.run(&["approve", id, "--digest", &digest]).ends(0);
    approved.err
}

#[test]
fn a_plan_that_was_approved_after_its_server_was_killed_runs_once_with_the_next_one() {
    let bench = Bench::new();
    for id in ["before", "while", "never"] {
        leave_pending(&bench, id);
    }
    let shown = bench.run(&["show", "before"]).ends(0);
    let wanted = "agent test wants it run as soon as it is approved";
    assert!(shown.out.contains(wanted), "{}", shown.out);
    let told = approve_at_terminal(&bench, "before");
    assert!(told.contains("planwright run before"), "{told}");
    assert!(told.contains("planwright mcp"), "{told}");
    assert_eq!(
        bench.read("effects.txt"),
        "",
        "no process was there to start it"
    );
    // Several servers come at once, as of several clients.
    let mut servers = [
        modern(&bench, json!({})),
        modern(&bench, json!({})),
        McpClient::modern(bench.command(&["mcp", "--gateway"]), json!({})),
    ];
    for server in &mut servers {
        server.ask("ping", json!({}));
    }
    wait_until("the first", || bench.status("before") == "completed");
    approve_at_terminal(&bench, "while");
    wait_until("the second", || bench.status("while") == "completed");
    for server in servers {
        server.close();
    }
    assert_eq!(bench.read("effects.txt"), "before\nwhile\n");
    assert_eq!(bench.status("never"), "proposed");
    for id in ["before", "while"] {
        let runs = bench.run(&["show", id, "--json"]).ends(0).json()["runs"].clone();
        assert_eq!(runs.as_array().unwrap().len(), 1, "{runs:#}");
    }
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_service_starts_what_was_approved_after_its_server_was_killed() {
    let bench = Bench::new();
    for id in ["before", "while"] {
        leave_pending(&bench, id);
    }
    approve_at_terminal(&bench, "before");
    let served = Served::start(bench.command(&["serve", "--listen", ":0", "--json"]));
    wait_until("the first", || bench.status("before") == "completed");
    approve_at_terminal(&bench, "while");
    wait_until("the second", || bench.status("while") == "completed");
    drop(served);
    assert_eq!(bench.read("effects.txt"), "before\nwhile\n");
}

#[test]
fn a_person_who_runs_what_was_requested_is_the_one_who_does() {
    let bench = Bench::new();
    leave_pending(&bench, "p");
    approve_at_terminal(&bench, "p");
    bench.run(&["run", "p"]).ends(0);
    let mut later = modern(&bench, json!({}));
    propose(&mut later, "last", json!([effect("last", &[])]));
    later.call("plan_execute", json!({ "planId": "last" }));
    approve_at_terminal(&bench, "last");
    wait_until("the last", || bench.status("last") == "completed");
    assert_eq!(bench.read("effects.txt"), "p\nlast\n");
}

#[test]
fn a_tool_says_which_argument_is_missing() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    for (tool, args, words) in [
        ("plan_execute", json!({}), "`planId` is missing"),
        (
            "plan_execute",
            json!({ "planId": "" }),
            "`planId` must not be empty",
        ),
        ("plan_resume", json!({}), "`planId` is missing"),
        (
            "plan_cancel",
            json!({ "planId": null }),
            "`planId` is missing",
        ),
        (
            "plan_get",
            json!({ "planId": 7 }),
            "`planId` must be a text",
        ),
        ("plan_status", json!({}), "`planId` is missing"),
        ("plan_approve", json!({}), "`planId` is missing"),
        (
            "plan_reject",
            json!({ "planId": "p" }),
            "`reason` is missing",
        ),
        (
            "plan_comment",
            json!({ "planId": "p" }),
            "`text` is missing",
        ),
        ("plan_create", json!({}), "`goal` is missing"),
        ("plan_create_and_execute", json!({}), "`goal` is missing"),
        ("plan_propose", json!({}), "`plan` is missing"),
    ] {
        let refused = client.call(tool, args.clone());
        assert_eq!(refused["isError"], true, "{tool} {args}");
        let error = refused["structuredContent"]["error"].as_str().unwrap();
        assert_eq!(error, words, "{tool} {args}");
        let next = refused["structuredContent"]["next"].as_str().unwrap();
        assert!(!next.is_empty(), "{tool} {args}");
    }
}

#[test]
fn an_agent_that_gives_an_argument_of_another_kind_is_told_what_the_tool_expects() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    let shape = "steps [{id, title, tool, args, dependsOn}]";
    for (tool, args, words, next) in [
        ("plan_propose", json!({}), "`plan` is missing", shape),
        (
            "plan_propose",
            json!({ "plan": "{}" }),
            "`plan` must be an object",
            shape,
        ),
        (
            "plan_list",
            json!({ "limit": "ten" }),
            "`limit` must be a whole number",
            "call plan_list again with `limit`",
        ),
        (
            "plan_execute",
            json!({ "planId": "p", "variables": [] }),
            "`variables` must be an object",
            "Values that replace the plan's own variables",
        ),
        ("plan_cancel", json!({ "planId": "none" }), "", "plan_list"),
    ] {
        let refused = client.call(tool, args.clone());
        let told = &refused["structuredContent"];
        assert_eq!(told["success"], false, "{refused:#}");
        let error = told["error"].as_str().unwrap();
        assert!(error.contains(words), "{refused:#}");
        let said = told["next"].as_str().unwrap_or_default();
        assert!(said.contains(next), "{refused:#}");
    }
}

#[test]
fn a_plan_that_no_one_has_agreed_to_names_the_approval_that_is_missing() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    propose(&mut client, "p", json!([effect("a", &[])]));
    let mut next = |tool: &str| {
        let read = client.call(tool, json!({ "planId": "p" }));
        let next = read["structuredContent"]["next"].as_str();
        next.unwrap_or_default().to_owned()
    };
    for tool in ["plan_get", "plan_status"] {
        let next = next(tool);
        assert!(
            next.contains("plan_approve with planId p"),
            "{tool}: {next}"
        );
        assert!(next.contains("planwright approve p"), "{tool}: {next}");
    }
    approve_at_terminal(&bench, "p");
    for tool in ["plan_get", "plan_status"] {
        let next = next(tool);
        assert!(
            next.contains("plan_execute with planId p"),
            "{tool}: {next}"
        );
    }
    bench.run(&["run", "p"]).ends(0);
    let next = next("plan_get");
    assert!(next.contains("plan_status with planId p"), "{next}");
}

#[test]
fn an_agent_that_names_no_plan_is_told_where_the_plans_are() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    for tool in ["plan_execute", "plan_resume", "plan_get", "plan_status"] {
        for plan in ["missing", "../x", ""] {
            let refused = client.call(tool, json!({ "planId": plan }));
            let next = refused["structuredContent"]["next"].as_str();
            let next = next.unwrap_or_default();
            assert!(next.contains("plan_list"), "{tool} {plan}: {refused:#}");
        }
    }
}

#[test]
fn a_plan_that_is_rejected_or_changed_meanwhile_does_not_run() {
    let bench = Bench::new();
    let mut client = modern(&bench, json!({}));
    for id in ["rejected", "changed"] {
        propose(&mut client, id, json!([effect(id, &[])]));
        client.call("plan_execute", json!({ "planId": id }));
    }
    bench
        .run(&[
            "reject",
            "rejected",
            "--version",
            "1",
            "--reason",
            "not today",
        ])
        .ends(0);
    // The order was about the first version, not about what an agent makes of the plan later.
    propose(&mut client, "changed", json!([effect("other", &[])]));
    bench.run(&["approve", "changed", "--version", "2"]).ends(0);
    // An order that was given later is carried out, so earlier ones had their time.
    propose(&mut client, "last", json!([effect("last", &[])]));
    client.call("plan_execute", json!({ "planId": "last" }));
    bench.run(&["approve", "last", "--version", "1"]).ends(0);
    wait_until("the last", || bench.read("effects.txt") == "last\n");
    assert_eq!(bench.status("rejected"), "rejected");
    assert_eq!(bench.status("changed"), "approved");
}

#[test]
fn a_yes_in_the_client_is_as_careful_with_late_values_as_one_at_the_terminal() {
    let bench = Bench::new();
    let mut late = effect("b", &[]);
    late["args"]["content"] = json!("${a}");
    let steps = json!([echo("a", "to everyone", &[]), late]);
    let mut client = legacy(&bench, asks());
    propose(&mut client, "late", steps);
    let id = client.begin(
        "tools/call",
        json!({ "name": "plan_execute", "arguments": { "planId": "late" } }),
    );
    let is_question = |message: &Value| message["method"] == "elicitation/create";
    let plan = client.wait_for(is_question);
    let text = plan["params"]["message"].as_str().unwrap();
    assert!(
        text.contains("step b: you are asked again once its values are known"),
        "{text}"
    );
    client.send(&json!({ "jsonrpc": "2.0", "id": plan["id"], "result": approve() }));
    let value = client.wait_for(is_question);
    let text = value["params"]["message"].as_str().unwrap();
    assert!(text.contains("to everyone"), "{text}");
    let no = json!({ "action": "accept", "content": { "decision": "reject" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": value["id"], "result": no }));
    client.answer(id);
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn a_step_that_waits_is_asked_about_where_the_client_is() {
    let bench = Bench::new();
    let steps = json!([effect("a", &[]), gated(effect("b", &["a"]))]);

    let mut client = legacy(&bench, asks());
    propose(&mut client, "old", steps.clone());
    let id = client.begin(
        "tools/call",
        json!({ "name": "plan_execute", "arguments": { "planId": "old" } }),
    );
    let mut questions = Vec::new();
    for _ in 0..2 {
        let question = client.wait_for(|message| message["method"] == "elicitation/create");
        questions.push(question["params"]["message"].as_str().unwrap().to_owned());
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": approve() }));
    }
    let ended = client.answer(id);
    assert_eq!(
        ended["result"]["structuredContent"]["status"], "completed",
        "{ended:#}"
    );
    assert!(
        questions[1].contains("Step b of plan old"),
        "{questions:#?}"
    );
    assert!(questions[1].contains("effects.txt"), "{questions:#?}");

    let mut client = modern(&bench, asks());
    propose(&mut client, "new", steps);
    let mut params = json!({ "name": "plan_execute", "arguments": { "planId": "new" } });
    for _ in 0..2 {
        let asked = client.ask("tools/call", params.clone());
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked:#}");
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "approval": approve() });
    }
    let ended = client.ask("tools/call", params.clone());
    assert_eq!(
        ended["result"]["structuredContent"]["status"], "completed",
        "{ended:#}"
    );
    assert_eq!(bench.read("effects.txt"), "a\nb\na\nb\n");
    // The answer counted once.
    let again = client.ask("tools/call", params);
    assert_eq!(
        again["result"]["structuredContent"]["success"], false,
        "{again:#}"
    );
    assert_eq!(bench.read("effects.txt"), "a\nb\na\nb\n");
}

#[test]
fn a_no_to_a_step_in_the_client_denies_it() {
    let bench = Bench::new();
    let mut client = modern(&bench, asks());
    propose(&mut client, "p", json!([gated(effect("a", &[]))]));
    let mut params = json!({ "name": "plan_execute", "arguments": { "planId": "p" } });
    for decision in ["approve", "reject"] {
        let asked = client.ask("tools/call", params.clone());
        params["requestState"] = asked["result"]["requestState"].clone();
        let answer =
            json!({ "action": "accept", "content": { "decision": decision, "comment": "no" } });
        params["inputResponses"] = json!({ "approval": answer });
    }
    let ended = client.ask("tools/call", params);
    assert_eq!(
        ended["result"]["structuredContent"]["success"], false,
        "{ended:#}"
    );
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn a_long_run_is_a_task_of_a_client_that_has_them() {
    let bench = Bench::new();
    bench.configure("[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n");
    let mut client = modern(&bench, asks_and_waits());
    let steps = json!([sleep("a", 1_500, &[]), gated(effect("b", &["a"]))]);
    propose(&mut client, "p", steps);
    let created = run_approved(&mut client, "p");
    assert_eq!(created["resultType"], "task", "{created:#}");
    assert_eq!(created["status"], "working", "{created:#}");
    let task = created["taskId"].as_str().unwrap().to_owned();
    let asked = wait_for_task(&mut client, &task, "input_required");
    let (key, request) = asked["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(request["method"], "elicitation/create");
    // An answer to another question is none.
    let other = json!({ "taskId": task, "inputResponses": { "approval": approve() } });
    assert!(client.ask("tasks/update", other)["error"].is_null());
    wait_for_task(&mut client, &task, "input_required");
    assert_eq!(bench.read("effects.txt"), "");
    let answers = json!({ "taskId": task, "inputResponses": { key.clone(): approve() } });
    assert!(client.ask("tasks/update", answers)["error"].is_null());
    let ended = wait_for_task(&mut client, &task, "completed");
    let result = &ended["result"]["structuredContent"];
    assert_eq!(result["status"], "completed", "{ended:#}");
    assert_eq!(bench.read("effects.txt"), "b\n");
    // It is known to a later process too.
    let mut later = modern(&bench, asks_and_waits());
    wait_for_task(&mut later, &task, "completed");
    let unknown = later.ask("tasks/get", json!({ "taskId": "none" }));
    assert!(!unknown["error"].is_null(), "{unknown:#}");
}

#[test]
fn a_modern_client_is_told_how_its_tasks_stand_if_it_listens() {
    for args in [&["mcp"][..], &["mcp", "--gateway"]] {
        let bench = Bench::new();
        bench.configure("[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n");
        let mut client = McpClient::modern(bench.command(args), asks_and_waits());
        let steps = json!([sleep("a", 1_500, &[]), gated(effect("b", &["a"]))]);
        propose(&mut client, "p", steps);
        let created = run_approved(&mut client, "p");
        let task = created["taskId"].as_str().unwrap().to_owned();
        let listen = json!({ "notifications": { "taskIds": [task] } });
        let subscription = client.begin("subscriptions/listen", listen);
        let accepted = client
            .wait_for(|message| message["method"] == "notifications/subscriptions/acknowledged");
        assert_eq!(
            accepted["params"]["notifications"],
            json!({ "taskIds": [task] }),
            "{accepted:#}"
        );
        let told = |client: &mut McpClient, status: &str| {
            let told = client.wait_for(|message| {
                message["method"] == "notifications/tasks" && message["params"]["status"] == status
            });
            let id = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*id, json!(subscription), "{told:#}");
            assert_eq!(told["params"]["taskId"], json!(task), "{told:#}");
            told
        };
        let asked = told(&mut client, "input_required");
        let requests = asked["params"]["inputRequests"].as_object().unwrap();
        let key = requests.keys().next().unwrap().clone();
        let answers = json!({ "taskId": task, "inputResponses": { key: approve() } });
        client.ask("tasks/update", answers);
        let ended = told(&mut client, "completed");
        let result = &ended["params"]["result"]["structuredContent"];
        assert_eq!(result["status"], "completed", "{ended:#}");
    }
}

#[test]
fn a_task_can_be_cancelled_and_a_short_run_is_none() {
    let bench = Bench::new();
    let mut client = modern(&bench, asks_and_waits());
    propose(
        &mut client,
        "long",
        json!([sleep("a", 600_000, &[]), effect("b", &["a"])]),
    );
    let created = run_approved(&mut client, "long");
    let task = created["taskId"].as_str().unwrap().to_owned();
    assert!(client.ask("tasks/cancel", json!({ "taskId": task }))["error"].is_null());
    wait_for_task(&mut client, &task, "cancelled");
    propose(&mut client, "short", json!([effect("b", &[])]));
    let ended = run_approved(&mut client, "short");
    assert_eq!(
        ended["structuredContent"]["status"], "completed",
        "{ended:#}"
    );
    assert_eq!(bench.read("effects.txt"), "b\n");
}

/// Runs a plan, and agrees to it where that is asked.
fn run_approved(client: &mut McpClient, plan: &str) -> Value {
    let mut params = json!({ "name": "plan_execute", "arguments": { "planId": plan } });
    let asked = client.ask("tools/call", params.clone());
    if asked["result"]["resultType"] != "input_required" {
        return asked["result"].clone();
    }
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "approval": approve() });
    client.ask("tools/call", params)["result"].clone()
}

fn wait_for_task(client: &mut McpClient, task: &str, status: &str) -> Value {
    let mut last = Value::Null;
    wait_until(status, || {
        last = client.ask("tasks/get", json!({ "taskId": task }))["result"].clone();
        last["status"] == status
    });
    last
}

#[test]
fn a_client_that_waits_is_told_how_far_the_run_is() {
    let bench = Bench::new();
    let mut client = legacy(&bench, asks());
    let steps = json!([
        sleep("a", 1, &[]),
        sleep("b", 1, &["a"]),
        sleep("c", 1, &["b"])
    ]);
    propose(&mut client, "p", steps);
    let params = json!({
        "name": "plan_execute", "arguments": { "planId": "p" }, "_meta": { "progressToken": "t" },
    });
    let id = client.begin("tools/call", params);
    let last = client.wait_for(|message| {
        message["method"] == "notifications/progress" && message["params"]["progress"] == 3.0
    });
    assert_eq!(last["params"]["total"], 3.0, "{last:#}");
    client.answer(id);
    let told: Vec<f64> = client
        .notices()
        .iter()
        .filter(|notice| notice["method"] == "notifications/progress")
        .map(|notice| notice["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(told.is_sorted_by(|one, two| one < two), "{told:?}");
}

#[test]
fn a_client_hears_of_changes_of_what_it_subscribed_to() {
    let bench = Bench::new();
    bench.plan(
        "p",
        json!([call("a", "demo.echo", json!({ "value": 1 }), &[])]),
    );
    bench.plan(
        "q",
        json!([call("a", "demo.echo", json!({ "value": 1 }), &[])]),
    );
    bench.run(&["import", "p.json"]).ends(0);
    bench.run(&["import", "q.json"]).ends(0);
    let is_update = |message: &Value| message["method"] == "notifications/resources/updated";

    let mut old = legacy(&bench, json!({}));
    let missing = old.ask("resources/subscribe", json!({ "uri": "plan://none" }));
    assert!(!missing["error"].is_null(), "{missing:#}");
    let subscribed = old.ask("resources/subscribe", json!({ "uri": "plan://p" }));
    assert!(subscribed["error"].is_null(), "{subscribed:#}");
    let mut new = modern(&bench, json!({}));
    let wanted =
        json!({ "notifications": { "resourceSubscriptions": ["plan://p", "file:///etc/passwd"] } });
    new.begin("subscriptions/listen", wanted);
    let accepted =
        new.wait_for(|message| message["method"] == "notifications/subscriptions/acknowledged");
    let uris = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*uris, json!(["plan://p"]), "{accepted:#}");

    bench.run(&["comment", "q", "unrelated"]).ends(0);
    bench.run(&["comment", "p", "a word"]).ends(0);
    for client in [&mut old, &mut new] {
        let update = client.wait_for(is_update);
        assert_eq!(update["params"]["uri"], "plan://p", "{update:#}");
    }
    // A plan stands where its run does.
    bench.run(&["run", "p", "--yes"]).ends(0);
    for client in [&mut old, &mut new] {
        client.wait_for(is_update);
    }
    let gone = old.ask("resources/unsubscribe", json!({ "uri": "plan://p" }));
    assert!(gone["error"].is_null(), "{gone:#}");
}

#[test]
fn over_http_the_tasks_that_are_listened_to_are_acknowledged_by_their_names() {
    let bench = Bench::new();
    let token = "token create --role admin --kind person --name ada --json";
    let token: Vec<&str> = token.split(' ').collect();
    let token = bench.run(&token).ends(0).json()["token"].take();
    let served = Served::start(bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    for place in ["/mcp", "/mcp/gateway"] {
        let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
            "notifications": { "taskIds": ["run_one"], "resourceSubscriptions": ["plan://p"] },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": asks_and_waits(),
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            },
        } });
        let stream = HttpRequest::new(served.address(), "POST", place)
            .token(token.as_str().unwrap())
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "subscriptions/listen")
            .json(&listen)
            .open();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut lines = BufReader::new(stream).lines();
        let accepted = lines.find_map(|line| {
            let line = line.unwrap();
            let data = line.strip_prefix("data: ")?;
            let message: Value = serde_json::from_str(data).ok()?;
            let is_answer = message["method"] == "notifications/subscriptions/acknowledged";
            (is_answer || !message["error"].is_null()).then_some(message)
        });
        let accepted = accepted.expect("nothing was acknowledged");
        assert_eq!(
            accepted["params"]["notifications"],
            json!({ "taskIds": ["run_one"], "resourceSubscriptions": ["plan://p"] }),
            "{place}: {accepted:#}"
        );
    }
}

/// A client that shows pages of servers.
fn shows_pages() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } } })
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// The nonce that the page of a plan was given with this result.
fn nonce(result: &Value) -> String {
    let review = &result["_meta"]["planwright/review"];
    review["nonce"].as_str().unwrap().to_owned()
}

#[test]
fn a_review_is_shown_as_a_page_and_only_its_nonce_decides() {
    for start in [modern as fn(&Bench, Value) -> McpClient, legacy] {
        let bench = Bench::new();
        let mut client = start(&bench, shows_pages());
        let tools = client.ask("tools/list", json!({}));
        assert!(names(&tools).contains(&"plan_decide"));
        let page = json!({ "uri": "ui://planwright/review" });
        let page = client.ask("resources/read", page);
        let page = &page["result"]["contents"][0];
        assert_eq!(page["mimeType"], "text/html;profile=mcp-app");

        let plan =
            |id: &str, step: &str| json!({ "plan": { "id": id, "steps": [effect(step, &[])] } });
        let shown = client.call("plan_propose", plan("p", "a"));
        let review = &shown["_meta"]["planwright/review"];
        let text = review["text"].as_str().unwrap();
        assert!(
            text.contains("effects.txt") && text.contains("sha256:"),
            "{text}"
        );
        let first = nonce(&shown);
        let visible = [&shown["content"], &shown["structuredContent"]].map(Value::to_string);
        assert!(!visible.concat().contains(&first), "a model could read it");
        let other = nonce(&client.call("plan_propose", plan("q", "b")));

        let mut decide = |nonce: &str, decision: &str| {
            let args = json!({ "planId": "p", "nonce": nonce, "decision": decision });
            client.call("plan_decide", args)["structuredContent"].clone()
        };
        // No nonce, that of another plan, and that of a page which said nothing clear.
        for (nonce, decision) in [
            ("", "approve"),
            (other.as_str(), "approve"),
            (&first, "Approve"),
        ] {
            let refused = decide(nonce, decision);
            assert_eq!(refused["success"], false, "{nonce} {decision}: {refused:#}");
        }
        assert_eq!(decide(&first, "approve")["success"], false, "it was used");
        assert_eq!(bench.status("p"), "proposed");

        // What was shown before the plan changed decides nothing about what it is now.
        let before = nonce(&client.call("plan_get", json!({ "planId": "p" })));
        client.call("plan_propose", plan("p", "c"));
        let args = json!({ "planId": "p", "nonce": before, "decision": "approve" });
        let stale = client.call("plan_decide", args);
        assert_eq!(stale["structuredContent"]["success"], false, "{stale:#}");
        assert_eq!(bench.status("p"), "proposed");

        let asked = client.call("plan_approve", json!({ "planId": "p" }));
        assert_eq!(
            asked["structuredContent"]["status"], "pending_approval",
            "{asked:#}"
        );
        let args = json!({ "planId": "p", "nonce": nonce(&asked), "decision": "approve" });
        let approved = client.call("plan_decide", args);
        assert_eq!(
            approved["structuredContent"]["recorded"], "approve",
            "{approved:#}"
        );
        assert_eq!(bench.status("p"), "approved");
        let shown = bench.run(&["show", "p", "--json"]).ends(0).out;
        assert!(shown.contains("\"host_mediated\""), "{shown}");
        let over = client.call("plan_get", json!({ "planId": "p" }));
        assert!(over["_meta"]["planwright/review"].is_null(), "{over:#}");
    }
}

#[test]
fn a_client_that_shows_no_pages_is_offered_none_and_neither_is_one_of_the_gateway() {
    let bench = Bench::new();
    let gateway =
        |bench: &Bench| McpClient::modern(bench.command(&["mcp", "--gateway"]), shows_pages());
    for mut client in [modern(&bench, json!({})), gateway(&bench)] {
        let tools = client.ask("tools/list", json!({}));
        assert!(!names(&tools).contains(&"plan_decide"));
        propose(&mut client, "p", json!([effect("a", &[])]));
        let shown = client.call("plan_get", json!({ "planId": "p" }));
        assert!(shown["_meta"]["planwright/review"].is_null(), "{shown:#}");
        let args = json!({ "planId": "p", "nonce": "x", "decision": "approve" });
        let call = json!({ "name": "plan_decide", "arguments": args });
        let refused = client.ask("tools/call", call);
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains("unknown tool"), "{refused:#}");
    }
    assert_eq!(bench.status("p"), "proposed");
}
