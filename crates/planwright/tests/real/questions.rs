//! Tools that ask a person before they go on, in both eras of the protocol.

use planwright_testing::peers::Project;
use planwright_testing::steps::value;
use planwright_testing::steps::{call, step};
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

#[test]
fn a_question_of_the_earlier_era_waits_for_a_person_and_is_answered() {
    let project = Project::with(&["everything"]);
    let plan = project.bench.plan(
        "ask",
        json!([call(
            "ask",
            "everything.trigger-elicitation-request",
            json!({}),
            &[]
        )]),
    );
    let result = waits(&project, &plan);
    assert_eq!(
        step(&result, "ask")["status"],
        "awaiting_input",
        "{result:#}"
    );
    let given = json!({ "name": "Ada", "check": true, "email": "ada@example.org" }).to_string();
    project
        .run(&["input", "ask", "ask", "--value", &given])
        .ends(0);
    let result = project.run(&["resume", "ask", "--json"]).ends(0).json();
    assert!(
        value(&result, "ask").to_string().contains("Ada"),
        "{result:#}"
    );
    project.leaves_no_server_behind();
}
