//! The shapes other programs rely on, key by key.

use planwright_testing::steps::{call, echo, effect, keys, step};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

const RUN_KEYS: [&str; 10] = [
    "digest",
    "durationMs",
    "planId",
    "replanned",
    "runId",
    "status",
    "steps",
    "success",
    "variables",
    "version",
];
const STEP_KEYS: [&str; 6] = ["attempts", "durationMs", "id", "status", "title", "tool"];

fn with<'a>(keys: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut all = [keys, more].concat();
    all.sort_unstable();
    all
}

#[test]
fn the_result_of_a_run_has_exactly_the_promised_keys() {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "p", "title": "P", "variables": { "who": "world" },
        "steps": [
            { "id": "b", "tool": "demo.fail", "args": { "message": "no luck", "retryable": false }, "critical": false },
            { "id": "a", "title": "Greet", "tool": "demo.echo", "args": { "value": "hello ${who}" }, "result": "greeting" },
            { "id": "c", "tool": "demo.echo", "args": { "value": 1 }, "dependsOn": ["b"] },
        ],
    }));
    let said = bench.run(&["run", &plan, "--json"]).ends(0);
    let result = said.json();
    assert_eq!(said.out.lines().count(), 1);
    assert_eq!(keys(&result), RUN_KEYS);
    assert_eq!(result["planId"], "p");
    assert_eq!(result["version"], 1);
    assert_eq!(
        (&result["status"], &result["success"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(result["replanned"], false);
    assert_eq!(
        result["variables"],
        json!({ "who": "world", "greeting": "hello world" })
    );
    let ids: Vec<&Value> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["id"])
        .collect();
    assert_eq!(ids, ["b", "a", "c"], "plan order, every step present");
    assert_eq!(keys(step(&result, "a")), with(&STEP_KEYS, &["value"]));
    assert_eq!(keys(step(&result, "b")), with(&STEP_KEYS, &["error"]));
    assert_eq!(
        step(&result, "b")["error"],
        json!({ "code": "demo_failure", "message": "no luck" })
    );
    assert_eq!(step(&result, "c")["status"], "blocked");
    assert_eq!(step(&result, "c")["error"]["code"], "dependency_failed:b");
}

#[test]
fn a_dry_run_has_the_same_shape_with_args_and_verdicts_and_calls_nothing() {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "p", "variables": { "n": 5 },
        "steps": [
            echo("a", json!({ "n": "${n}" }), &[]),
            call("b", "append_file", json!({ "path": "effects.txt", "content": "${a}" }), &[]),
            call("c", "append_file", json!({ "path": "effects.txt", "content": "got ${a.n}!" }), &[]),
        ],
    }));
    let result = bench
        .run(&["run", &plan, "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(result["status"], "dry_run");
    assert_eq!(keys(&result), with(&RUN_KEYS, &["criticalPath"]));
    assert_eq!(result["runId"], Value::Null);
    assert_eq!(step(&result, "a")["args"], json!({ "value": { "n": 5 } }));
    assert_eq!(step(&result, "b")["args"]["content"], "‹result of step a›");
    assert_eq!(step(&result, "c")["args"]["content"], "got ‹n of step a›!");
    assert_eq!(step(&result, "a")["verdict"], "allow");
    assert_eq!(step(&result, "b")["verdict"], "ask");
    assert!(!bench.path("effects.txt").exists());
    assert!(
        !bench.path(".plans").exists(),
        "a dry run of a file stores nothing"
    );
}

#[test]
fn validation_has_exactly_the_promised_keys() {
    let bench = Bench::new();
    let good = bench.plan(
        "good",
        json!([
            echo("1", 1, &[]),
            echo("2", 2, &["1"]),
            echo("3", 3, &["1"]),
            echo("4", 4, &["2", "3"])
        ]),
    );
    let result = bench.run(&["validate", &good, "--json"]).ends(0).json();
    assert_eq!(
        keys(&result),
        ["criticalPath", "digest", "findings", "levels", "ok"]
    );
    assert_eq!(result["levels"], json!([["1"], ["2", "3"], ["4"]]));
    assert_eq!(result["criticalPath"], json!(["1", "2", "4"]));
    let bad = bench.plan(
        "bad",
        json!([
            echo("1", 1, &["9"]),
            call("2", "demo.eccho", json!({}), &[])
        ]),
    );
    let result = bench.run(&["validate", &bad, "--json"]).ends(2).json();
    assert_eq!(result["ok"], false);
    assert!(result.get("digest").is_none());
    let findings = result["findings"].as_array().unwrap();
    assert!(findings.len() >= 2, "every finding at once: {result:#}");
    for finding in findings {
        for key in ["code", "severity", "pointer", "message"] {
            assert!(finding[key].is_string(), "{key} in {finding:#}");
        }
    }
}

#[test]
fn what_is_not_json_is_a_finding_with_its_line() {
    let bench = Bench::new();
    bench.write("broken.json", "{\n  \"steps\": [\n    oops\n  ]\n}");
    let result = bench
        .run(&["validate", "broken.json", "--json"])
        .ends(2)
        .json();
    assert_eq!(result["ok"], false);
    assert!(
        result["findings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("line 3"),
        "{result:#}"
    );
}

#[test]
fn import_show_and_list_have_the_promised_keys() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let imported = bench.run(&["import", &plan, "--json"]).ends(0).json();
    assert_eq!(keys(&imported), ["digest", "id", "status", "version"]);
    assert_eq!(
        (&imported["status"], &imported["version"]),
        (&json!("proposed"), &json!(1))
    );
    bench.run(&["run", "p", "--yes"]).ends(0);
    let shown = bench.run(&["show", "p", "--json"]).ends(0).json();
    assert_eq!(
        keys(&shown),
        [
            "approval",
            "approvals",
            "comments",
            "createdAt",
            "createdBy",
            "digest",
            "facts",
            "findings",
            "graph",
            "id",
            "policy",
            "proposedBy",
            "risk",
            "runs",
            "status",
            "steps",
            "title",
            "updatedAt",
            "version"
        ]
    );
    assert_eq!(shown["digest"], imported["digest"]);
    assert_eq!(
        keys(&shown["runs"][0]),
        ["id", "startedAt", "status", "version"]
    );
    let listed = bench.run(&["list", "--json"]).ends(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], "p");
    assert_eq!(listed[0]["status"], "completed");
}

#[test]
fn a_list_has_a_limit_and_says_when_there_is_more() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        let plan = bench.plan(id, json!([echo("a", 1, &[])]));
        bench.run(&["import", &plan]).ends(0);
    }
    let hint = "To list all: planwright list --limit 0";
    let two = bench.run(&["list", "--limit", "2", "--json"]).ends(0);
    let ids: Vec<Value> = two
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| plan["id"].clone())
        .collect();
    assert_eq!(ids, ["c", "b"], "those that changed last");
    assert!(two.err.contains(hint), "{}", two.err);
    let listed = bench.run(&["list", "--json"]).ends(0);
    assert_eq!(listed.json().as_array().map(Vec::len), Some(3));
    for args in [
        &["list", "--limit", "3"][..],
        &["list", "--limit", "0"],
        &["list"],
    ] {
        let all = bench.run(args).ends(0);
        assert_eq!(all.out.lines().count(), 3, "{args:?}");
        assert!(!all.err.contains(hint), "{args:?}");
    }
}

#[test]
fn the_log_is_one_entry_per_line() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &plan]).ends(0);
    let log = bench.log("p");
    let kinds: Vec<&Value> = log.iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(
        kinds,
        [
            "run_started",
            "attempt_started",
            "attempt_succeeded",
            "run_completed"
        ]
    );
    for (entry, seq) in log.iter().zip(1_u64..) {
        assert_eq!(entry["seq"], seq);
        for key in ["stream", "at", "epoch", "cause", "hash"] {
            assert!(entry.get(key).is_some(), "{key} in {entry:#}");
        }
    }
}

#[test]
fn an_empty_place_reads_as_empty_and_stays_empty() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["list", "--json"]).ends(0).json(), json!([]));
    bench.run(&["verify", "--json"]).ends(0);
    bench.run(&["doctor"]).ends(0);
    for command in [
        "show", "run", "resume", "cancel", "pause", "log", "verify", "export",
    ] {
        bench
            .run(&[command, "nothing"])
            .complains(2, "there is no plan `nothing`");
    }
    bench
        .run(&["delete", "nothing", "--yes"])
        .complains(2, "there is no plan");
    assert_eq!(std::fs::read_dir(bench.root()).unwrap().count(), 0);
}

#[test]
fn every_command_documents_itself_and_run_names_the_exit_codes() {
    let bench = Bench::new();
    let help = bench.run(&["--help"]).ends(0).out;
    for command in [
        "init", "demo", "tui", "new", "create", "list", "show", "edit", "inbox", "approve",
        "reject", "run", "resume", "stop", "chat", "serve", "plan", "runs", "review", "server",
        "model", "policy", "store", "config",
    ] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command} is not in --help"
        );
        bench.run(&[command, "--help"]).ends(0);
    }
    // Every name of earlier releases still works.
    for command in [
        "import",
        "export",
        "validate",
        "pause",
        "cancel",
        "resolve",
        "fork",
        "replay",
        "log",
        "verify",
        "delete",
        "tools",
        "schema",
        "doctor",
        "completions",
        "servers",
        "models",
        "explain",
        "status",
        "version",
        "ls",
        "rm",
    ] {
        bench.run(&[command, "--help"]).ends(0);
    }
    for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "130"] {
        assert!(
            help.contains(&format!("\n  {code}")),
            "{code} is not in --help"
        );
    }
    assert!(bench.run(&["run", "--help"]).out.contains("Exit codes:"));
}
