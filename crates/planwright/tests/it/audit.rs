//! What was recorded can be proved, and what was damaged is named.

use planwright_testing::steps::{call, echo, effect};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn ran(bench: &Bench) {
    let plan = bench.plan(
        "p",
        json!([effect("a", &[]), echo("b", "MARK-THIS-VALUE", &["a"])]),
    );
    bench.run(&["run", &plan, "--yes"]).ends(0);
}

fn verified(bench: &Bench) -> Value {
    bench.run(&["verify", "--json"]).ends(0).json()
}

#[test]
fn a_sound_store_is_said_to_be_sound() {
    let bench = Bench::new();
    ran(&bench);
    let result = verified(&bench);
    assert_eq!(
        (&result["ok"], &result["streams"], &result["findings"]),
        (&json!(true), &json!(2), &json!([]))
    );
    assert_eq!(result["entries"], 3 + 6);
    assert_eq!(
        bench.run(&["verify", "p", "--json"]).ends(0).json()["streams"],
        2
    );
}

/// Moves everything from the log into the database file, then changes one byte of a recorded value.
fn tamper(bench: &Bench) {
    let mut changed = false;
    for name in [".plans/planwright.db", ".plans/planwright.db-wal"] {
        let path = bench.path(name);
        let Ok(mut bytes) = std::fs::read(&path) else {
            continue;
        };
        while let Some(at) = bytes
            .windows(15)
            .position(|window| window == b"MARK-THIS-VALUE")
        {
            bytes[at] = b'D';
            changed = true;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(changed, "the value is somewhere in the store");
}

#[test]
fn a_changed_entry_is_found() {
    let bench = Bench::new();
    ran(&bench);
    tamper(&bench);
    let said = bench.run(&["verify", "--json"]);
    assert_eq!(said.code, 5, "{said:#?}");
    let result = said.json();
    assert_eq!(result["ok"], false);
    assert!(!result["findings"].as_array().unwrap().is_empty());
    let human = bench.run(&["verify"]);
    assert_eq!(human.code, 5);
    assert!(human.err.contains("the store is damaged"), "{human:#?}");
}

#[test]
fn a_file_that_is_no_database_is_a_damaged_store() {
    let bench = Bench::new();
    ran(&bench);
    for name in ["planwright.db-wal", "planwright.db-shm"] {
        drop(std::fs::remove_file(bench.path(".plans").join(name)));
    }
    bench.write(".plans/planwright.db", &"not a database ".repeat(1_000));
    for command in [&["list"][..], &["show", "p"], &["run", "p"], &["verify"]] {
        let said = bench.run(command);
        assert_eq!(said.code, 5, "{command:?} {said:#?}");
    }
    let said = bench.run(&["doctor"]);
    assert_eq!(said.code, 5, "{said:#?}");
}

#[test]
fn a_lost_tail_of_the_journal_is_noticed_by_the_exported_session() {
    let bench = Bench::new();
    ran(&bench);
    let session = bench.read(".plans/p/session.jsonl");
    let lines: Vec<&str> = session.lines().collect();
    assert_eq!(lines.len(), 6);
    let mut last: Value = serde_json::from_str(lines[5]).unwrap();
    last["seq"] = json!(7);
    bench.write(".plans/p/session.jsonl", &format!("{session}{last}\n"));
    let result = bench.run(&["verify", "--json"]);
    assert_eq!(result.code, 5);
    assert_eq!(
        result.json()["findings"][0]["place"],
        ".plans/p/session.jsonl"
    );
    // A session that ends earlier proves less, but nothing wrong.
    bench.write(
        ".plans/p/session.jsonl",
        &format!("{}\n", lines[..3].join("\n")),
    );
    verified(&bench);
}

#[test]
fn a_changed_or_missing_artifact_is_found() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([call("a", "demo.random_bytes", json!({ "n": 200_000 }), &[])]),
    );
    bench.run(&["run", &plan]).ends(0);
    verified(&bench);
    let artifacts = bench.path(".plans/planwright.db-artifacts");
    let path = std::fs::read_dir(&artifacts)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&path, "other bytes").unwrap();
    assert_eq!(bench.run(&["verify", "--json"]).code, 5);
    std::fs::remove_file(&path).unwrap();
    let said = bench.run(&["verify", "--json"]);
    assert_eq!(said.code, 5);
    assert!(
        said.json()["findings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("missing"),
        "{said:#?}"
    );
}

#[test]
fn the_files_of_a_plan_follow_its_journal() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    ran(&bench);
    let mode = |name: &str| {
        std::fs::metadata(bench.path(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(".plans"), 0o700);
    assert_eq!(mode(".plans/p"), 0o700);
    for name in ["plan.json", "plan.md", "session.jsonl"] {
        assert_eq!(mode(&format!(".plans/p/{name}")), 0o600, "{name}");
    }
    let exported = bench.run(&["export", "p"]).ends(0).out;
    assert_eq!(bench.read(".plans/p/plan.json"), exported);
    let session: Vec<Value> = bench
        .read(".plans/p/session.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(session, bench.log("p"));
}

#[test]
fn files_that_cannot_be_written_are_a_warning_and_never_an_outcome() {
    let bench = Bench::new();
    bench.write(".plans/p", "in the way");
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let said = bench.run(&["run", &plan, "--yes"]).ends(0);
    assert!(said.err.contains("warning: "), "{said:#?}");
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn the_plans_own_journal_shows_who_decided_what() {
    let bench = Bench::new();
    ran(&bench);
    let said = bench.run(&["log", "p", "--plan"]).ends(0);
    let words = ["plan_proposed", "plan_approved", "run_opened"];
    for (line, word) in said.out.lines().zip(words) {
        assert!(line.contains(word), "{line}");
    }
    assert!(said.out.contains("by=person "), "{said:#?}");
}

/// A run whose second step sends what the first one read.
fn sent_run(bench: &Bench) -> String {
    bench.write("notes.txt", "signed: Ada\n");
    let plan = bench.document(
        json!({"id": "p", "variables": {"to": "copy.txt"}, "steps": [
            {"id": "look", "tool": "read_file", "args": {"path": "notes.txt"}},
            {"id": "copy", "tool": "write_file", "args": {"path": "${to}", "content": "${look}"}},
            {"id": "each", "tool": "append_file", "forEach": ["x", "y"], "dependsOn": ["copy"],
             "args": {"path": "log.txt", "content": "${item}"}},
        ]}),
    );
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(0).json();
    result["runId"].as_str().unwrap().to_owned()
}

#[test]
fn the_log_says_what_each_call_was_sent() {
    let bench = Bench::new();
    sent_run(&bench);
    let log = bench.run(&["log", "p", "--json"]).ends(0).out;
    let session = bench.read(".plans/p/session.jsonl");
    for text in [&log, &session] {
        let started: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|entry: &Value| entry["kind"] == "attempt_started")
            .collect();
        let args_of = |step: &str| {
            let entry = started.iter().find(|entry| entry["step"] == step);
            entry.unwrap()["args"].clone()
        };
        assert_eq!(
            args_of("copy"),
            json!({"path": "copy.txt", "content": "signed: Ada\n"})
        );
        assert_eq!(
            args_of("each[1]"),
            json!({"path": "log.txt", "content": "y"})
        );
    }
}

#[test]
fn a_run_shows_what_was_sent_and_what_came_back() {
    let bench = Bench::new();
    let run = sent_run(&bench);
    let shown = bench.run(&["show", &run]).ends(0).out;
    for words in [
        "copy  write_file  completed",
        r#"sent    {"path":"copy.txt","content":"signed: Ada\n"}"#,
        "result  ",
    ] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    let result = bench.run(&["show", &run, "--json"]).ends(0).json();
    assert_eq!(result["runId"], json!(run));
    assert_eq!(result["steps"][0]["args"], json!({"path": "notes.txt"}));
}

#[test]
fn what_a_server_logs_is_kept_with_its_step() {
    let bench = Bench::new();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/leaky_server.py");
    bench.configure(&format!(
        "[servers.leaky]\ncommand = \"python3\"\nargs = [\"{server}\"]\nlog_stderr = true\n"
    ));
    let says = |id: &str, told: &str, how: &str, after: &[&str]| {
        let args = json!({ "told": told, "how": how });
        json!({ "id": id, "tool": "leaky.leak", "args": args, "dependsOn": after })
    };
    let steps = json!([
        says("log", "one\u{1b}[31m", "log", &[]),
        says("stderr", "two", "stderr", &["log"]),
        says("silent", "three", "text", &["stderr"]),
    ]);
    let plan = bench.plan("p", steps);
    let ran = bench.run(&["run", &plan, "--yes", "--json", "--trust-project-servers"]);
    let run = ran.ends(0).json()["runId"].as_str().unwrap().to_owned();

    let result = bench.run(&["show", &run, "--json"]).ends(0).json();
    let logs = result["steps"].as_array().unwrap();
    let first = &logs[0]["log"][0];
    assert_eq!(first["level"], "error");
    assert_eq!(first["message"], "{\"told\":\"one\\u001b[31m\"}");
    assert!(first["at"].as_str().unwrap().ends_with('Z'), "{first}");
    let second = &logs[1]["log"][0];
    assert_eq!(second["logger"], "stderr");
    assert_eq!(second["message"], "told two");
    assert!(logs[2].get("log").is_none(), "{}", logs[2]);

    let shown = bench.run(&["show", &run]).ends(0).out;
    assert!(shown.contains("    log     info: told two"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}
