//! Plans in every spelling people and models write them.

use crate::plans::{
    ALL, DOLLAR_REFERENCE, GENERATED_STEPS, PROPOSE_INVOICE, REFACTOR_AUTH, SHIP_MILESTONE,
    document, read,
};
use planwright_core::plan::{Bounds, Code, Document, Plan, ReadPlanError, SourceLocation};
use serde_json::{Value, json};

fn refused(text: &str) -> ReadPlanError {
    Document::read(text.as_bytes(), &Bounds::default()).unwrap_err()
}

fn refused_at(value: Value, pointer: &str) -> ReadPlanError {
    let error = refused(&value.to_string());
    assert_eq!(
        error.place,
        SourceLocation::Pointer(pointer.to_owned()),
        "{error}"
    );
    error
}

fn ids(document: &Document) -> Vec<&str> {
    document
        .steps
        .iter()
        .map(|step| step.id.as_ref().unwrap().as_str())
        .collect()
}

#[test]
fn a_plan_of_every_dialect_imports_and_compiles() {
    for text in ALL {
        Plan::compile(read(text), &Bounds::default())
            .unwrap_or_else(|findings| panic!("{findings:#?}"));
    }
}

#[test]
fn a_plan_saved_and_loaded_again_is_identical_ids_included() {
    for text in ALL {
        let first = read(text);
        let again = read(&serde_json::to_string(&first).unwrap());
        assert_eq!(first, again);
        let compiled = Plan::compile(first, &Bounds::default()).unwrap();
        let saved = serde_json::to_string_pretty(compiled.document()).unwrap();
        assert_eq!(**compiled.document(), read(&saved));
    }
}

#[test]
fn snake_case_and_index_become_canonical() {
    let plan = read(REFACTOR_AUTH);
    assert_eq!(plan.id.as_ref().unwrap().as_str(), "refactor-auth-001");
    assert_eq!(ids(&plan), ["1", "2", "3", "4"]);
    assert_eq!(plan.steps[2].depends_on.len(), 2);
    assert_eq!(plan.steps[0].result.as_deref(), Some("auth_code"));
}

#[test]
fn a_dollar_and_a_step_id_become_a_reference_and_comments_are_ignored() {
    let plan = read(DOLLAR_REFERENCE);
    assert_eq!(plan.steps[1].args["content"], "${step_1}");
    let other = document(json!({"variables": {"v": "$a"}, "steps": [
        {"id": "a", "tool": "t"},
        {"id": "b", "tool": "t", "args": {"x": ["$a", "$b2", "$5", "$${a}", "cost $a"]},
         "undo": {"tool": "u", "args": {"y": "$a"}}, "forEach": "$a"},
    ]}));
    assert_eq!(
        other.steps[1].args["x"],
        json!(["${a}", "$b2", "$5", "$${a}", "cost $a"])
    );
    assert_eq!(other.steps[1].undo.as_ref().unwrap().args["y"], "${a}");
    assert_eq!(other.steps[1].for_each, Some(json!("${a}")));
    assert_eq!(
        other.variables["v"], "$a",
        "a variable is a value and never read as a reference"
    );
}

#[test]
fn what_happened_to_a_plan_is_not_part_of_it() {
    let plan = read(GENERATED_STEPS);
    assert_eq!(plan.steps[0].result, None);
    assert_eq!(plan.steps[0].title.as_deref(), Some("Read config.json"));
    assert_eq!(plan.estimated_duration, Some(120.0));
}

#[test]
fn a_step_with_an_operation_and_no_args_is_an_instruction_for_an_agent() {
    let plan = read(PROPOSE_INVOICE);
    let agent = plan.steps[1].agent.as_ref().unwrap();
    assert_eq!(agent.instruction, "Send payment reminder to client");
    assert_eq!(agent.tool.as_deref(), Some("go-easy"));
    assert_eq!(agent.operation.as_deref(), Some("gmail send"));
    assert_eq!(agent.target.as_deref(), Some("client"));
    assert_eq!(plan.steps[1].tool, None);
    assert!(
        plan.context
            .notes
            .as_ref()
            .unwrap()
            .contains("bank account XYZ")
    );
    assert_eq!(plan.planner_model.as_deref(), Some("claude-sonnet-4-5"));
}

#[test]
fn a_plan_is_taken_out_of_its_envelope() {
    let plan = read(SHIP_MILESTONE);
    assert_eq!(plan.id.as_ref().unwrap().as_str(), "plan-a1b2c3d4");
    assert_eq!(plan.steps[1].title.as_deref(), Some("apply_changes"));
    assert_eq!(plan.steps[1].timeout_seconds, Some(900.0));
    assert!(plan.steps[1].approval_required);
    assert_eq!(plan.success_criteria.len(), 3);
    refused_at(json!({"plan": {"steps": []}, "extra": 1}), "/extra");
}

#[test]
fn a_bare_list_of_steps_is_a_plan() {
    assert_eq!(ids(&read(r#"[{"tool": "a"}, {"tool": "b"}]"#)), ["1", "2"]);
}

#[test]
fn missing_ids_are_numbered_by_position_around_those_taken() {
    let plan = read(r#"[{"tool":"a"}, {"id":"1","tool":"b"}, {"tool":"c"}, {"id":2,"tool":"d"}]"#);
    assert_eq!(ids(&plan), ["3", "1", "4", "2"]);
}

#[test]
fn integer_ids_and_dependencies_become_strings() {
    let plan = read(
        r#"[{"id": 1, "tool": "a"}, {"index": 2, "tool": "b", "depends_on": [1]}, {"tool": "c", "dependsOn": 2}]"#,
    );
    assert_eq!(ids(&plan), ["1", "2", "3"]);
    assert_eq!(plan.steps[1].depends_on[0].as_str(), "1");
    assert_eq!(plan.steps[2].depends_on[0].as_str(), "2");
}

#[test]
fn plain_texts_and_schemas_stand_for_actions() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let plan = document(json!({"steps": [
        {"think": "why?"}, {"agent": "do it"}, {"plan": "other"}, {"input": schema}, {"input": {"schema": schema}},
    ]}));
    assert_eq!(plan.steps[0].think.as_ref().unwrap().prompt, "why?");
    assert_eq!(plan.steps[1].agent.as_ref().unwrap().instruction, "do it");
    assert_eq!(plan.steps[2].plan.as_ref().unwrap().id.as_str(), "other");
    assert_eq!(plan.steps[3].input, plan.steps[4].input);
}

#[test]
fn times_are_read_in_the_ways_people_write_them() {
    for (backoff, seconds) in [
        (json!({"backoff": 2}), 2.0),
        (json!({"backoff": "500ms"}), 0.5),
        (json!({"backoff": "2s"}), 2.0),
        (json!({"backoff": "1m"}), 60.0),
        (json!({"backoffMs": 250}), 0.25),
        (json!({"backoff_ms": 250}), 0.25),
        (json!({"backoff_seconds": 3}), 3.0),
    ] {
        let plan = document(json!([{"tool": "t", "retry": backoff}]));
        assert_eq!(
            plan.steps[0].retry.as_ref().unwrap().backoff,
            seconds,
            "{backoff}"
        );
    }
    assert_eq!(
        document(json!([{"tool": "t", "retry": 3}])).steps[0]
            .retry
            .as_ref()
            .unwrap()
            .max,
        3
    );
    let error = refused_at(
        json!([{"tool": "t", "retry": {"backoff": "soon"}}]),
        "/steps/0/retry/backoff",
    );
    assert!(error.suggestion.unwrap().contains("500ms"));
    refused_at(
        json!([{"tool": "t", "retry": {"backoff": 1, "backoffMs": 1}}]),
        "/steps/0/retry/backoffMs",
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    let error = refused_at(
        json!({"steps": [{"tool": "t", "dependOn": []}]}),
        "/steps/0/dependOn",
    );
    assert_eq!(error.code, Code::Shape);
    assert_eq!(
        error.suggestion.as_deref(),
        Some("did you mean `dependsOn`?")
    );
    refused_at(json!({"stepz": []}), "/stepz");
    refused_at(
        json!({"steps": [], "limits": {"budget": {"callz": 1}}}),
        "/limits/budget/callz",
    );
}

#[test]
fn a_wrong_type_is_refused_where_it_stands() {
    refused_at(json!({"steps": [{"tool": 5}]}), "/steps/0/tool");
    refused_at(json!({"steps": {"a": 1}}), "/steps");
    refused_at(json!({"steps": ["x"]}), "/steps/0");
    refused_at(json!("plan"), "");
    refused_at(
        json!({"steps": [{"tool": "t", "timeoutSeconds": true}]}),
        "/steps/0/timeoutSeconds",
    );
}

#[test]
fn the_same_thing_said_twice_must_be_the_same() {
    let error = refused_at(
        json!([{"tool": "t", "depends_on": ["a"], "dependsOn": ["b"]}]),
        "/steps/0/depends_on",
    );
    assert!(error.message.contains("another spelling"));
    document(json!([{"tool": "t", "title": "x", "description": "x"}]));
}

#[test]
fn hostile_ids_are_refused() {
    for id in [
        "../escaped",
        "a/../../b",
        "a\0",
        "",
        "-flag",
        "a b",
        "é",
        "a.b",
        "CON/x",
        "${x}",
        &"x".repeat(65),
    ] {
        let error = refused_at(json!({"steps": [{"id": id, "tool": "t"}]}), "/steps/0/id");
        assert_eq!(error.code, Code::BadId, "{id:?}");
    }
    for id in ["../escaped", ".hidden", "a/b", "trailing.", &"x".repeat(65)] {
        assert_eq!(
            refused_at(json!({"id": id, "steps": []}), "/id").code,
            Code::BadId,
            "{id:?}"
        );
    }
    assert_eq!(
        refused_at(
            json!([{"tool": "t", "dependsOn": ["../x"]}]),
            "/steps/0/dependsOn/0"
        )
        .code,
        Code::BadId
    );
}

#[test]
fn broken_json_is_placed_by_line_and_column() {
    let error = refused("{\n  \"steps\": [,]\n}");
    assert_eq!(error.code, Code::Syntax);
    assert!(
        matches!(error.place, SourceLocation::Text { line: 2, .. }),
        "{error}"
    );
    assert!(
        refused(r#"{"steps": [], "steps": []}"#)
            .message
            .contains("\"steps\" is given twice")
    );
}

#[test]
fn documents_are_bounded_on_both_sides() {
    let bounds = Bounds {
        max_document_bytes: 50,
        max_steps: 2,
        max_depth: 4,
        ..Bounds::default()
    };
    let code = |text: &str| Document::read(text.as_bytes(), &bounds).map_err(|error| error.code);
    assert!(code(r#"[{"tool":"a"},{"tool":"b"}]"#).is_ok());
    assert_eq!(
        code(r#"[{"tool":"a"},{"tool":"b"},{"tool":"c"}]"#),
        Err(Code::TooLarge)
    );
    assert_eq!(code(&format!("[{}]", " ".repeat(49))), Err(Code::TooLarge));
    assert!(code(&format!("[{}]", " ".repeat(48))).is_ok());
    assert!(code(r#"[{"tool":"a","args":{"x":[1]}}]"#).is_ok());
    assert_eq!(
        code(r#"[{"tool":"a","args":{"x":[[1]]}}]"#),
        Err(Code::TooLarge)
    );
}

#[test]
fn absent_and_null_are_the_same() {
    let plan =
        document(json!({"id": null, "steps": [{"tool": "t", "dependsOn": null, "result": null}]}));
    assert_eq!(plan, document(json!([{"tool": "t"}])));
}

#[test]
fn what_has_named_fields_is_never_a_list() {
    for (text, at) in [
        (
            r#"{"steps": [{"input": [null, {"type": "object"}]}]}"#,
            "/steps/0/input",
        ),
        (
            r#"{"steps": [{"tool": "t", "retry": [3, 1.0]}]}"#,
            "/steps/0/retry",
        ),
        (r#"{"steps": [["1", "a title"]]}"#, "/steps/0"),
        (r#"{"steps": [], "limits": [4]}"#, "/limits"),
        (r#"{"steps": [], "context": []}"#, "/context"),
    ] {
        let error = Document::read(text.as_bytes(), &Bounds::default())
            .unwrap_err()
            .into_finding();
        assert_eq!(error.pointer, at, "{text}: {error}");
    }
}

#[test]
fn counts_are_whole_numbers_however_they_are_written_and_arguments_stay_as_they_are() {
    let plan = json!({
        "title": "P",
        "limits": { "maxCycles": 2.0, "budget": { "calls": 5.0, "perTool": { "a.b": 1.0 } } },
        "steps": [
            { "id": "a", "tool": "a.b", "args": { "n": 1.0 }, "retry": { "max": 3.0 } },
            { "id": "b", "agent": { "instruction": "Do it.", "maxTurns": 4.0 } },
        ],
    });
    let read = Document::read(plan.to_string().as_bytes(), &Bounds::default()).unwrap();
    assert_eq!(read.limits.max_cycles, Some(2));
    assert_eq!(read.limits.budget.calls, Some(5));
    assert_eq!(read.limits.budget.per_tool["a.b"], 1);
    assert_eq!(read.steps[0].retry.as_ref().map(|retry| retry.max), Some(3));
    assert_eq!(read.steps[1].agent.as_ref().unwrap().max_turns, Some(4));
    assert!(read.steps[0].args["n"].is_f64());
    let half = json!({ "title": "P", "limits": { "maxCycles": 2.5 }, "steps": [] });
    refused_at(half, "/limits/maxCycles");
}
