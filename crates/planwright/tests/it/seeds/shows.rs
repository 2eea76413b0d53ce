//! Rows of `docs/seeds.md` that are commands, in a workspace where they have something to show.

use super::PI_PLAN;
use super::rows::{Row, Show};
use crate::documents::{Stage, git_server, model};
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::steps::{call, echo, effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

/// A plan as its document prints it.
macro_rules! printed {
    ($name:literal) => {
        include_str!(concat!(
            "../../../../planwright-core/tests/fixtures/",
            $name
        ))
    };
}
pub(super) use printed;

pub(super) const SHOWS: &[(&str, Show)] = &[
    ("0.1", plans_are_imported_as_printed),
    ("0.2", values_keep_their_type),
    ("0.3", variables_at_run_time),
    ("0.4", one_step_at_a_time),
    ("0.5", dry_run),
    ("0.6", resume_after_a_crash),
    ("0.7", resume_after_a_failure),
    ("0.8", guards_are_switched_off),
    ("0.10", the_rest_is_planned_anew),
    ("0.11", the_graph),
    ("0.12", commands_of_the_chat),
    ("0.13", plan_tools_of_the_chat),
    ("0.14", a_tool_runs_nothing_that_needs_a_yes),
    ("0.15", servers_as_tools),
    ("0.18", demo),
    ("1.1", comments_and_dollar_names),
    ("1.2", fields_of_plan_and_step),
    ("1.3", the_prompt),
    ("1.4", the_planner_asks_for_checks),
    ("1.5", validation),
    ("1.6", a_review),
    ("1.7", an_edit),
    ("1.8", states_of_steps),
    ("1.9", a_gate),
    ("1.10", progress),
    ("1.11", a_log),
    ("1.14", a_model_after_a_failure),
    ("1.15", a_question),
    ("1.16", results),
    ("2.1", frontmatter),
    ("2.2", a_plan_of_pi_runs),
    ("2.3", an_executor),
    ("2.4", propose),
    ("2.5", context_reaches_the_executor),
    ("2.6", large_context),
    ("2.7", tools_of_the_executor),
    ("2.8", an_older_version),
    ("2.9", a_rejection),
    ("2.10", three_rejections),
    ("2.12", a_stalled_run),
    ("2.13", missing_tools),
    ("2.18", archive),
    ("2.19", figures),
    ("2.20", plan_mode_of_the_client),
    ("2.21", dry_run),
    ("2.22", a_failure_stops),
    ("3.1", a_model_after_a_failure),
    ("3.2", an_adjustment_is_a_version),
    ("3.4", silence_is_unknown),
    ("3.5", stop),
    ("3.6", restore),
    ("3.8", fallback),
    ("3.11", going_on_is_no_success),
    ("4.13", resume_with_a_lost_call),
    ("4.14", another_place),
    ("4.15", encryption),
];

/// A stage with this plan, as a file and stored.
pub(super) fn with(plan: Value) -> Stage {
    let bench = Bench::new();
    bench.write("plan.json", &plan.to_string());
    bench.run(&["import", "plan.json"]).ends(0);
    on(bench, plan["id"].as_str().unwrap())
}

fn on(bench: Bench, id: &str) -> Stage {
    Stage::new(bench)
        .word("ID", id)
        .word("GOAL", "'read the notes'")
}

pub(super) fn plan(steps: Value) -> Value {
    json!({ "id": "p", "title": "A plan", "steps": steps })
}

/// A stage with a model that answers from a script.
fn with_script(replies: impl IntoIterator<Item = ScriptedReply>) -> Stage {
    with_provider(Provider::scripted(replies))
}

fn with_provider(provider: Provider) -> Stage {
    let bench = Bench::new();
    bench.configure(&provider.config());
    bench.write("notes.txt", "milk\n");
    on(bench, "p").provider(provider)
}

/// Stores a plan in the workspace of a stage.
fn store(stage: &Stage, plan: &Value) {
    stage.bench.write("plan.json", &plan.to_string());
    stage.bench.run(&["import", "plan.json"]).ends(0);
}

/// What the model was told when it was asked for the n-th time.
fn told(stage: &Stage, question: usize) -> String {
    let asked = stage.provider.as_ref().unwrap().asked();
    asked[question].text()
}

#[track_caller]
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

fn plans_are_imported_as_printed(row: &Row) {
    let bench = Bench::new();
    bench.write("plan.json", printed!("refactor_auth.json"));
    let mut stage = on(bench, "refactor-auth-001");
    says(
        &row.play(&mut stage),
        &["refactor-auth-001  version 1  proposed"],
    );
}

fn values_keep_their_type(row: &Row) {
    let steps = json!([
        echo("a", "${n}", &[]),
        echo("b", "${o.list}", &[]),
        echo("c", "n=${n}", &[])
    ]);
    let plan =
        json!({ "id": "p", "variables": { "n": 3, "o": { "list": [1, 2] } }, "steps": steps });
    let said = row.play(&mut with(plan).program());
    let result: Value = serde_json::from_str(&said).unwrap();
    let values: Vec<&Value> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["value"])
        .collect();
    assert_eq!(values, [&json!(3), &json!([1, 2]), &json!("n=3")]);
}

fn variables_at_run_time(row: &Row) {
    let plan = json!({ "id": "p", "variables": { "date": "today" }, "steps": [echo("a", "on ${date}", &[])] });
    says(&row.play(&mut with(plan)), &["on 2026-03-01"]);
}

fn one_step_at_a_time(row: &Row) {
    let steps = json!([sleep("a", 50, &[]), sleep("b", 50, &[])]);
    let mut stage = with(plan(steps));
    says(&row.play(&mut stage), &["completed: 2 of 2"]);
    let log = stage.bench.log("p");
    let started = |step: &str| {
        let of = |entry: &&Value| entry["kind"] == "attempt_started" && entry["step"] == step;
        log.iter().find(of).unwrap()["seq"].as_u64()
    };
    let ended = log
        .iter()
        .find(|entry| entry["kind"] == "attempt_succeeded")
        .unwrap();
    assert!(
        started("b").max(started("a")) > ended["seq"].as_u64(),
        "{log:#?}"
    );
}

fn dry_run(row: &Row) {
    let steps = json!([
        echo("a", 1, &[]),
        effect("b", &["a"]),
        echo("c", "${b}", &[])
    ]);
    let mut stage = with(plan(steps));
    says(
        &row.play(&mut stage),
        &["effects.txt", "‹result of step b›", "nothing was called"],
    );
    assert!(!stage.bench.path("effects.txt").exists());
}

fn resume_after_a_crash(row: &Row) {
    let mut stage = with(plan(json!([effect("a", &[]), sleep("b", 700, &["a"])])));
    let running = stage.bench.start(&["run", "p", "--yes"]);
    stage.bench.wait_for("p", "attempt_started", "b");
    running.kill();
    says(&row.play(&mut stage), &["completed: 2 of 2"]);
    assert_eq!(stage.bench.read("effects.txt"), "a\n");
}

fn resume_after_a_failure(row: &Row) {
    let read = call("b", "read_file", json!({ "path": "later.txt" }), &["a"]);
    let mut stage = with(plan(json!([effect("a", &[]), read, effect("c", &["b"])])));
    stage.bench.run(&["run", "p", "--yes"]).ends(1);
    stage.bench.write("later.txt", "there");
    says(&row.play(&mut stage), &["Approve and run?", "completed"]);
    assert_eq!(stage.bench.read("effects.txt"), "a\nc\n");
}

fn guards_are_switched_off(row: &Row) {
    let steps = json!([echo("a", 1, &[]), echo("b", 2, &["a"])]);
    let plan = json!({ "id": "p", "limits": { "budget": { "calls": 1 } }, "steps": steps });
    let mut stage = with(plan);
    stage.bench.run(&["run", "p"]).ends(1);
    says(&row.play(&mut stage), &["completed: 2 of 2"]);
}

/// A plan that reads a file that is not there.
fn failing() -> Value {
    plan(json!([
        call(
            "read",
            "local.read_file",
            json!({ "path": "note.txt" }),
            &[]
        ),
        echo("tell", "${read}", &[]),
    ]))
}

fn the_rest_is_planned_anew(row: &Row) {
    let mut stage = with_provider(model());
    store(&stage, &failing());
    says(&row.play(&mut stage), &["completed"]);
}

fn the_graph(row: &Row) {
    let mut stage = with(plan(json!([echo("a", 1, &[]), echo("b", 2, &["a"])])));
    says(&row.play(&mut stage), &["← after: a", "[demo.echo]"]);
}

fn commands_of_the_chat(row: &Row) {
    let mut stage = with_provider(model()).ends("planwright chat", 3).input(
        "/plan list\n/plan show p\n/plan run p\n/plan create \"read the notes\"\n/plan resume p\n/plan delete p --yes\n/quit\n",
    );
    store(&stage, &plan(json!([echo("a", 7, &[])])));
    says(
        &row.play(&mut stage),
        &[
            "A plan",
            "p completed: 1 of 1 steps",
            "Read the notes",
            "already ended",
            "p  deleted",
        ],
    );
}

fn plan_tools_of_the_chat(row: &Row) {
    let run = ScriptedReply::calls([("plan_execute", json!({ "plan_id": "p" }))]);
    let mut stage = with_script([run, ScriptedReply::text("done")]).input("run p\n");
    store(&stage, &plan(json!([echo("a", "made it", &[])])));
    says(&row.play(&mut stage), &["done"]);
    says(
        &told(&stage, 0),
        &["\"plan_create\"", "\"plan_create_and_execute\""],
    );
    says(&told(&stage, 1), &["made it"]);
}

fn a_tool_runs_nothing_that_needs_a_yes(row: &Row) {
    let run = ScriptedReply::calls([("plan_execute", json!({ "plan_id": "p" }))]);
    let mut stage = with_script([run, ScriptedReply::text("it waits")]).input("run p\n");
    store(&stage, &plan(json!([effect("a", &[])])));
    row.play(&mut stage);
    says(&told(&stage, 1), &["planwright approve p"]);
    assert!(!stage.bench.path("effects.txt").exists());
}

fn servers_as_tools(row: &Row) {
    let bench = Bench::new();
    let named = json!({ "mcpServers": { "git": git_server() } });
    bench.write(".mcp.json", &named.to_string());
    bench.trust();
    let read = call("log", "git.git_log", json!({}), &[]);
    bench.plan("p", json!([read]));
    let mut stage = on(bench, "p");
    says(&row.play(&mut stage), &["git", "2 tools"]);
    stage.bench.run(&["run", "p.json", "--yes"]).ends(0);
}

fn demo(row: &Row) {
    let said = row.play(&mut Stage::new(Bench::new()));
    says(&said, &["nothing is lost or changed"]);
}

fn comments_and_dollar_names(row: &Row) {
    let bench = Bench::new();
    bench.write("plan.json", printed!("dollar_reference.json"));
    bench.write("data.json", "{}");
    let mut stage = on(bench, "p");
    says(&row.play(&mut stage), &["version 1  proposed"]);
    let list = stage.bench.run(&["list", "--json"]).ends(0).json();
    let id = list[0]["id"].as_str().unwrap();
    stage.bench.run(&["run", id, "--yes"]).ends(0);
    assert_eq!(stage.bench.read("processed.json"), "{}");
}

fn fields_of_plan_and_step(row: &Row) {
    let bench = Bench::new();
    bench.write("plan.json", printed!("generated_steps.json"));
    let mut stage = on(bench, "p");
    says(&row.play(&mut stage), &["version 1  proposed"]);
    let list = stage.bench.run(&["list", "--json"]).ends(0).json();
    let id = list[0]["id"].as_str().unwrap();
    let shown = stage.bench.run(&["show", id, "--json"]).ends(0).json();
    let step = &shown["steps"][1];
    assert_eq!(step["title"], "Update version to 2.0.0");
    assert_eq!(step["dependsOn"], json!(["step_1"]));
}

fn the_prompt(row: &Row) {
    let mut stage = with_script([]);
    says(
        &row.play(&mut stage),
        &[
            "local.read_file",
            "notes.txt",
            "dependsOn",
            "read the notes",
        ],
    );
    assert!(stage.provider.as_ref().unwrap().asked().is_empty());
}

fn the_planner_asks_for_checks(row: &Row) {
    let made = json!({ "title": "Read them", "steps": [
        { "id": "s1", "title": "Read", "tool": "local.read_file", "args": { "path": "notes.txt" },
          "approvalRequired": true, "expect": "size(result) > 0", "retry": { "max": 2 } } ] });
    let mut stage = with_script([ScriptedReply::json(made)]);
    says(&row.play(&mut stage), &["proposed"]);
    let list = stage.bench.run(&["list", "--json"]).ends(0).json();
    let id = list[0]["id"].as_str().unwrap();
    let shown = stage.bench.run(&["show", id, "--json"]).ends(0).json();
    let step = &shown["steps"][0];
    assert_eq!(step["approvalRequired"], true);
    assert_eq!(
        (&step["expect"], &step["retry"]["max"]),
        (&json!("size(result) > 0"), &json!(2))
    );
}

fn validation(row: &Row) {
    let bench = Bench::new();
    let steps = json!([
        echo("a", 1, &["b"]),
        echo("b", 1, &["a"]),
        call("c", "demo.echo", json!({}), &["x"]),
        call("d", "no.such", json!({}), &[])
    ]);
    bench.write("plan.json", &plan(steps).to_string());
    let mut stage = on(bench, "p").ends("planwright validate", 2);
    says(&row.play(&mut stage), &["E0104", "E0106", "E0120", "E0122"]);
}

fn a_review(row: &Row) {
    let mut stage = with(plan(json!([effect("a", &[])])));
    says(
        &row.play(&mut stage),
        &["append_file", "path: effects.txt", "p  version 1  approved"],
    );
}

fn an_edit(row: &Row) {
    let stage = with(plan(json!([echo("a", "first", &[])])));
    let mut stage = stage.variable("EDITOR", "sed -i s/first/second/");
    says(&row.play(&mut stage), &["p  version 2  proposed"]);
}

fn states_of_steps(row: &Row) {
    let failing = json!({ "id": "b", "tool": "demo.fail", "critical": false });
    let stage = with(plan(json!([
        echo("a", 1, &[]),
        failing,
        echo("c", 1, &["b"])
    ])));
    let result = stage.bench.run(&["run", "p", "--json"]).ends(0).json();
    let mut stage = stage
        .word("RUN", result["runId"].as_str().unwrap())
        .program();
    let shown: Value = serde_json::from_str(&row.play(&mut stage)).unwrap();
    assert_eq!(shown["status"], "completed");
    let states = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["status"].clone());
    assert_eq!(
        states.collect::<Vec<_>>(),
        ["completed", "failed", "blocked"]
    );
}

fn a_gate(row: &Row) {
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    let stage = with(plan(json!([gate]))).word("STEP", "gate");
    stage.bench.run(&["run", "p", "--yes"]).ends(4);
    let digest = stage.bench.digest("p");
    let mut stage = stage.word("D", digest);
    says(&row.play(&mut stage), &["step gate  approved"]);
    stage.bench.run(&["resume", "p"]).ends(0);
}

fn progress(row: &Row) {
    let mut stage = with(plan(json!([sleep("a", 300, &[])])));
    let running = stage.bench.start(&["run", "p"]);
    stage.bench.wait_for("p", "attempt_started", "a");
    says(&row.play(&mut stage), &["running", "run.completed"]);
    running.wait();
}

fn a_log(row: &Row) {
    let mut stage = with(plan(json!([echo("a", 1, &[])])));
    stage.bench.run(&["run", "p"]).ends(0);
    says(
        &row.play(&mut stage),
        &["attempt_started", "attempt_succeeded", "demo.echo"],
    );
}

fn a_model_after_a_failure(row: &Row) {
    let mut stage = with_provider(model());
    store(&stage, &failing());
    says(&row.play(&mut stage), &["needs adjustment", "completed"]);
}

fn a_question(row: &Row) {
    let ask = json!({ "id": "ask", "input": { "message": "Which one?", "schema": { "type": "object",
        "properties": { "name": { "type": "string" } } } } });
    let one = json!({ "id": "each", "forEach": "${list}", "when": "item > 1", "tool": "demo.echo", "args": { "value": "${item}" } });
    let plan = json!({ "id": "p", "variables": { "list": [1, 2] }, "steps": [ask, one] });
    let mut stage = with(plan);
    stage.bench.run(&["run", "p"]).ends(4);
    says(&row.play(&mut stage), &["Which one?", "name"]);
}

fn results(row: &Row) {
    let failing = json!({ "id": "b", "tool": "demo.fail", "critical": false });
    let mut stage = with(plan(json!([echo("a", 1, &[]), failing]))).program();
    let result: Value = serde_json::from_str(&row.play(&mut stage)).unwrap();
    assert_eq!(result["steps"][0]["value"], 1);
    assert!(result["steps"][0]["durationMs"].is_u64());
    assert_eq!(result["steps"][1]["error"]["code"], "demo_failure");
}

/// A stage with the plan of pi as a file.
fn of_pi(replies: impl IntoIterator<Item = ScriptedReply>) -> Stage {
    let stage = with_script(replies);
    stage.bench.write("PLAN-a1b2c3d4.md", PI_PLAN);
    stage
}

fn stored_of_pi() -> Stage {
    let work = || ScriptedReply::calls([("demo.echo", json!({ "value": "seen" }))]);
    let stage = of_pi([
        work(),
        ScriptedReply::text("fetched"),
        work(),
        ScriptedReply::text("noted"),
    ]);
    stage.bench.run(&["import", "PLAN-a1b2c3d4.md"]).ends(0);
    stage.word("ID", "PLAN-a1b2c3d4")
}

fn frontmatter(row: &Row) {
    let mut stage = of_pi([]);
    says(&row.play(&mut stage), &["PLAN-a1b2c3d4", "proposed"]);
}

fn a_plan_of_pi_runs(row: &Row) {
    let mut stage = stored_of_pi();
    says(&row.play(&mut stage), &["PLAN-a1b2c3d4 completed: 2 of 2"]);
}

fn an_executor(row: &Row) {
    let work = ScriptedReply::calls([("demo.echo", json!({ "value": "seen" }))]);
    let outside = ScriptedReply::calls([("local.read_file", json!({ "path": "notes.txt" }))]);
    let mut stage = with_script([work, outside, ScriptedReply::text("done")]);
    let plan = json!({ "id": "p", "toolsRequired": ["demo.echo"], "steps": [
        { "description": "Look at it", "tool": "demo", "operation": "read" } ] });
    store(&stage, &plan);
    says(&row.play(&mut stage), &["completed: 1 of 1"]);
    says(&told(&stage, 2), &["seen", "scope"]);
}

fn propose(row: &Row) {
    let bench = Bench::new();
    bench.write("propose.json", printed!("propose_invoice.json"));
    let mut stage = on(bench, "p");
    says(&row.play(&mut stage), &["version 1  proposed"]);
    let list = stage.bench.run(&["list", "--json"]).ends(0).json();
    let id = list[0]["id"].as_str().unwrap();
    let shown = stage.bench.run(&["show", id, "--json"]).ends(0).json();
    assert_eq!(shown["steps"][1]["dependsOn"], json!(["1"]));
    assert_eq!(shown["steps"][2]["dependsOn"], json!(["2"]));
}

fn context_reaches_the_executor(row: &Row) {
    let mut stage = stored_of_pi();
    row.play(&mut stage);
    says(
        &told(&stage, 0),
        &["bank account XYZ", "invoice-2024-0847.pdf"],
    );
}

fn large_context(row: &Row) {
    let first = Bench::new();
    let context = json!({ "toolOutputs": { "listing": "x".repeat(60_000) } });
    let plan = json!({ "id": "p", "context": context, "steps": [echo("a", 1, &[])] });
    first.write("plan.json", &plan.to_string());
    first.run(&["import", "plan.json"]).ends(0);
    let bench = Bench::new();
    bench.write(
        "artifacts/listing.json",
        &first.read(".plans/p/artifacts/listing.json"),
    );
    bench.write("plan.md", &first.read(".plans/p/plan.md"));
    let mut stage = on(bench, "p");
    row.play(&mut stage);
    assert_eq!(
        stage.bench.read(".plans/p/artifacts/listing.json").len(),
        60_002
    );
}

fn tools_of_the_executor(row: &Row) {
    let mut stage = stored_of_pi();
    says(&row.play(&mut stage), &["demo.echo", "demo.sleep"]);
}

fn an_older_version(row: &Row) {
    let bench = with(plan(json!([echo("a", "first", &[])]))).bench;
    bench.write("plan.md", &bench.read(".plans/p/plan.md"));
    bench.run(&["edit", "p", "--set", "title=Other"]).ends(0);
    let mut stage = on(bench, "p").ends("planwright import", 3);
    says(&row.play(&mut stage), &["version 2"]);
}

fn a_rejection(row: &Row) {
    let mut stage = with(plan(json!([effect("a", &[])]))).word("…", "'too much'");
    says(&row.play(&mut stage), &["rejected"]);
    let shown = stage.bench.run(&["show", "p"]).ends(0);
    says(&shown.out, &["too much"]);
}

fn three_rejections(row: &Row) {
    let mut stage = with(plan(json!([echo("a", 0, &[])])));
    for version in 1..=3 {
        let version = version.to_string();
        let reject = ["reject", "p", "--version", &version, "--reason", "no"];
        stage.bench.run(&reject).ends(0);
        if version != "3" {
            let value = format!("steps.a.args.value={version}");
            stage.bench.run(&["edit", "p", "--set", &value]).ends(0);
        }
    }
    says(&row.play(&mut stage), &["needs_review"]);
}

fn a_stalled_run(row: &Row) {
    let bench = Bench::new();
    bench.configure("[plans]\nstalled_after = \"1s\"\n");
    let file = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    let running = bench.start(&["run", &file]);
    bench.wait_for("p", "attempt_started", "a");
    running.kill();
    wait_until("the run to be stalled", || bench.status("p") == "stalled");
    says(&row.play(&mut on(bench, "p")), &["stalled"]);
}

fn missing_tools(row: &Row) {
    let plan = json!({ "id": "p", "toolsRequired": ["demo.echo", "zz.nope"], "steps": [echo("a", 1, &[])] });
    let mut stage = with(plan).ends("planwright approve", 2);
    says(
        &row.play(&mut stage),
        &["Required tools not available: zz.nope"],
    );
}

fn archive(row: &Row) {
    let mut stage = with(plan(json!([echo("a", 1, &[])])));
    stage.bench.run(&["run", "p"]).ends(0);
    says(&row.play(&mut stage), &["p  archived"]);
    assert_eq!(
        stage.bench.run(&["list", "--json"]).ends(0).json(),
        json!([])
    );
}

fn figures(row: &Row) {
    let mut stage = with(plan(json!([echo("a", 1, &[])])));
    stage.bench.run(&["run", "p"]).ends(0);
    let missing = call("a", "no.such", json!({}), &[]);
    stage.bench.plan("q", json!([missing]));
    stage.bench.run(&["import", "q.json"]).ends(0);
    says(&row.play(&mut stage), &["demo.echo", "no.such"]);
}

fn plan_mode_of_the_client(row: &Row) {
    let mut stage = Stage::new(Bench::new());
    says(&row.play(&mut stage), &["SKILL.md"]);
    let skill = stage
        .bench
        .home()
        .join(".claude/skills/planwright/SKILL.md");
    assert!(skill.is_file());
}

fn a_failure_stops(row: &Row) {
    let failing = call("a", "demo.fail", json!({ "retryable": false }), &[]);
    let mut stage = with(plan(json!([failing, effect("b", &["a"])]))).ends("planwright run", 1);
    says(
        &row.play(&mut stage),
        &["failed as asked", "planwright resume p"],
    );
    assert!(!stage.bench.path("effects.txt").exists());
}

fn an_adjustment_is_a_version(row: &Row) {
    let mut stage = with_provider(model());
    store(&stage, &failing());
    let adjusted = ["run", "p", "--reflect", "--yes", "--yes-adjustments"];
    stage.bench.run(&adjusted).ends(0);
    says(
        &row.play(&mut stage),
        &["version 1 → version 2", "notes.txt"],
    );
}

fn silence_is_unknown(row: &Row) {
    let mut stage = with_script([]);
    store(&stage, &failing());
    stage.bench.run(&["run", "p", "--reflect", "--yes"]).ends(1);
    says(&row.play(&mut stage), &["unknown"]);
}

fn stop(row: &Row) {
    let mut stage = with(plan(json!([sleep("a", 700, &[]), echo("b", 1, &["a"])])));
    let running = stage.bench.start(&["run", "p"]);
    stage.bench.wait_for("p", "attempt_started", "a");
    says(&row.play(&mut stage), &["planwright resume p"]);
    running.wait();
    assert_eq!(stage.bench.status("p"), "paused");
    stage.bench.run(&["stop", "p", "--cancel"]).ends(0);
    assert_eq!(stage.bench.status("p"), "cancelled");
}

fn restore(row: &Row) {
    let mut stage = with(plan(json!([echo("a", "first", &[])])));
    stage
        .bench
        .run(&["edit", "p", "--set", "steps.a.args.value=second"])
        .ends(0);
    says(&row.play(&mut stage), &["p  version 3  proposed"]);
}

fn fallback(row: &Row) {
    let mut stage = on(Bench::new(), "p");
    says(
        &row.play(&mut stage),
        &["version 1  draft", "without a model"],
    );
}

fn going_on_is_no_success(row: &Row) {
    let failing = call("a", "demo.fail", json!({ "retryable": false }), &[]);
    let steps = json!([failing, echo("b", 1, &[])]);
    let plan = json!({ "id": "p", "limits": { "onFailure": "continue" }, "steps": steps });
    let mut stage = with(plan).ends("planwright run", 1);
    says(&row.play(&mut stage), &["completed_with_failures"]);
}

fn resume_with_a_lost_call(row: &Row) {
    let bench = Bench::new();
    bench.configure("[local]\nrun_command = true\n");
    let slow = json!({ "command": "sh", "args": ["-c", "echo made >> effects.txt; sleep 1"] });
    let steps = json!([call("a", "local.run_command", slow.clone(), &[])]);
    bench.plan("p", steps);
    bench.run(&["import", "p.json"]).ends(0);
    let running = bench.start(&["run", "p", "--yes"]);
    wait_until("the effect", || bench.read("effects.txt") == "made\n");
    running.kill();
    let mut unsafe_one = on(bench, "p")
        .answers("happened", "\u{4}")
        .ends("planwright resume", 4);
    says(&row.play(&mut unsafe_one), &["planwright resolve p a"]);
    assert_eq!(
        unsafe_one.bench.read("effects.txt"),
        "made\n",
        "it is not made again"
    );

    let bench = Bench::new();
    bench.configure(
        "[local]\nrun_command = true\n[tools.\"local.run_command\"]\nclass = \"keyed\"\n",
    );
    bench.plan("p", json!([call("a", "local.run_command", slow, &[])]));
    bench.run(&["import", "p.json"]).ends(0);
    let running = bench.start(&["run", "p", "--yes"]);
    wait_until("the effect", || bench.read("effects.txt") == "made\n");
    running.kill();
    let mut keyed = on(bench, "p");
    says(&row.play(&mut keyed), &["completed"]);
    assert_eq!(
        keyed.bench.read("effects.txt"),
        "made\nmade\n",
        "under its key"
    );
}

fn another_place(row: &Row) {
    let bench = Bench::new();
    let store = bench.home().join("other.db");
    let path = store.to_str().unwrap().to_owned();
    let file = bench.plan("elsewhere", json!([echo("a", 1, &[])]));
    let mut import = bench.command(&["import", &file]);
    import.env("PLAN_RUNTIME_STORE_PATH", &path);
    assert!(import.output().unwrap().status.success());
    assert!(store.is_file());
    let mut stage = on(bench, "p").word("…", path);
    says(&row.play(&mut stage), &["elsewhere"]);
}

fn encryption(row: &Row) {
    let stage = with(plan(json!([echo("a", "a canary", &[])])));
    let mut stage = stage
        .answers("New passphrase: ", "correct horse battery\n")
        .answers("Once more: ", "correct horse battery\n");
    says(&row.play(&mut stage), &["encrypted"]);
    let bytes = std::fs::read(stage.bench.path(".plans/planwright.db")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("a canary"));
    stage.bench.run(&["list"]).ends(6);
}
