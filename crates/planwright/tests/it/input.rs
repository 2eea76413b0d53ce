//! Bad input: one clear error, what to do about it, and nothing half done.

use planwright_testing::steps::{call, echo, effect};
use planwright_testing::workbench::Bench;
use serde_json::json;

#[test]
fn a_missing_file_is_named() {
    let bench = Bench::new();
    for command in [
        &["run", "absent.json"][..],
        &["import", "absent"],
        &["validate", "./absent"],
    ] {
        bench.run(command).complains(2, "cannot read");
    }
    assert!(!bench.path(".plans").exists());
}

#[test]
fn broken_json_is_named_with_its_line() {
    let bench = Bench::new();
    bench.write("broken.json", "{\n \"id\": \"p\",\n \"steps\": [}\n");
    for command in ["run", "import", "validate"] {
        bench
            .run(&[command, "broken.json"])
            .complains(2, "broken.json: ");
        assert!(bench.run(&[command, "broken.json"]).err.contains("line 3"));
    }
    assert!(!bench.path(".plans").exists());
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_one() {
    let bench = Bench::new();
    bench.write("p.json", r#"{"id": "p", "stepps": []}"#);
    let said = bench.run(&["import", "p.json"]).complains(2, "/stepps");
    assert!(
        said.err.contains("hint: did you mean `steps`?"),
        "{said:#?}"
    );
}

#[test]
fn an_unknown_id_lists_near_ones() {
    let bench = Bench::new();
    let plan = bench.plan("refactor-auth", json!([echo("a", 1, &[])]));
    bench.run(&["import", &plan]).ends(0);
    let said = bench
        .run(&["run", "refactor-outh"])
        .complains(2, "there is no plan `refactor-outh`");
    assert!(
        said.err.contains("hint: did you mean refactor-auth?"),
        "{said:#?}"
    );
}

#[test]
fn a_hostile_id_is_rejected_everywhere() {
    let bench = Bench::new();
    let hostile = "../escaped";
    for command in [
        "show", "resume", "pause", "cancel", "log", "verify", "export",
    ] {
        bench
            .run(&[command, hostile])
            .complains(2, "is not a plan id");
    }
    bench
        .run(&["approve", hostile, "--version", "1"])
        .complains(2, "is not a plan id");
    bench
        .run(&["reject", hostile, "--version", "1", "--reason", "x"])
        .complains(2, "is not a plan id");
    bench
        .run(&["delete", hostile, "--yes"])
        .complains(2, "is not a plan id");
    bench
        .run(&["resolve", hostile, "a", "--happened"])
        .complains(2, "is not a plan id");
    bench
        .run(&["fork", hostile, "--from", "a"])
        .complains(2, "is not a plan id");
    bench
        .run(&["replay", hostile, "--offline"])
        .complains(2, "is not a plan id");
    bench.run(&["run", hostile]).ends(2);
    let plan = bench.write("p.json", &json!({ "id": hostile, "steps": [] }).to_string());
    bench
        .run(&["import", plan.to_str().unwrap()])
        .complains(2, "/id");
    bench
        .run(&["run", plan.to_str().unwrap(), "--yes"])
        .complains(2, "/id");
    let step = bench.plan("q", json!([echo(hostile, 1, &[])]));
    bench.run(&["import", &step]).ends(2);
    assert!(!bench.root().parent().unwrap().join("escaped").exists());
    assert!(!bench.path(".plans").exists());
}

#[test]
fn an_unknown_flag_is_bad_usage() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["run", "p", "--fast"]).ends(2).out, "");
    bench.run(&["frobnicate"]).ends(2);
    bench.run(&[]).ends(2);
    bench.run(&["run", "p", "--max-concurrency", "0"]).ends(2);
}

#[test]
fn a_structural_error_is_said_once_and_nothing_is_written() {
    let bench = Bench::new();
    let cycle = bench.plan("p", json!([echo("a", 1, &["b"]), echo("b", 1, &["a"])]));
    for command in [&["import", &cycle][..], &["run", &cycle, "--yes"]] {
        let said = bench.run(command).complains(2, "the plan is not valid");
        assert!(
            said.err.contains("a → b → a"),
            "the cycle is printed: {said:#?}"
        );
    }
    assert!(!bench.path(".plans").exists());
}

#[test]
fn several_files_are_imported_together_or_not_at_all() {
    let bench = Bench::new();
    let good = bench.plan("good", json!([echo("a", 1, &[])]));
    let bad = bench.plan("bad", json!([echo("a", 1, &["nobody"])]));
    bench.run(&["import", &good, &bad]).ends(2);
    assert_eq!(bench.run(&["list", "--json"]).json(), json!([]));
}

#[test]
fn missing_tools_are_all_named() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            call("a", "deploy", json!({}), &[]),
            call("b", "alert", json!({}), &[])
        ]),
    );
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["run", "p", "--yes"])
        .complains(2, "Required tools not available: alert, deploy");
}

#[test]
fn a_misspelt_setting_is_named_with_its_line() {
    let bench = Bench::new();
    bench.write("planwright.toml", "[local]\nrun_comand = true\n");
    let said = bench.run(&["list"]).complains(
        2,
        "planwright.toml, line 2: the key `run_comand` is unknown",
    );
    assert!(said.err.contains("did you mean `run_command`?"));
    bench.configure("[tools.\"demo.ekko\"]\nclass = \"safe\"\n");
    bench.run(&["list"]).complains(2, "demo.ekko");
}

#[test]
fn control_sequences_in_a_plan_do_not_reach_the_terminal() {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "p", "title": "\u{1b}]0;owned\u{7}Title\u{202e}", "goal": "\u{9b}2J goal",
        "steps": [{ "id": "a", "title": "\u{1b}[31mred\r", "tool": "demo.fail",
                    "args": { "message": "\u{1b}[2Jgone\u{7}" } }],
    }));
    let mut seen = String::new();
    for command in [
        &["run", plan.as_str()][..],
        &["show", "p"],
        &["list"],
        &["log", "p"],
        &["run", "p", "--dry-run"],
    ] {
        let said = bench.run(command);
        seen.push_str(&said.out);
        seen.push_str(&said.err);
    }
    let hostile: Vec<char> = seen
        .chars()
        .filter(|c| *c != '\n' && (c.is_control() || *c == '\u{202e}'))
        .collect();
    assert!(hostile.is_empty(), "{hostile:?} in {seen}");
    assert!(seen.contains("Title"));
}

#[test]
fn variables_are_json_where_they_read_as_json_and_files_are_objects() {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "p", "variables": { "n": 0, "s": "", "f": 0 }, "steps": [echo("a", json!(["${n}", "${s}", "${f}"]), &[])],
    }));
    bench.write("vars.json", r#"{"f": 1.5, "n": 9}"#);
    let said = bench.run(&[
        "run",
        &plan,
        "--json",
        "--vars",
        "vars.json",
        "--var",
        "n=5",
        "--var",
        "s=\"5\"",
    ]);
    assert_eq!(
        said.ends(0).json()["steps"][0]["value"],
        json!([5, "5", 1.5])
    );
    bench.write("list.json", "[]");
    bench
        .run(&["run", &plan, "--vars", "list.json"])
        .complains(2, "is not a JSON object");
    bench
        .run(&["run", &plan, "--var", "novalue"])
        .complains(2, "NAME=VALUE");
}

#[test]
fn a_plan_can_come_from_stdin() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let stdin = std::fs::File::open(bench.path(&plan)).unwrap();
    let output = bench
        .command(&["run", "-", "--yes", "--json"])
        .stdin(stdin)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn the_workspace_is_found_above_and_can_be_named() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    std::fs::create_dir_all(bench.path("deep/er")).unwrap();
    let from_below = bench
        .command(&["run", "p", "--yes"])
        .current_dir(bench.path("deep/er"))
        .output()
        .unwrap();
    assert!(from_below.status.success());
    assert_eq!(
        bench.read("effects.txt"),
        "a\n",
        "tools work in the workspace, not where the command was typed"
    );
    let elsewhere = Bench::new();
    elsewhere
        .run(&["show", "p", "--dir", bench.root().to_str().unwrap()])
        .ends(0);
    let by_variable = elsewhere
        .command(&["show", "p"])
        .env("PLANWRIGHT_DIR", bench.root())
        .output()
        .unwrap();
    assert!(by_variable.status.success());
    bench
        .run(&["list", "--dir", "nowhere"])
        .complains(2, "is not a directory");
}

#[test]
fn the_database_can_be_moved() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([call("a", "demo.random_bytes", json!({ "n": 100_000 }), &[])]),
    );
    let output = bench
        .command(&["run", &plan])
        .env("PLAN_RUNTIME_STORE_PATH", "data/journal.db")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(bench.path("data/journal.db").is_file());
    // The value, and the definition of the tool that the approval pinned.
    assert_eq!(
        std::fs::read_dir(bench.path("data/journal.db-artifacts"))
            .unwrap()
            .count(),
        2
    );
    assert!(!bench.path(".plans/planwright.db").exists());
}
