//! Conditions, loops and questions, as people and other programs see them.

use planwright_testing::steps::{call, echo, effect, step};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn asks(id: &str, schema: Value, after: &[&str]) -> Value {
    json!({ "id": id, "input": { "message": "How many, \u{1b}[31mplease?", "schema": schema }, "dependsOn": after })
}

fn number() -> Value {
    json!({ "type": "object", "required": ["n"], "properties": {
        "n": { "type": "integer", "minimum": 1, "description": "A number." },
        "unit": { "type": "string", "enum": ["kg", "g"], "default": "kg" },
        "fresh": { "type": "boolean" },
    } })
}

fn with(mut step: Value, key: &str, value: Value) -> Value {
    step[key] = value;
    step
}

#[test]
fn references_loops_and_conditions_reach_into_text_that_is_json() {
    let bench = Bench::new();
    let rows = r#"{"rows": [["north", 3], ["south", 4]], "note": "{\"deep\": [true]}"}"#;
    let each = with(
        echo("each", "${item[0]}: ${item[1]}", &[]),
        "forEach",
        json!("${query.result.rows}"),
    );
    let list = with(echo("list", "${item}", &[]), "forEach", json!("${text}"));
    let end = json!({
        "cell": "${query.result.rows[1][0]}", "words": "all: ${query.result.rows}",
        "deep": "${query.result.note.deep[0]}", "whole": "${query.result}",
    });
    let sum = echo("sum", 7, &["query"]);
    let sum = with(sum, "when", json!("json(query.result).rows.size() == 2"));
    let sum = with(sum, "expect", json!("result == 7"));
    let plan = bench.document(json!({ "id": "p", "steps": [
        echo("query", json!({ "result": rows }), &[]),
        echo("text", "[1, 2]", &[]),
        each, list, sum, echo("end", end, &[]),
    ] }));
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    let value = |id: &str| step(&result, id)["value"].clone();
    assert_eq!(value("each"), json!(["north: 3", "south: 4"]));
    assert_eq!(value("list"), json!([1, 2]));
    assert_eq!(value("sum"), json!(7));
    let end = value("end");
    assert_eq!(end["cell"], "south");
    assert_eq!(end["words"], r#"all: [["north",3],["south",4]]"#);
    assert_eq!(end["deep"], true);
    assert_eq!(end["whole"], rows, "the value stays the text that it was");
    // What is no JSON has no parts.
    let plan = bench.document(json!({ "id": "q", "steps": [
        echo("text", "{not json", &[]), echo("end", "${text.rows}", &[]),
    ] }));
    let failed = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(
        step(&failed, "end")["error"]["code"],
        "unresolved_reference"
    );
}

#[test]
fn a_plan_branches_loops_and_says_so() {
    let bench = Bench::new();
    let each = with(
        with(
            echo("each", "${item}-${index}", &[]),
            "forEach",
            json!("${names}"),
        ),
        "maxParallel",
        json!(2),
    );
    let each = with(each, "when", json!("item != 'b'"));
    let plan = bench.document(
        json!({ "id": "p", "variables": { "names": ["a", "b", "c"] }, "steps": [
        each,
        with(echo("never", 1, &["each"]), "when", json!("size(steps.each) > 3")),
        echo("end", json!(["${each}", "${never}"]), &[]),
    ] }),
    );
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(
        step(&result, "end")["value"],
        json!([["a-0", null, "c-2"], null])
    );
    assert_eq!(step(&result, "never")["status"], "skipped");
    let items = step(&result, "each")["items"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert_eq!(
        (&items[0]["status"], &items[0]["value"]),
        (&json!("completed"), &json!("a-0"))
    );
    assert_eq!(
        (&items[1]["status"], &items[1]["error"]["code"]),
        (&json!("skipped"), &json!("skipped"))
    );
    assert_eq!(step(&result, "end").get("items"), None);
    let shown = bench.run(&["run", "p"]).ends(0);
    assert!(shown.out.contains("3 of 3 elements"), "{shown:#?}");
    bench.run(&["replay", "p", "--offline"]).ends(0);
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_dry_run_shows_the_calls_of_a_loop_whose_list_is_known() {
    let bench = Bench::new();
    let each = with(echo("each", "${item}", &[]), "forEach", json!(["x", "y"]));
    let plan = bench.plan(
        "p",
        json!([
            with(each, "when", json!("index < 5")),
            asks("ask", number(), &[])
        ]),
    );
    let result = bench
        .run(&["run", &plan, "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        step(&result, "each")["itemArgs"],
        json!([{ "value": "x" }, { "value": "y" }])
    );
    assert_eq!(
        (
            &step(&result, "each")["when"],
            &step(&result, "ask")["verdict"]
        ),
        (&json!("index < 5"), &json!("ask"))
    );
    let shown = bench.run(&["run", &plan, "--dry-run"]).ends(0);
    assert!(
        shown.out.contains("    [1]:\n      value: y\n"),
        "{shown:#?}"
    );
}

#[test]
fn an_element_that_fails_is_named() {
    let bench = Bench::new();
    let each = with(echo("each", "${item}", &[]), "forEach", json!([1, 2, 3]));
    let plan = bench.plan("p", json!([with(each, "expect", json!("result < 2"))]));
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    let error = &step(&result, "each")["error"];
    assert_eq!(error["code"], "expect_failed");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("element 1: `result < 2` is false"),
        "{error}"
    );
}

#[test]
fn a_call_that_violates_a_constraint_is_not_made() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            echo("path", "effects.txt", &[]),
            with(
                call(
                    "write",
                    "append_file",
                    json!({ "path": "${path}", "content": "x" }),
                    &[]
                ),
                "constraints",
                json!(["args.path.startsWith('out/')"]),
            ),
        ]),
    );
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(1).json();
    assert_eq!(
        step(&result, "write")["error"]["code"],
        "constraint_violated"
    );
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_question_parks_the_run_and_is_answered_from_anywhere() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            asks("ask", number(), &[]),
            echo("beside", 1, &[]),
            echo("use", "${ask.n} ${ask.unit}", &[]),
        ]),
    );
    let parked = bench.run(&["run", &plan, "--yes", "--json"]).ends(4);
    assert_eq!(parked.json()["status"], "waiting");
    assert_eq!(step(&parked.json(), "ask")["status"], "awaiting_input");
    assert_eq!(step(&parked.json(), "beside")["status"], "completed");
    assert!(
        parked
            .err
            .contains("planwright input p ask --set NAME=VALUE"),
        "{parked:#?}"
    );

    let listed = bench.run(&["input", "p", "--json"]).ends(0).json();
    assert_eq!(listed["asked"][0]["step"], "ask");
    assert_eq!(listed["asked"][0]["questions"][0]["schema"], number());
    let text = bench.run(&["input", "p"]).ends(0);
    assert!(
        text.out.contains("How many, [31mplease?") && !text.out.contains('\u{1b}'),
        "{text:#?}"
    );

    bench
        .run(&["input", "p", "ask"])
        .complains(2, "give an answer");
    bench
        .run(&["input", "p", "ask", "--set", "n=0", "--set", "unit=lb"])
        .complains(2, "\"lb\"");
    bench
        .run(&["input", "p", "ask", "--value", "{"])
        .complains(2, "--value");
    bench
        .run(&["input", "p", "nobody", "--decline"])
        .complains(2, "no step");
    bench
        .run(&["input", "p", "use", "--decline"])
        .complains(3, "has no open question");
    let said = bench
        .run(&[
            "input", "p", "ask", "--set", "n=3", "--set", "unit=g", "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(
        (&said["decision"], &said["step"]),
        (&json!("answered"), &json!("ask"))
    );
    bench
        .run(&["input", "p", "ask", "--set", "n=4"])
        .complains(3, "has no open question");
    let result = bench.run(&["resume", "p", "--json"]).ends(0).json();
    assert_eq!(step(&result, "use")["value"], "3 g");
    assert_eq!(
        step(&result, "ask")["value"],
        json!({ "n": 3, "unit": "g" })
    );
}

#[test]
fn a_declined_question_blocks_what_depends_on_it() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([asks("ask", number(), &[]), effect("use", &["ask"])]),
    );
    bench.run(&["run", &plan, "--yes"]).ends(4);
    bench.run(&["input", "p", "ask", "--decline"]).ends(0);
    assert_eq!(bench.status("p"), "failed");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_live_run_takes_an_answer_from_another_process() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            asks("ask", json!({ "type": "integer" }), &[]),
            echo("use", "${ask}", &[])
        ]),
    );
    let running = bench.start(&["run", &plan, "--yes", "--wait", "--json"]);
    wait_until("the question", || {
        bench.path(".plans").exists()
            && bench
                .log("p")
                .iter()
                .any(|entry| entry["kind"] == "input_requested")
    });
    bench.run(&["input", "p", "ask", "--value", "7"]).ends(0);
    let result = running.wait().ends(0).json();
    assert_eq!(step(&result, "use")["value"], 7);
}

#[test]
fn each_element_of_a_gated_loop_is_approved_by_its_name() {
    let bench = Bench::new();
    let each = with(
        with(effect("each", &[]), "forEach", json!([1, 2])),
        "approvalRequired",
        json!(true),
    );
    let plan = bench.plan("p", json!([each]));
    let parked = bench.run(&["run", &plan, "--yes"]).ends(4);
    assert!(parked.err.contains("--step 'each[1]'"), "{parked:#?}");
    bench
        .run(&["approve", "p", "--step", "each[0]", "--version", "1"])
        .ends(0);
    bench
        .run(&["approve", "p", "--step", "each[1]", "--version", "1"])
        .ends(0);
    bench.run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "each\neach\n");
}

#[test]
fn a_person_at_a_terminal_is_asked_field_by_field() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([asks("ask", number(), &[]), echo("use", "${ask}", &[])]),
    );
    let mut terminal = Terminal::start(&bench, &["run", &plan, "--yes"]);
    terminal.wait_for("n (integer):");
    assert!(
        terminal.seen().contains("step ask asks")
            && terminal.seen().contains("How many, [31mplease?")
    );
    terminal.types("many\n");
    terminal.wait_for("that is not a number");
    terminal.types("0\n");
    terminal.wait_for("unit (string; one of kg, g; empty for kg):");
    terminal.types("\n");
    terminal.wait_for("fresh (boolean; may be empty):");
    terminal.types("yes\n");
    // It does not fit the schema: said so, and asked again.
    terminal.wait_for("minimum");
    wait_until("the question again", || {
        terminal.seen().matches("n (integer):").count() == 3
    });
    terminal.types("2\n");
    wait_until("the unit again", || {
        terminal.seen().matches("unit (string").count() == 2
    });
    terminal.types("g\n");
    wait_until("the last field again", || {
        terminal.seen().matches("fresh (boolean").count() == 2
    });
    terminal.types("\n");
    assert_eq!(terminal.ends(), Some(0));
    let log = bench.log("p");
    let given = log
        .iter()
        .find(|entry| entry["kind"] == "input_given")
        .unwrap();
    assert_eq!(
        given["replies"],
        json!([{ "values": { "n": 2, "unit": "g" } }])
    );
}

#[test]
fn a_question_can_be_left_for_later() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([asks("ask", number(), &[])]));
    let mut terminal = Terminal::start(&bench, &["run", &plan, "--yes"]);
    terminal.wait_for("n (integer):");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), Some(4));
    assert_eq!(bench.status("p"), "waiting");
}
