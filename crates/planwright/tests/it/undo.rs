//! Taking runs back, as a person at a keyboard and as a program.

use planwright_testing::steps::{call, effect, step};
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn undo(tool: &str, args: Value) -> Value {
    json!({ "tool": tool, "args": args })
}

/// Steps that add a line, each with an undo that adds another.
fn noted(bench: &Bench, ids: &[&str]) -> String {
    let mut steps: Vec<Value> = Vec::new();
    for (at, id) in ids.iter().enumerate() {
        let mut step = effect(id, if at == 0 { &[] } else { &ids[at - 1..at] });
        step["undo"] = undo(
            "append_file",
            json!({ "path": "undone.txt", "content": format!("{id}\n") }),
        );
        steps.push(step);
    }
    bench.plan("p", json!(steps))
}

fn latest_undo(bench: &Bench, plan: &str) -> String {
    let shown = bench.run(&["show", plan, "--json"]).json();
    let runs = shown["runs"].as_array().unwrap();
    runs.iter()
        .rev()
        .find(|run| run.get("undoes").is_some())
        .unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_run_is_taken_back_last_step_first() {
    let bench = Bench::new();
    let plan = noted(&bench, &["a", "b", "c"]);
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let paper = bench
        .run(&["undo", "p", "--dry-run", "--json"])
        .ends(0)
        .json();
    let order: Vec<&str> = paper["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["step"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["c", "b", "a"]);
    assert_eq!(bench.read("undone.txt"), "", "nothing was called");
    bench
        .run(&["undo", "p"])
        .complains(3, "the undo is not approved");
    let result = bench.run(&["undo", "p", "--yes", "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
    assert_eq!(bench.read("undone.txt"), "c\nb\na\n");
    bench
        .run(&["undo", "p", "--yes"])
        .complains(3, "already undone");
    let shown = bench.run(&["show", "p"]).ends(0).out;
    assert_eq!(shown.matches('↶').count(), 3, "{shown}");
    assert!(shown.contains("undo of run_"), "{shown}");
    let log = bench.log("p");
    assert_eq!(
        log.iter()
            .filter(|entry| entry["kind"] == "step_undone")
            .count(),
        3
    );
    bench.run(&["verify"]).ends(0);
    bench
        .run(&["replay", &latest_undo(&bench, "p"), "--offline"])
        .ends(0);
}

#[test]
fn what_stays_is_said_before_anybody_agrees() {
    let bench = Bench::new();
    let mut a = effect("a", &[]);
    a["undo"] = undo(
        "append_file",
        json!({ "path": "undone.txt", "content": "${a.bytes}" }),
    );
    let plan = bench.plan("p", json!([a, effect("b", &["a"])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let mut terminal = Terminal::start(&bench, &["undo", "p"]);
    terminal.wait_for("Undo the run?");
    let seen = terminal.seen();
    assert!(
        seen.contains("b cannot be undone")
            && seen.contains("append_file")
            && seen.contains("digest sha256:"),
        "{seen}"
    );
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3));
    assert_eq!(bench.read("undone.txt"), "");
    let mut terminal = Terminal::start(&bench, &["undo", "p"]);
    terminal.wait_for("Undo the run?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_ne!(bench.read("undone.txt"), "");
}

#[test]
fn an_undo_that_fails_says_what_is_left_and_goes_on_there() {
    let bench = Bench::new();
    let plan = noted(&bench, &["a", "b", "c"]);
    let mut document: Value = serde_json::from_str(&bench.read(&plan)).unwrap();
    document["steps"][1]["undo"] = undo("read_file", json!({ "path": "needed.txt" }));
    bench.write(&plan, &document.to_string());
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let said = bench.run(&["undo", "p", "--yes"]).ends(1);
    assert!(
        said.err.contains("undo-b did not succeed") && said.err.contains("not undone: b, a"),
        "{said:#?}"
    );
    assert!(said.err.contains("planwright undo"), "{said:#?}");
    bench.write("needed.txt", "now it is here");
    bench.run(&["undo", "p", "--yes"]).ends(0);
    assert_eq!(
        bench.read("undone.txt"),
        "c\na\n",
        "nothing was taken back twice"
    );
}

#[test]
fn an_undo_can_be_watched_cancelled_and_resolved_by_its_own_id() {
    let bench = Bench::new();
    let mut slow = effect("slow", &[]);
    slow["undo"] = undo("demo.sleep", json!({ "ms": 60_000, "value": 1 }));
    let plan = bench.plan("p", json!([slow]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let running = bench.start(&["undo", "p", "--yes"]);
    planwright_testing::wait::wait_until("the undo", || {
        let shown = bench.run(&["show", "p", "--json"]).json();
        shown["runs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|run| run.get("undoes").is_some())
    });
    let undo = latest_undo(&bench, "p");
    bench
        .run(&["run", "p", "--yes"])
        .complains(3, "is being undone");
    bench.run(&["cancel", &undo]).ends(0);
    running.wait().ends(1);
    assert!(
        bench
            .run(&["log", &undo, "--json"])
            .ends(0)
            .out
            .contains("run_cancelled")
    );
    bench
        .run(&["undo", "nowhere"])
        .complains(2, "there is no plan");
}

#[test]
fn nothing_to_take_back_is_refused() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["undo", "p"]).complains(2, "there is no plan");
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["undo", "p"]).complains(2, "was never run");
    bench.run(&["run", "p", "--yes"]).ends(0);
    bench
        .run(&["undo", "p", "--yes"])
        .complains(3, "no completed step defines an undo");
}

#[test]
fn a_plan_runs_another_one_and_waits_where_it_waits() {
    let bench = Bench::new();
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    let child = bench.document(
        json!({ "id": "child", "inputs": { "type": "object", "required": ["word"],
        "properties": { "word": { "type": "string" } } },
        "steps": [call("say", "demo.echo", json!({ "value": "${word}" }), &[]), gate] }),
    );
    let parent = bench.plan(
        "p",
        json!([
            { "id": "sub", "plan": { "id": "child", "inputs": { "word": "hello" } }, "result": "got" },
            call("after", "append_file", json!({ "path": "effects.txt", "content": "${got.say}\n" }), &[]),
        ]),
    );
    bench
        .run(&["validate", &parent])
        .complains(2, "there is no plan `child`");
    bench.run(&["import", &child]).ends(0);
    bench.run(&["validate", &parent]).ends(0);
    let said = bench.run(&["run", &parent, "--yes", "--json"]).ends(4);
    let result = said.json();
    assert_eq!(step(&result, "sub")["status"], "awaiting_plan");
    let waits = step(&result, "sub")["waitsFor"].as_str().unwrap();
    assert!(
        said.err
            .contains(&format!("planwright approve {waits} --step gate --digest")),
        "{said:#?}"
    );
    let digest = said
        .err
        .split("--digest ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    bench.run(&["resume", waits]).complains(3, "step `sub`");
    bench
        .run(&["approve", "p", "--step", "sub/nobody", "--digest", digest])
        .complains(2, "no step `nobody`");
    bench
        .run(&["approve", "p", "--step", "after/x", "--digest", digest])
        .complains(3, "sub-plan");
    let approved = bench
        .run(&["approve", "p", "--step", "sub/gate", "--digest", digest])
        .ends(0);
    assert!(
        approved.err.contains("planwright resume p"),
        "{approved:#?}"
    );
    bench.run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "gate\nhello\n");
    let shown = bench.run(&["show", "child"]).ends(0).out;
    assert!(shown.contains("child of run_"), "{shown}");
    bench.run(&["verify"]).ends(0);
}

#[test]
fn what_a_sub_plan_does_is_shown_and_a_change_of_it_needs_a_new_yes() {
    let bench = Bench::new();
    let child = bench.plan("child", json!([effect("inner", &[])]));
    let parent = bench.plan("p", json!([{ "id": "sub", "plan": { "id": "child" } }]));
    bench.run(&["import", &child, &parent]).ends(0);
    let mut terminal = Terminal::start(&bench, &["run", "p"]);
    terminal.wait_for("Approve and run?");
    assert!(
        terminal.seen().contains("runs the plan child (version 1)")
            && terminal.seen().contains("sub/inner"),
        "{}",
        terminal.seen()
    );
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3));
    bench
        .run(&["approve", "p", "--digest", &bench.digest("p")])
        .ends(0);
    bench.plan("child", json!([effect("other", &[])]));
    bench.run(&["import", "child.json"]).ends(0);
    bench.run(&["run", "p"]).complains(3, "not approved");
    assert_eq!(bench.read("effects.txt"), "");
}
