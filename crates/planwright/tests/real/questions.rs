//! Tools that ask a person before they go on, in both eras of the protocol.

use planwright_testing::peers::Project;
use planwright_testing::steps::value;
use planwright_testing::steps::{call, step};
use planwright_testing::terminal::Terminal;
use serde_json::{Value, json};

fn waits(project: &Project, plan: &str) -> Value {
    let result = project
        .run(&["run", plan, "--yes", "--json"])
        .ends(4)
        .json();
    project.leaves_no_server_behind();
    result
}

#[test]
fn a_question_of_the_current_era_waits_for_a_person_and_is_answered() {
    let project = Project::with(&["workshop"]);
    let plan = project.bench.plan(
        "paint",
        json!([call("paint", "workshop.paint", json!({}), &[])]),
    );
    let result = waits(&project, &plan);
    assert_eq!(
        step(&result, "paint")["status"],
        "awaiting_input",
        "{result:#}"
    );
    assert!(project.effects().is_empty());
    let asked = project.run(&["input", "paint", "--json"]).ends(0);
    assert!(asked.out.contains("Which colour?"), "{asked:#?}");
    project
        .run(&["input", "paint", "paint", "--set", "colour=green"])
        .ends(0);
    let result = project.run(&["resume", "paint", "--json"]).ends(0).json();
    assert_eq!(
        value(&result, "paint"),
        json!({ "result": "painted green" })
    );
    assert_eq!(project.effects(), ["painted green"]);
    project.leaves_no_server_behind();
}

#[test]
fn a_question_that_is_declined_reaches_the_server_as_declined() {
    let project = Project::with(&["workshop"]);
    let plan = project.bench.plan(
        "paint",
        json!([call("paint", "workshop.paint", json!({}), &[])]),
    );
    waits(&project, &plan);
    project
        .run(&["input", "paint", "paint", "--decline"])
        .ends(0);
    let result = project.run(&["resume", "paint", "--json"]).ends(0).json();
    assert_eq!(
        value(&result, "paint"),
        json!({ "result": "not painted: decline" })
    );
    assert!(project.effects().is_empty());
}

fn order() -> (Project, String) {
    let project = Project::with(&["shop"]);
    let steps = json!([call("order", "shop.order", json!({ "item": "tea" }), &[])]);
    let plan = project.bench.plan("order", steps);
    (project, plan)
}

#[test]
fn what_a_call_asks_in_the_middle_is_answered_at_the_terminal_and_done_once() {
    let (project, plan) = order();
    let mut terminal = Terminal::of(project.command(&["run", &plan, "--yes"]));
    terminal.wait_for("Who orders tea?");
    terminal.wait_for("name (string):");
    terminal.types("Ada\n");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    assert_eq!(project.effects(), ["reserved tea", "ordered tea for Ada"]);
    assert_eq!(project.count("order", "attempt_started"), 1);
    assert_eq!(project.count("order", "input_given"), 1);
    project.leaves_no_server_behind();
}

#[test]
fn without_a_person_what_was_begun_is_not_begun_again() {
    let (project, plan) = order();
    let result = waits(&project, &plan);
    let waiting = step(&result, "order");
    assert_eq!(waiting["status"], "outcome_unknown", "{result:#}");
    assert!(
        waiting["error"].to_string().contains("Who orders tea?"),
        "{result:#}"
    );
    project.run(&["resume", "order", "--json"]).ends(4);
    assert_eq!(project.effects(), ["reserved tea"]);
    project
        .run(&["resolve", "order", "order", "--run-again"])
        .ends(0);
    let mut terminal = Terminal::of(project.command(&["resume", "order"]));
    terminal.wait_for("name (string):");
    terminal.types("Ada\n");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    assert_eq!(
        project.effects(),
        ["reserved tea", "reserved tea", "ordered tea for Ada"]
    );
    project.leaves_no_server_behind();
}

#[test]
fn what_a_call_asks_in_the_middle_is_answered_by_another_command_while_it_waits() {
    let (project, plan) = order();
    let mut terminal = Terminal::of(project.command(&["run", &plan, "--yes"]));
    terminal.wait_for("name (string):");
    let asked = project.run(&["input", "order", "--json"]).ends(0);
    assert!(asked.out.contains("Who orders tea?"), "{asked:#?}");
    project
        .run(&["input", "order", "order", "--set", "name=Grace"])
        .ends(0);
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    assert_eq!(project.effects(), ["reserved tea", "ordered tea for Grace"]);
    project.leaves_no_server_behind();
}

#[test]
fn a_server_of_the_earlier_era_that_is_not_answered_leaves_an_unknown_outcome() {
    let project = Project::with(&["everything"]);
    let asks = "everything.trigger-elicitation-request";
    let plan = project
        .bench
        .plan("ask", json!([call("ask", asks, json!({}), &[])]));
    let result = waits(&project, &plan);
    assert_eq!(step(&result, "ask")["status"], "outcome_unknown");
    project.leaves_no_server_behind();
}

#[test]
fn an_answer_that_is_too_large_is_a_call_that_happened() {
    let project = Project::with(&["shop"]);
    let steps = json!([{ "id": "recite", "tool": "shop.recite", "args": { "lines": 20_000 },
        "retry": { "max": 3, "on": ["output_too_large"] } }]);
    let plan = project.bench.plan("recite", steps);
    let result = waits(&project, &plan);
    assert_eq!(
        step(&result, "recite")["status"],
        "outcome_unknown",
        "{result:#}"
    );
    project.run(&["resume", "recite", "--json"]).ends(4);
    assert_eq!(project.effects(), ["recited"]);
}
