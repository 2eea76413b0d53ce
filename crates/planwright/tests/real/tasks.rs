//! A tool of a server of the earlier era that can only be called as a task.

use crate::gateway::talk;
use planwright_testing::peers::Project;
use planwright_testing::steps::{call, value};
use serde_json::{Value, json};

const TOOL: &str = "simulate-research-query";

#[test]
fn a_tool_that_insists_on_a_task_is_called_as_one() {
    let project = Project::with(&["everything"]);
    project.configure("[[policy.rules]]\ntool = 'everything.*'\nthen = 'allow'\n");
    // What the task asks its person reaches them through the gateway.
    let asked = std::thread::scope(|scope| {
        let talking = scope.spawn(|| {
            let planwright = project.command(&["mcp", "--gateway"]);
            let program = planwright.get_program().to_str().unwrap();
            let args = json!({ "topic": "python", "ambiguous": true });
            let calls = json!([[format!("everything__{TOOL}"), args]]);
            let answer = json!({ "interpretation": "snake" });
            let order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": "legacy",
                "answer": answer, "calls": calls });
            talk(&project, &order)
        });
        let research = call(
            "research",
            &format!("everything.{TOOL}"),
            json!({ "topic": "planks" }),
            &[],
        );
        let result = project.result("task", json!([research]));
        let report: Value = value(&result, "research");
        let report = report.as_str().unwrap();
        assert!(report.contains("# Research Report: planks"), "{report}");
        talking.join().unwrap()
    });
    let result = asked["results"][0].to_string();
    assert!(result.contains("python (snake)"), "{asked:#}");
    assert_eq!(asked["asked"].as_array().unwrap().len(), 1, "{asked:#}");
    project.leaves_no_server_behind();
}
