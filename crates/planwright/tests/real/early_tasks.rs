//! Tasks as clients of 2025-11-25 know them, with the library of the protocol's authors.

use crate::gateway::{Served, read_answer, script_command, token};
use planwright_testing::peers::Project;
use serde_json::{Value, json};

fn talk(project: &Project, order: &Value) -> Value {
    let mut client = script_command(project, "py-early", "early_tasks.py", order);
    read_answer(&mut client)
}

#[track_caller]
fn check(seen: &Value) {
    assert_eq!(
        seen["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }),
        "{seen:#}"
    );
    let support = json!({ "plan_execute": "optional", "plan_create_and_execute": "optional",
        "plan_resume": "optional" });
    assert_eq!(seen["taskSupport"], support, "{seen:#}");
    let [gated, long, none] = [0, 1, 2].map(|at| seen["ids"][at].as_str().unwrap());

    // The task of a run is the run.
    assert!(gated.starts_with("run_"), "{seen:#}");
    assert_eq!(seen["created"]["status"], "working", "{seen:#}");
    assert_eq!(seen["created"]["ttl"], json!(null), "{seen:#}");
    assert_eq!(seen["waits"], "input_required", "{seen:#}");
    let asked = seen["asked"].as_array().unwrap();
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": gated } });
    assert_eq!(asked.len(), 1, "{seen:#}");
    let meta = asked[0]["meta"]["io.modelcontextprotocol/related-task"].clone();
    assert_eq!(meta, json!({ "taskId": gated }), "{seen:#}");
    assert_eq!(seen["result"]["status"], "completed", "{seen:#}");
    assert_eq!(seen["result"]["isError"], false, "{seen:#}");
    assert_eq!(seen["result"]["meta"], related, "{seen:#}");
    assert_eq!(seen["ended"], "completed", "{seen:#}");
    assert_eq!(seen["cancelledLate"], -32602, "{seen:#}");

    assert_eq!(seen["working"], "working", "{seen:#}");
    assert_eq!(seen["cancelled"], "cancelled", "{seen:#}");
    assert_eq!(seen["afterwards"], "cancelled", "{seen:#}");
    assert_eq!(seen["cancelledResult"], "cancelled", "{seen:#}");

    assert_eq!(seen["noPlan"][0], "failed", "{seen:#}");
    assert_eq!(seen["noPlan"][1]["success"], false, "{seen:#}");
    assert_eq!(seen["noTask"], -32602, "{seen:#}");
    assert_eq!(seen["noSupport"], -32601, "{seen:#}");
    let listed = seen["listed"].as_array().unwrap();
    assert_eq!(listed.len(), 3, "{seen:#}");
    for task in [gated, long, none] {
        assert!(listed.iter().any(|one| one == task), "{seen:#}");
    }
    let told = seen["told"].as_array().unwrap();
    for (task, status) in [
        (gated, "input_required"),
        (gated, "completed"),
        (long, "cancelled"),
    ] {
        assert!(told.contains(&json!([task, status])), "{seen:#}");
    }
}

#[test]
fn a_client_on_pipes_gets_a_task_when_it_asks_for_one() {
    for args in [json!(["mcp"]), json!(["mcp", "--gateway"])] {
        let project = Project::with(&[]);
        let planwright = project.command(&["mcp"]);
        let program = planwright.get_program().to_str().unwrap();
        check(&talk(
            &project,
            &json!({ "command": program, "args": args }),
        ));
    }
}

#[test]
fn a_client_over_http_gets_a_task_when_it_asks_for_one_and_sees_no_other_callers() {
    let project = Project::with(&[]);
    let owner = token(&project, "person", "admin", "ada");
    let other = token(&project, "person", "admin", "bob");
    let served = Served::start(&project);
    for (place, token) in [("/mcp", &owner), ("/mcp/gateway", &other)] {
        let url = format!("{}{place}", served.url);
        check(&talk(&project, &json!({ "url": url, "token": token })));
    }
}
