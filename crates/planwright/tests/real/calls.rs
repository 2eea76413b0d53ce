//! Calls of real tools, and values that flow between servers.

use planwright_testing::peers::Project;
use planwright_testing::steps::value;
use planwright_testing::steps::{call, step};
use planwright_testing::terminal::Terminal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn values_flow_from_server_to_server() {
    let project = Project::with(&["time", "filesystem", "workshop", "memory", "git"]);
    let repository = project.file("files");
    git(&project, &["init", "--quiet"]);
    let note = project.file("files/note.txt");
    let result = project.result("flow", json!([
        call("when", "time.convert_time",
             json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }), &[]),
        call("write", "filesystem.write_file",
             json!({ "path": note, "content": "Tokyo ${when.time_difference}" }), &[]),
        call("read", "filesystem.read_text_file", json!({ "path": note }), &["write"]),
        call("measure", "workshop.measure", json!({ "word": "${read.content}" }), &[]),
        call("remember", "memory.create_entities", json!({ "entities": [
            { "name": "${measure.word}", "entityType": "note", "observations": ["${measure.letters} letters"] }
        ]}), &[]),
        call("add", "git.git_add", json!({ "repo_path": repository, "files": ["note.txt"] }), &["read"]),
        call("status", "git.git_status", json!({ "repo_path": repository }), &["add"]),
        call("graph", "memory.read_graph", json!({}), &["remember"]),
    ]));
    assert_eq!(project.bench.read("files/note.txt"), "Tokyo +9.0h");
    assert_eq!(
        value(&result, "measure"),
        json!({ "word": "Tokyo +9.0h", "letters": 11 })
    );
    assert_eq!(
        value(&result, "graph")["entities"][0]["name"],
        "Tokyo +9.0h"
    );
    assert_eq!(
        value(&result, "graph")["entities"][0]["observations"],
        json!(["11 letters"])
    );
    assert!(
        value(&result, "status")
            .as_str()
            .unwrap()
            .contains("note.txt"),
        "{result:#}"
    );
    project.leaves_no_server_behind();
}

/// The server reads its file, adds to it and writes it: of twenty such calls at once it keeps one
/// and answers OK to all.
#[test]
fn twenty_parallel_writes_to_a_server_that_loses_them_are_all_kept() {
    let project = Project::with(&["memory"]);
    let entity =
        |n: usize| json!({ "name": format!("e{n}"), "entityType": "thing", "observations": [] });
    let ids: Vec<String> = (0..20).map(|n| format!("w{n}")).collect();
    let mut steps: Vec<Value> = (0..20)
        .map(|n| {
            call(
                &ids[n],
                "memory.create_entities",
                json!({ "entities": [entity(n)] }),
                &[],
            )
        })
        .collect();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    steps.push(call("graph", "memory.read_graph", json!({}), &all));
    let plan = project
        .bench
        .document(json!({ "id": "many", "title": "Many", "steps": steps,
        "limits": { "maxConcurrency": 20 } }));
    let result = project
        .run(&["run", &plan, "--yes", "--json"])
        .ends(0)
        .json();
    let graph = value(&result, "graph");
    let names: BTreeSet<&str> = graph["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entity| entity["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 20, "{names:?}");
}

#[test]
fn rows_that_come_as_python_text_stay_that_text() {
    let project = Project::with(&["sqlite", "filesystem"]);
    let result = project.result(
        "rows",
        json!([
            call(
                "table",
                "sqlite.create_table",
                json!({ "query": "CREATE TABLE t (a INTEGER, b TEXT)" }),
                &[]
            ),
            call(
                "insert",
                "sqlite.write_query",
                json!({ "query": "INSERT INTO t VALUES (1, 'it''s $${table}')" }),
                &["table"]
            ),
            call(
                "rows",
                "sqlite.read_query",
                json!({ "query": "SELECT * FROM t" }),
                &["insert"]
            ),
            call(
                "keep",
                "filesystem.write_file",
                json!({ "path": project.file("files/rows.txt"), "content": "${rows}" }),
                &[]
            ),
        ]),
    );
    // Not JSON, and what looks like a reference in it is text.
    let rows = r#"[{'a': 1, 'b': "it's ${table}"}]"#;
    assert_eq!(value(&result, "rows"), rows);
    assert_eq!(project.bench.read("files/rows.txt"), rows);
}

#[test]
fn errors_that_a_server_reports_as_successes_are_caught_by_what_is_expected() {
    let project = Project::with(&["sqlite"]);
    let plan = project.bench.plan("expecting", json!([
        { "id": "rows", "title": "Rows", "tool": "sqlite.read_query",
          "args": { "query": "SELECT * FROM nowhere" }, "expect": "!result.startsWith('Database error')" },
        call("after", "demo.echo", json!({ "value": "${rows}" }), &[]),
    ]));
    let result = project
        .run(&["run", &plan, "--yes", "--json"])
        .ends(1)
        .json();
    let rows = step(&result, "rows");
    assert_eq!(
        (&rows["status"], &rows["error"]["code"]),
        (&json!("failed"), &json!("expect_failed")),
        "{rows:#}"
    );
    assert!(
        rows["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no such table"),
        "{rows:#}"
    );
    assert_ne!(step(&result, "after")["status"], "completed");
}

#[test]
fn images_become_artifacts_and_structured_content_a_value() {
    let project = Project::with(&["everything"]);
    let result = project.result(
        "kinds",
        json!([
            call("image", "everything.get-tiny-image", json!({}), &[]),
            call(
                "structured",
                "everything.get-structured-content",
                json!({ "location": "Chicago" }),
                &[]
            ),
            call(
                "sum",
                "everything.get-sum",
                json!({ "a": 20, "b": 22 }),
                &[]
            ),
            call(
                "again",
                "everything.echo",
                json!({ "message": "${structured.conditions}: ${sum}" }),
                &[]
            ),
        ]),
    );
    let structured = value(&result, "structured");
    assert!(structured["temperature"].is_number(), "{structured}");
    assert_eq!(value(&result, "sum"), "The sum of 20 and 22 is 42.");
    let conditions = structured["conditions"].as_str().unwrap();
    assert_eq!(
        value(&result, "again"),
        format!("Echo: {conditions}: The sum of 20 and 22 is 42.")
    );
    let image = value(&result, "image");
    let blocks = image["content"].as_array().unwrap();
    let image = blocks
        .iter()
        .find(|block| block["type"] == "image")
        .unwrap();
    assert_eq!(image["mimeType"], "image/png");
    assert!(image.get("data").is_none(), "{image}");
    let digest = image["artifact"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    let kept = files_below(&project.bench.path(".plans/planwright.db-artifacts"));
    assert!(
        kept.iter().any(|file| file.contains(&digest[2..])),
        "{digest} in {kept:?}"
    );
}

#[test]
fn the_environment_of_the_user_does_not_reach_a_server() {
    let project = Project::with(&["everything"]);
    let plan = project.bench.plan(
        "env",
        json!([call("env", "everything.get-env", json!({}), &[])]),
    );
    let mut command = project.command(&["run", &plan, "--yes", "--json"]);
    command
        .env("AWS_SECRET_ACCESS_KEY", "do-not-leak")
        .env("PLANWRIGHT_REAL_SECRET", "do-not-leak");
    let said = planwright_testing::workbench::said(command.output().unwrap()).ends(0);
    assert!(
        said.out.contains("MEMORY_FILE_PATH"),
        "what the file gives it must be there: {said:#?}"
    );
    assert!(!said.out.contains("do-not-leak"), "{said:#?}");
}

#[test]
fn a_person_sees_how_far_a_step_is() {
    let project = Project::with(&["everything", "workshop"]);
    let plan = project.bench.plan(
        "slow",
        json!([
            call(
                "long",
                "everything.trigger-long-running-operation",
                json!({ "duration": 2, "steps": 4 }),
                &[]
            ),
            call(
                "work",
                "workshop.work",
                json!({ "name": "chair", "steps": 6, "milliseconds": 300 }),
                &[]
            ),
        ]),
    );
    let mut command = project.command(&["run", &plan, "--yes"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::of(command);
    terminal.wait_for("%");
    terminal.wait_for("% shaving chair");
    assert_eq!(terminal.ends(), Some(0));
}

fn files_below(directory: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

/// Git, in the repository that the servers work on.
pub(crate) fn git(project: &Project, args: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    git.args([
        "-c",
        "user.name=Tester",
        "-c",
        "user.email=tester@example.org",
    ])
    .args(args);
    let output = git
        .current_dir(project.bench.path("files"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_picture_beside_a_structured_value_is_kept_passed_on_and_taken_out() {
    let project = Project::with(&["workshop"]);
    let result = project.result(
        "shot",
        json!([
            call("shot", "workshop.photograph", json!({}), &[]),
            call(
                "file",
                "workshop.weigh_file",
                json!({ "path": "${shot.artifact}" }),
                &[]
            ),
            call(
                "data",
                "workshop.weigh_data",
                json!({ "image_base64": "${shot.artifact}" }),
                &[]
            ),
        ]),
    );
    let shot = value(&result, "shot");
    assert_eq!(shot["width"], 1, "{shot:#}");
    assert_eq!(shot["artifacts"][0]["mimeType"], "image/png", "{shot:#}");
    assert_eq!(value(&result, "file")["result"], ".png True");
    assert_eq!(value(&result, "data")["result"], "True");
    let listed = project
        .run(&["artifact", "list", "shot", "--json"])
        .ends(0)
        .json();
    assert_eq!(listed["artifacts"][0]["digest"], shot["artifact"]);
    let file = project.file("pixel.png");
    project
        .run(&["artifact", "get", "shot/shot", "-o", &file])
        .ends(0);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"));
    let digest = shot["artifact"].as_str().unwrap();
    let said = project
        .command(&["artifact", "get", digest])
        .output()
        .unwrap();
    assert_eq!(said.stdout, bytes);
    project.run(&["artifact", "get", "shot/file"]).ends(2);
    let in_use = project.file(".plans/planwright.db-artifacts/in-use");
    let left = std::fs::read_dir(in_use).unwrap().count();
    assert_eq!(left, 0, "files are gone with their calls");
}

#[test]
fn resources_are_listed_and_read_as_steps() {
    let project = Project::with(&["everything"]);
    let result = project.result(
        "read",
        json!([
            call("list", "everything.list_resources", json!({}), &[]),
            call(
                "read",
                "everything.read_resource",
                json!({ "uri": "${list.resources[0].uri}" }),
                &[]
            ),
        ]),
    );
    assert!(
        !value(&result, "list")["templates"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let read = value(&result, "read");
    assert!(read.is_string() || read["contents"].is_array(), "{read:#}");
    let checked = project.run(&["servers", "check", "--json"]).ends(0).json();
    assert!(checked[0]["instructions"].is_string(), "{checked:#}");
    let plan = project.bench.plan(
        "lost",
        json!([call(
            "read",
            "everything.read_resource",
            json!({ "uri": "demo://nothing/there" }),
            &[]
        )]),
    );
    project.run(&["run", &plan, "--yes", "--json"]).ends(1);
}
