//! What servers want of the client behind the gateway, and tell it, between all eras.

use crate::conformance::{Fixtures, workspace};
use crate::gateway::{ERAS, talk};
use planwright_testing::peers::Project;
use serde_json::{Value, json};

/// What a client with a person sees that makes these calls. `more` is what else it has and wants.
fn client(project: &Project, era: &str, more: &Value, calls: &Value) -> Value {
    let planwright = project.command(&["mcp", "--gateway"]);
    let program = planwright.get_program().to_str().unwrap().to_owned();
    let mut order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": era,
        "answer": { "name": "Ada", "response": "Ada" }, "calls": calls });
    for (name, value) in more.as_object().unwrap() {
        order[name] = value.clone();
    }
    talk(project, &order)
}

/// Calls during which a server asks the model and the person of the client, and logs.
fn calls(upstream: &str) -> Value {
    let (asks_model, asks_person) = match upstream {
        "earlier" => (
            json!(["test_sampling", { "prompt": "A word?" }]),
            json!(["test_elicitation", { "message": "Who?" }]),
        ),
        _ => (
            json!(["test_input_required_result_sampling", {}]),
            json!(["test_input_required_result_elicitation", {}]),
        ),
    };
    json!([asks_model, asks_person, ["test_tool_with_logging", {}]])
}

fn asked_and_told(upstream: &str) {
    let fixtures = Fixtures::start(upstream);
    let project = workspace(&fixtures);
    let calls = calls(upstream);
    for era in ERAS {
        let what = format!("a server of the {upstream} era, {era}");
        let has = json!({ "model": "sesame", "level": "info" });
        let seen = client(&project, era, &has, &calls);
        let said = |place: usize| seen["results"][place].to_string();
        assert!(said(0).contains("sesame"), "{what}: {seen:#}");
        assert_eq!(seen["sampled"].as_array().unwrap().len(), 1, "{seen:#}");
        assert!(said(1).contains("Ada"), "{what}: {seen:#}");
        assert_eq!(seen["asked"].as_array().unwrap().len(), 1, "{seen:#}");
        let logged = [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ];
        assert_eq!(seen["logged"], json!(logged), "{what}: {seen:#}");
    }
    // Without a model of its own a client hears a no: the gateway does not answer for it.
    let seen = client(&project, ERAS[1], &json!({}), &json!([calls[0]]));
    let result = seen["results"][0].to_string();
    assert!(!result.contains("LLM response"), "{upstream}: {result}");
    assert!(!result.contains("Model said"), "{upstream}: {result}");
}

#[test]
fn what_a_server_of_the_earlier_era_tells_and_asks_reaches_its_client_in_both() {
    asked_and_told("earlier");
}

#[test]
fn what_a_modern_server_tells_and_asks_reaches_its_client_in_both_eras() {
    asked_and_told("modern");
}

#[test]
fn addresses_made_from_templates_are_read_only_where_the_owner_says_so() {
    let fixtures = Fixtures::start("modern");
    let project = workspace(&fixtures);
    let reads =
        json!({ "reads": ["test://template/7/data"], "prompt": ["test_simple_prompt", {}] });
    let seen = client(&project, "legacy", &reads, &json!([]));
    let read = seen["read"][0].to_string();
    assert!(read.contains("Data for ID: 7"), "{seen:#}");
    project.configure("[gateway]\nnames = 'plain'\n");
    let seen = client(&project, "legacy", &reads, &json!([]));
    assert!(seen["read"][0]["raised"].is_string(), "{seen:#}");
    // A file that the owner has not trusted does not say so for them.
    let untrusted = "[gateway]\nnames = 'plain'\npass = ['templates']\n";
    project.bench.write("planwright.toml", untrusted);
    let seen = client(&project, "legacy", &reads, &json!([]));
    assert!(seen["read"][0]["raised"].is_string(), "{seen:#}");
}
