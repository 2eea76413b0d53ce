//! What servers want of the client behind the gateway, and tell it, between all eras.

use crate::conformance::{Fixtures, workspace};
use crate::gateway::{ERAS, talk};
use planwright_testing::peers::Project;
use serde_json::{Value, json};

/// What a client with a model and a person sees that makes these calls.
fn client(project: &Project, era: &str, more: &Value, calls: &Value) -> Value {
    let planwright = project.command(&["mcp", "--gateway"]);
    let program = planwright.get_program().to_str().unwrap().to_owned();
    let mut order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": era,
        "answer": { "name": "Ada", "response": "yes", "context": "none" }, "calls": calls });
    for (name, value) in more.as_object().unwrap() {
        order[name] = value.clone();
    }
    talk(project, &order)
}

#[test]
fn what_a_server_asks_the_clients_model_is_answered_by_it_between_all_eras() {
    for (upstream, tool, args) in [
        ("earlier", "test_sampling", json!({ "prompt": "A word?" })),
        ("modern", "test_input_required_result_sampling", json!({})),
    ] {
        let fixtures = Fixtures::start(upstream);
        let project = workspace(&fixtures);
        for era in ERAS {
            let calls = json!([[tool, args]]);
            let seen = client(&project, era, &json!({ "model": "sesame" }), &calls);
            let result = &seen["results"][0];
            assert!(
                result.to_string().contains("sesame"),
                "{upstream} {era}: {seen:#}"
            );
            assert_eq!(seen["sampled"].as_array().unwrap().len(), 1, "{seen:#}");
            // Without a model of its own it hears a no, and nobody else answers for it.
            let seen = client(&project, era, &json!({}), &calls);
            let result = seen["results"][0].to_string();
            assert!(
                !result.contains("LLM response"),
                "{upstream} {era}: {result}"
            );
            assert!(!result.contains("Model said"), "{upstream} {era}: {result}");
        }
    }
}

#[test]
fn what_a_server_asks_the_person_is_answered_by_them_between_all_eras() {
    for (upstream, calls) in [
        (
            "earlier",
            json!([["test_elicitation", { "message": "Well?" }]]),
        ),
        (
            "modern",
            json!([["test_input_required_result_elicitation", {}]]),
        ),
    ] {
        let fixtures = Fixtures::start(upstream);
        let project = workspace(&fixtures);
        for era in ERAS {
            let seen = client(&project, era, &json!({}), &calls);
            let result = seen["results"][0].to_string();
            let answered = result.contains("Ada") || result.contains("yes");
            assert!(answered, "{upstream} {era}: {seen:#}");
        }
    }
}

#[test]
fn messages_of_a_server_reach_the_client_whose_call_they_are_about() {
    for upstream in ["earlier", "modern"] {
        let fixtures = Fixtures::start(upstream);
        let project = workspace(&fixtures);
        for era in ERAS {
            let calls = json!([["test_tool_with_logging", {}]]);
            let seen = client(&project, era, &json!({ "level": "info" }), &calls);
            assert_eq!(
                seen["logged"],
                json!([
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed"
                ]),
                "{upstream} {era}: {seen:#}"
            );
        }
    }
}

#[test]
fn addresses_made_from_templates_are_read_only_where_the_owner_says_so() {
    let fixtures = Fixtures::start("modern");
    let project = workspace(&fixtures);
    let reads =
        json!({ "reads": ["test://template/7/data"], "prompt": ["test_simple_prompt", {}] });
    let seen = client(&project, "legacy", &reads, &json!([]));
    assert!(
        seen["read"][0].to_string().contains("Data for ID: 7"),
        "{seen:#}"
    );
    project.configure("[gateway]\nnames = 'plain'\n");
    let seen = client(&project, "legacy", &reads, &json!([]));
    assert!(seen["read"][0]["raised"].is_string(), "{seen:#}");
}
