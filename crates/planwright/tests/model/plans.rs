//! Plans that the model writes, over the tools of a server by another author.

use crate::server::{LocalModel, configured};
use planwright_testing::peers::Project;
use serde_json::{Value, json};

const GOALS: [&str; 10] = [
    "read the auth module, find all usages, then refactor",
    "list the files of the workspace",
    "copy notes.txt to archive/notes.txt",
    "find all TODO comments and write them to todo.md",
    "create a directory for reports and write a summary of README.md into it",
    "move old.txt to new.txt",
    "show the size of every file in src",
    "read a.txt and b.txt and write both into c.txt",
    "edit config.json so that debug is false",
    "tell me which directories you may use",
];

/// The schema leaves even this model nothing but valid plans; repair rounds are for what a schema
/// cannot say.
/// A check asks for one of them, the proof for all.
fn goals() -> &'static [&'static str] {
    let wanted = std::env::var("PLANWRIGHT_MODEL_GOALS")
        .map_or(1, |goals| goals.parse().expect("a number of goals"));
    &GOALS[..wanted]
}

#[test]
fn all_goals_but_one_become_a_plan_that_validates() {
    let model = LocalModel::shared();
    let project = Project::with(&["filesystem"]);
    project.configure(&configured(model.port));
    let mut failed = Vec::new();
    for goal in goals() {
        let created = project.run(&[
            "create",
            goal,
            "--server",
            "filesystem",
            "--max-steps",
            "3",
            "--json",
        ]);
        if created.code != 0 {
            failed.push(created);
            continue;
        }
        let created = created.json();
        assert_eq!(
            (&created["status"], &created["plan"]["goal"]),
            (&json!("proposed"), &json!(goal))
        );
        assert_eq!(created["planning"]["model"], "local/smollm2");
        assert!(
            created["planning"]["outputTokens"].as_u64().unwrap() > 0,
            "{created:#}"
        );
        only_known_tools(&created["plan"]);
        let validated = project.run(&["validate", created["id"].as_str().unwrap(), "--json"]);
        if validated.code != 0 {
            failed.push(validated);
        }
    }
    // One that is alone has to become a plan.
    let may_fail = usize::from(goals().len() > 1);
    assert!(failed.len() <= may_fail, "{failed:#?}");
    project.leaves_no_server_behind();
}

fn only_known_tools(plan: &Value) {
    let steps = plan["steps"].as_array().unwrap();
    assert!((1..=3).contains(&steps.len()), "{plan:#}");
    for step in steps {
        assert!(
            step["tool"].as_str().unwrap().starts_with("filesystem."),
            "{step:#}"
        );
    }
}
