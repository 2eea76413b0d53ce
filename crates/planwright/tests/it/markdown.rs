//! Plans in Markdown files, through the program.

use planwright_testing::steps::{echo, effect};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn imported(bench: &Bench, id: &str, steps: Value) {
    let plan = bench.plan(id, steps);
    bench.run(&["import", &plan]).ends(0);
}

#[test]
fn a_hand_edit_of_the_file_is_the_next_version() {
    let bench = Bench::new();
    imported(&bench, "p", json!([echo("a", 1, &[])]));
    let text = bench.read(".plans/p/plan.md");
    bench.run(&["import", ".plans/p/plan.md"]).ends(0);
    assert_eq!(
        bench.run(&["show", "p", "--json"]).json()["version"],
        1,
        "nothing was edited"
    );
    bench.write(
        ".plans/p/plan.md",
        &text.replace("title: \"Plan p\"", "title: By hand\nstatus: approved"),
    );
    bench
        .run(&["import", ".plans/p/plan.md"])
        .complains(2, "the frontmatter cannot be read");
    let edited = text
        .replace("\"Plan p\"", "By hand")
        .replace("\"proposed\"", "approved");
    bench.write(".plans/p/plan.md", &edited);
    let said = bench
        .run(&["import", ".plans/p/plan.md", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&said["version"], &said["status"]),
        (&json!(2), &json!("proposed"))
    );
    let versions = bench.run(&["versions", "p"]).ends(0).out;
    assert!(versions.contains("hand edit of plan.md"), "{versions}");
    assert!(
        bench
            .read(".plans/p/plan.md")
            .contains("title: \"By hand\"")
    );
}

#[test]
fn an_edit_of_an_older_version_is_refused() {
    let bench = Bench::new();
    imported(&bench, "p", json!([echo("a", 1, &[])]));
    bench
        .run(&["export", "p", "--format", "md", "-o", "mine.md"])
        .ends(0);
    imported(&bench, "p", json!([echo("a", 2, &[])]));
    bench.write(
        "mine.md",
        &bench.read("mine.md").replace("\"Plan p\"", "Mine"),
    );
    for command in [&["import", "mine.md"][..], &["run", "mine.md", "--yes"]] {
        let said = bench.run(command).complains(3, "mine.md");
        assert!(
            said.err.contains("version 2") && said.err.contains("version 1"),
            "{said:#?}"
        );
        assert!(said.err.contains("planwright diff p 1"), "{said:#?}");
    }
    bench
        .run(&["edit", "p", "--file", "mine.md", "--yes"])
        .complains(3, "version 2");
    bench.write(
        "mine.md",
        &bench.read("mine.md").replace("version: 1\n", ""),
    );
    bench
        .run(&["import", "mine.md"])
        .complains(3, "does not say which version");
    assert_eq!(bench.run(&["show", "p", "--json"]).json()["version"], 2);
}

#[test]
fn a_file_of_another_workspace_is_a_new_plan() {
    let one = Bench::new();
    let other = Bench::new();
    imported(&one, "p", json!([echo("a", 1, &[])]));
    imported(&one, "p", json!([echo("a", 2, &[])]));
    other.write("plan.md", &one.read(".plans/p/plan.md"));
    assert_eq!(
        other.run(&["import", "plan.md", "--json"]).ends(0).json()["version"],
        1
    );
    let json = |bench: &Bench| bench.run(&["export", "p"]).ends(0).json();
    assert_eq!(json(&one), json(&other));
}

#[test]
fn plans_written_by_people_and_other_programs_are_taken() {
    let bench = Bench::new();
    bench.write(
        "steps.md",
        "---\nid: s\ntools_required: [demo]\n---\n\n## Steps\n1. Look (demo: echo)\n2. Tell\n",
    );
    bench.write("add.plan.md", "---\nname: Add\noverview: Why\ntodos:\n  - {id: a, content: A, status: completed}\n  - {id: b, content: B, status: pending}\nisProject: false\n---\nText\n");
    bench.write("todo.md", "# Todo\n\n- [x] One\n- [ ] Two\n");
    bench.run(&["import", "steps.md"]).ends(0);
    let plan = bench.run(&["export", "s"]).ends(0).json();
    assert_eq!(plan["steps"][0]["agent"]["operation"], "echo");
    assert_eq!(plan["steps"][1]["dependsOn"], json!(["1"]));
    let said = bench.run(&["import", "add.plan.md", "--json"]).ends(0);
    assert!(
        said.err.contains("1 task is done, so it was left out"),
        "{said:#?}"
    );
    let id = said.json()["id"].as_str().unwrap().to_owned();
    let plan = bench.run(&["export", &id]).ends(0).json();
    assert_eq!(
        (&plan["goal"], &plan["steps"][0]["id"]),
        (&json!("Why"), &json!("b"))
    );
    let said = bench.run(&["import", "todo.md", "--json"]).ends(0);
    assert!(said.err.contains("left out"), "{said:#?}");
    bench
        .run(&["import", "todo.md", "--format", "md"])
        .complains(2, "line");
    bench
        .run(&["import", "todo.md", "--format", "json"])
        .complains(2, "line 1");
    bench.write("nothing.md", "# A plan");
    bench
        .run(&["import", "nothing.md"])
        .complains(2, "there is no task and no step in it");
    let valid = bench
        .run(&["validate", "nothing.md", "--json"])
        .ends(2)
        .json();
    assert_eq!(valid["ok"], false);
}

#[test]
fn todos_for_other_programs_say_what_is_done() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[]), effect("b", &["a"])]));
    bench.run(&["run", &plan]);
    let page = bench
        .run(&["export", "p", "--format", "cursor"])
        .ends(0)
        .out;
    assert!(page.contains("  - id: \"a\"\n    content: "), "{page}");
    assert!(page.starts_with("---\nname: \"Plan p\"\n"), "{page}");
    assert!(page.contains("status: pending"), "{page}");
}

#[test]
fn the_session_is_named_where_it_is() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &plan]).ends(0);
    let page = bench.read(".plans/p/plan.md");
    assert!(
        page.contains("execution_session: \".plans/p/session.jsonl\""),
        "{page}"
    );
    assert!(page.contains("result_summary: \"completed\""), "{page}");
    assert!(bench.path(".plans/p/session.jsonl").is_file());
}

fn large_plan(bench: &Bench) -> String {
    bench.document(json!({
        "id": "big", "steps": [echo("a", 1, &[])],
        "context": { "notes": "short", "toolOutputs": { "listing": "x".repeat(60_000), "count": 3 } },
    }))
}

#[test]
fn a_large_context_is_kept_beside_the_plan_and_comes_back() {
    let bench = Bench::new();
    let plan = large_plan(&bench);
    bench.run(&["import", &plan]).ends(0);
    let page = bench.read(".plans/big/plan.md");
    assert!(
        page.len() < 5_000 && page.contains("(artifacts/listing.json) sha256:"),
        "{page}"
    );
    assert!(bench.read(".plans/big/plan.json").len() < 5_000);
    assert_eq!(
        bench.read(".plans/big/artifacts/listing.json").len(),
        60_002
    );
    let whole = bench.run(&["export", "big"]).ends(0).json();
    assert_eq!(
        whole["context"]["toolOutputs"]["listing"]
            .as_str()
            .unwrap()
            .len(),
        60_000
    );
    for again in [plan.as_str(), ".plans/big/plan.md"] {
        assert_eq!(
            bench.run(&["import", again, "--json"]).ends(0).json()["version"],
            1,
            "{again}"
        );
    }
    let other = Bench::new();
    bench
        .run(&["export", "big", "--format", "md", "-o", "moved.md"])
        .ends(0);
    other.write("moved.md", &bench.read("moved.md"));
    other.run(&["import", "moved.md"]).complains(
        3,
        "artifacts/listing.json, which the plan names, is missing",
    );
    other.write(
        "artifacts/listing.json",
        &bench.read("artifacts/listing.json"),
    );
    other.run(&["import", "moved.md"]).ends(0);
    assert_eq!(other.run(&["export", "big"]).ends(0).json(), whole);
}

#[test]
fn a_changed_artifact_is_refused_and_files_go_with_the_plan() {
    let bench = Bench::new();
    let plan = large_plan(&bench);
    bench.run(&["import", &plan]).ends(0);
    bench.write(".plans/big/artifacts/listing.json", "\"short\"");
    bench
        .run(&["import", ".plans/big/plan.md"])
        .complains(3, "artifacts/listing.json is not what the plan names");
    bench.run(&["delete", "big", "--yes"]).ends(0);
    assert!(!bench.path(".plans/big").exists());
}

#[test]
fn the_editor_shows_markdown_and_every_error_names_its_line() {
    let bench = Bench::new();
    imported(&bench, "p", json!([echo("a", 1, &[])]));
    let mut command = bench.command(&["edit", "p", "--yes", "--json"]);
    command.env("EDITOR", "sed -i -e 's/^title: .*/title: Edited/'");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let edited: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(edited["version"], 2);
    let mut command = bench.command(&["edit", "p", "--yes"]);
    command.env("EDITOR", "sed -i -e 's/^## Steps/## Stages/'");
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(
        said.contains("the section `Stages` is unknown at line"),
        "{said}"
    );
    assert!(said.contains("--file"), "{said}");
}
