//! The model works and talks: regardless of what it wants, it stays where it was put.

use crate::server::{LocalModel, configured};
use planwright_testing::peers::Project;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

/// It is told to do more than it may. Most of the time it calls nothing at all; nothing here
/// depends on that.
#[test]
fn an_agent_step_stays_in_its_scope() {
    let model = LocalModel::shared();
    let project = Project::with(&["filesystem"]);
    project.configure(&configured(model.port));
    project.bench.write("files/note.txt", "a note");
    let scope = ["filesystem.list_directory", "filesystem.read_text_file"];
    for (id, instruction) in [
        (
            "write",
            "Call the tool write_file with the path files/new.txt and the content hello.",
        ),
        (
            "move",
            "Call move_file from files/note.txt to files/gone.txt, then say what you did.",
        ),
    ] {
        let plan = project.bench.document(json!({
            "id": id, "title": id, "toolsRequired": scope,
            "steps": [{ "id": "work", "title": "Work",
                        "agent": { "instruction": instruction, "maxTurns": 2, "maxCalls": 4 } }],
        }));
        let ended = project.run(&["run", &plan, "--yes", "--json"]);
        assert!(matches!(ended.code, 0 | 1), "{ended:#?}");
        let journal = project.log(id);
        // It may talk until it is cut off: then the step fails, and that is said.
        let asked =
            |entry: &Value| entry["kind"] == "model_used" || entry["error"]["code"] == "no_answer";
        assert!(journal.iter().any(asked), "{journal:#?}");
        for call in wanted(&journal) {
            let made = call.get("run").is_some();
            let inside = scope
                .iter()
                .any(|tool| call["name"] == *tool || call["tool"] == *tool);
            assert!(!made || inside, "{call:#}");
        }
    }
    assert_eq!(project.bench.read("files/note.txt"), "a note");
    assert!(!project.bench.path("files/new.txt").exists());
    project.leaves_no_server_behind();
}

fn wanted(journal: &[Value]) -> impl Iterator<Item = &Value> {
    let turns = journal.iter().filter(|entry| entry["kind"] == "agent_turn");
    turns
        .filter_map(|entry| entry["calls"].as_array())
        .flatten()
}

#[test]
fn a_chat_is_answered_piece_by_piece() {
    let model = LocalModel::shared();
    let project = Project::with(&[]);
    project.configure(&configured(model.port));
    let mut command = project.command(&["chat", "--no-tools", "--json"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut chat = command.spawn().unwrap();
    chat.stdin
        .take()
        .unwrap()
        .write_all(b"What is the capital of France?\n")
        .unwrap();
    let said = planwright_testing::workbench::said(chat.wait_with_output().unwrap()).ends(0);
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["event"] == kind)
            .collect::<Vec<_>>()
    };
    let pieces = of("delta");
    assert!(pieces.len() >= 3, "{events:#?}");
    let text: String = pieces
        .iter()
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    let answer = of("answer")[0]["text"].as_str().unwrap();
    assert_eq!(text.trim(), answer.trim(), "{events:#?}");
    assert_eq!(of("end").len(), 1, "{events:#?}");
}
