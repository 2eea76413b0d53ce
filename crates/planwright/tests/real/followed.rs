//! A client that makes the calls of an approved plan itself: each is made as the step that it is.

use planwright_testing::mcp_client::McpClient;
use planwright_testing::peers::Project;
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};

fn asks() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// A workshop whose work is done only as a step of an approved plan.
fn guarded() -> Project {
    let project = Project::with(&["workshop"]);
    project.configure("[policy]\nguarded_tools = [\"workshop.work\"]\n");
    project
}

fn connect(project: &Project) -> McpClient {
    McpClient::legacy(project.command(&["mcp", "--gateway"]), json!({}))
}

fn work(name: &str) -> Value {
    json!({ "name": name, "steps": 1, "milliseconds": 1 })
}

/// Measures a plank, does work that is named by what was measured, and then a table.
fn plan() -> Value {
    json!({ "id": "p", "title": "Furniture", "steps": [
        { "id": "a", "tool": "workshop.measure", "args": { "word": "plank" } },
        { "id": "b", "tool": "workshop.work", "args": work("${a.word}") },
        { "id": "c", "tool": "workshop.work", "args": work("table"), "dependsOn": ["b"] },
    ] })
}

fn propose(client: &mut McpClient, plan: &Value) {
    let proposed = client.call("plan_propose", json!({ "plan": plan }));
    assert_eq!(
        proposed["structuredContent"]["success"], true,
        "{proposed:#}"
    );
}

/// The plan, proposed by the agent and approved by its person.
fn approved(project: &Project, client: &mut McpClient, plan: &Value) {
    propose(client, plan);
    project.run(&["approve", "p", "--version", "1"]).ends(0);
}

#[track_caller]
fn is_refused(client: &mut McpClient, tool: &str, args: Value, code: &str) {
    let refused = client.call(tool, args);
    assert_eq!(refused["isError"], true, "{refused:#}");
    assert_eq!(refused["structuredContent"]["code"], code, "{refused:#}");
}

#[track_caller]
fn is_done(client: &mut McpClient, tool: &str, args: Value) {
    let done = client.call(tool, args);
    assert_ne!(done["isError"], true, "{done:#}");
}

fn status(project: &Project, plan: &str) -> String {
    let shown = project.run(&["show", plan, "--json"]).json();
    shown["status"].as_str().unwrap().to_owned()
}

fn effects(project: &Project) -> String {
    project.bench.read("effects.txt")
}

#[test]
fn a_call_that_is_the_next_step_is_made_as_that_step_and_no_other() {
    let project = guarded();
    let mut client = connect(&project);
    propose(&mut client, &plan());
    is_refused(&mut client, "workshop__work", work("plank"), "guarded_tool");
    project.run(&["approve", "p", "--version", "1"]).ends(0);

    // Not before its turn, not with other arguments, not twice.
    is_refused(&mut client, "workshop__work", work("plank"), "guarded_tool");
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    is_refused(&mut client, "workshop__work", work("chair"), "guarded_tool");
    is_refused(&mut client, "workshop__work", work("table"), "guarded_tool");
    let more = json!({ "name": "plank", "steps": 1, "milliseconds": 1, "extra": true });
    is_refused(&mut client, "workshop__work", more, "guarded_tool");
    is_done(&mut client, "workshop__work", work("plank"));
    is_refused(&mut client, "workshop__work", work("plank"), "guarded_tool");
    assert_eq!(effects(&project), "plank\n");
    is_done(&mut client, "workshop__work", work("table"));
    is_refused(&mut client, "workshop__work", work("table"), "guarded_tool");
    assert_eq!(effects(&project), "plank\ntable\n");

    wait_until("the end", || status(&project, "p") == "completed");
    let journal = project.log("p");
    let started: Vec<&Value> = journal
        .iter()
        .filter(|entry| entry["kind"] == "attempt_started")
        .map(|entry| &entry["step"])
        .collect();
    assert_eq!(started, ["a", "b", "c"], "{journal:#?}");
}

#[test]
fn a_client_that_went_comes_back_to_where_it_was() {
    let project = guarded();
    let mut client = connect(&project);
    approved(&project, &mut client, &plan());
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    client.close();
    wait_until("the pause", || status(&project, "p") == "paused");
    let mut client = connect(&project);
    is_done(&mut client, "workshop__work", work("plank"));
    // This one is killed, and says nothing.
    drop(client);
    assert_eq!(effects(&project), "plank\n");
    let mut client = connect(&project);
    is_done(&mut client, "workshop__work", work("table"));
    assert_eq!(effects(&project), "plank\ntable\n");
    wait_until("the end", || status(&project, "p") == "completed");
}

#[test]
fn no_process_goes_on_by_itself_with_a_plan_that_a_client_carries_out() {
    let project = guarded();
    let mut client = connect(&project);
    approved(&project, &mut client, &plan());
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    drop(client);
    // A run that the service does go on with: then it has looked at all.
    let steps = json!([planwright_testing::steps::sleep("a", 2_000, &[])]);
    let other = project.bench.plan("q", steps);
    let running = project.start(&["run", &other, "--yes"]);
    wait_until("the call", || project.count("q", "attempt_started") == 1);
    running.kill();
    let served = project.start(&["serve", "--listen", "127.0.0.1:0"]);
    wait_until("the other run", || status(&project, "q") == "completed");
    assert_eq!(effects(&project), "");
    assert_ne!(status(&project, "p"), "completed");
    served.kill();
    // A person's word goes on with it.
    project.run(&["resume", "p"]).ends(0);
    assert_eq!(effects(&project), "plank\ntable\n");
}

#[test]
fn a_plan_goes_on_by_itself_when_its_client_says_so() {
    let project = guarded();
    let mut client = connect(&project);
    approved(&project, &mut client, &plan());
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    let resumed = client.call("plan_resume", json!({ "planId": "p" }));
    assert_eq!(
        resumed["structuredContent"]["status"], "completed",
        "{resumed:#}"
    );
    assert_eq!(effects(&project), "plank\ntable\n");
}

#[test]
fn a_step_that_a_person_decides_on_is_asked_about_in_the_client() {
    let project = guarded();
    let mut plan = plan();
    plan["steps"][1]["approvalRequired"] = json!(true);
    let mut client = McpClient::legacy(project.command(&["mcp", "--gateway"]), asks());
    approved(&project, &mut client, &plan);
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    let params = json!({ "name": "workshop__work", "arguments": work("plank") });
    let id = client.begin("tools/call", params);
    let question = client.wait_for(|message| message["method"] == "elicitation/create");
    let words = question["params"]["message"].as_str().unwrap();
    assert!(
        words.contains("plank") && words.contains("workshop.work"),
        "{words}"
    );
    assert_eq!(effects(&project), "");
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes }));
    let done = client.answer(id);
    assert_ne!(done["result"]["isError"], true, "{done:#}");
    assert_eq!(effects(&project), "plank\n");
}

#[test]
fn a_modern_client_gets_the_question_of_a_step_as_its_result() {
    let project = guarded();
    let mut plan = plan();
    plan["steps"][1]["approvalRequired"] = json!(true);
    let mut client = McpClient::modern(project.command(&["mcp", "--gateway"]), asks());
    approved(&project, &mut client, &plan);
    is_done(&mut client, "workshop__measure", json!({ "word": "plank" }));
    let params = json!({ "name": "workshop__work", "arguments": work("plank") });
    let asked = client.ask("tools/call", params.clone());
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let question = &asked["inputRequests"]["approval"]["params"]["message"];
    assert!(
        question.as_str().unwrap().contains("workshop.work"),
        "{asked:#}"
    );
    assert_eq!(effects(&project), "");
    // An answer to the question of another call is none, and does not use the question up.
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    let mut answered = params;
    answered["inputResponses"] = json!({ "approval": yes });
    answered["requestState"] = asked["requestState"].clone();
    let mut other = answered.clone();
    other["arguments"] = work("table");
    let refused = client.ask("tools/call", other);
    assert!(refused["error"].is_object(), "{refused:#}");
    assert_eq!(effects(&project), "");
    let done = client.ask("tools/call", answered.clone());
    assert_ne!(done["result"]["isError"], true, "{done:#}");
    assert_eq!(done["result"]["resultType"], "complete", "{done:#}");
    assert_eq!(effects(&project), "plank\n");
    let again = client.ask("tools/call", answered);
    assert!(again["error"].is_object(), "{again:#}");
    assert_eq!(effects(&project), "plank\n");
}

#[test]
fn of_many_equal_calls_at_once_one_is_the_step() {
    let project = guarded();
    let mut client = connect(&project);
    let plan = json!({ "id": "p", "title": "A table", "steps": [
        { "id": "a", "tool": "workshop.work", "args": work("table") },
    ] });
    approved(&project, &mut client, &plan);
    let params = json!({ "name": "workshop__work", "arguments": work("table") });
    let ids: Vec<u64> = (0..20)
        .map(|_| client.begin("tools/call", params.clone()))
        .collect();
    let answers: Vec<Value> = ids.into_iter().map(|id| client.answer(id)).collect();
    let done = answers
        .iter()
        .filter(|answer| answer["result"]["isError"] != true);
    assert_eq!(done.count(), 1, "{answers:#?}");
    assert_eq!(effects(&project), "table\n");
}
