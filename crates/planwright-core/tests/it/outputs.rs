//! The value of a plan: its outputs.

use crate::plans::{Have, check, document, plan, with_code};
use planwright_core::plan::{Bounds, Code, KnownPlan, KnownPlans, Plan, validate_with};
use planwright_core::tool::Catalog;
use serde_json::{Value, json};
use std::sync::Arc;

const LIMIT: usize = 1_000;

fn with_outputs(outputs: &Value) -> Value {
    json!({
        "id": "p", "variables": { "who": "Ada" }, "outputs": outputs,
        "steps": [
            { "id": "a", "tool": "t.x", "result": "first" },
            { "id": "b", "tool": "t.y", "args": { "v": "${first}" } },
        ],
    })
}

fn sales() -> Plan {
    plan(with_outputs(&json!({
        "total": "${first.total}", "line": "${who}: ${b}", "all": { "rows": ["${b}"] }, "kind": "sales",
    })))
}

#[test]
fn outputs_are_resolved_and_keep_their_types() {
    let plan = sales();
    let values = Have::variables(json!({ "who": "Ada" }))
        .step(0, json!({ "total": 7 }))
        .step(1, json!([1, 2]));
    let outputs = plan.resolve_outputs(&values, LIMIT);
    assert_eq!(outputs.problems, []);
    let expected =
        json!({ "total": 7, "line": "Ada: [1,2]", "all": { "rows": [[1, 2]] }, "kind": "sales" });
    assert_eq!(Value::Object(outputs.values), expected);
}

#[test]
fn what_a_step_did_not_give_is_null_and_what_it_does_not_have_is_named() {
    let plan = sales();
    let skipped = Have::variables(json!({ "who": "Ada" }))
        .step(0, Value::Null)
        .step(1, json!("x"));
    let outputs = plan.resolve_outputs(&skipped, LIMIT);
    assert_eq!(outputs.values["total"], Value::Null);
    assert_eq!(outputs.problems, []);
    let other = Have::variables(json!({ "who": "Ada" }))
        .step(0, json!({ "sum": 7 }))
        .step(1, json!("x"));
    let outputs = plan.resolve_outputs(&other, LIMIT);
    assert!(!outputs.values.contains_key("total"));
    let said = outputs.problems[0].to_string();
    assert!(said.contains("`total`") && said.contains("sum"), "{said}");
}

#[test]
fn outputs_have_a_limit() {
    let plan = sales();
    let values = Have::variables(json!({ "who": "Ada" }))
        .step(0, json!({ "total": "x".repeat(LIMIT) }))
        .step(1, json!("y"));
    let outputs = plan.resolve_outputs(&values, LIMIT);
    assert_eq!(outputs.problems.len(), 1);
    assert!(outputs.problems[0].to_string().contains("larger than"));
    assert_eq!(outputs.values["kind"], json!("sales"));
    // A value that is not even read is too large as well.
    let values = Have::variables(json!({ "who": "Ada" })).step(1, json!("y"));
    let outputs = plan.resolve_outputs(&values, LIMIT);
    assert_eq!(outputs.problems[0].name, "total");
}

#[test]
fn references_of_outputs_are_checked() {
    for (outputs, code) in [
        (json!({ "x": "${nope}" }), Code::UnresolvedName),
        (json!({ "x": "${steps.nope}" }), Code::UnresolvedName),
        (json!({ "x": "${a" }), Code::MalformedReference),
        (json!({ "x": "${secret.TOKEN}" }), Code::MisplacedSecret),
    ] {
        let report = check(with_outputs(&outputs), &Catalog::default());
        let found = with_code(&report.findings, code);
        assert!(!found.is_empty(), "{outputs}: {:#?}", report.findings);
        assert!(found[0].pointer.starts_with("/outputs"), "{:?}", found[0]);
    }
}

#[test]
fn a_name_of_several_steps_has_to_be_said_more_exactly() {
    let plan = json!({ "id": "p", "outputs": { "x": "${r}" }, "steps": [
        { "id": "a", "tool": "t.x", "result": "r" },
        { "id": "b", "tool": "t.x", "result": "r", "dependsOn": ["a"] },
    ] });
    let report = check(plan, &Catalog::default());
    let found = with_code(&report.findings, Code::UnresolvedName);
    assert_eq!(found.len(), 1, "{:#?}", report.findings);
    assert_eq!(found[0].pointer, "/outputs");
}

#[test]
fn an_output_makes_the_result_of_its_step_used() {
    let unused = |outputs: Value| {
        let plan = json!({ "id": "p", "outputs": outputs, "steps": [
            { "id": "a", "tool": "t.x", "result": "r" },
            { "id": "b", "tool": "t.x", "dependsOn": ["a"] },
        ] });
        let report = check(plan, &Catalog::default());
        with_code(&report.findings, Code::UnusedResult).len()
    };
    assert_eq!(unused(json!({})), 1);
    assert_eq!(unused(json!({ "x": "${r}" })), 0);
}

#[test]
fn outputs_are_part_of_what_is_approved() {
    let digest =
        |outputs: Value| plan(with_outputs(&outputs)).digest(&Catalog::default(), "policy");
    let without = plan(json!({
        "id": "p", "variables": { "who": "Ada" },
        "steps": [
            { "id": "a", "tool": "t.x", "result": "first" },
            { "id": "b", "tool": "t.y", "args": { "v": "${first}" } },
        ],
    }));
    let without = without.digest(&Catalog::default(), "policy");
    assert_eq!(digest(json!({})), without);
    assert_ne!(digest(json!({ "x": "${a}" })), without);
    assert_ne!(
        digest(json!({ "x": "${a}" })),
        digest(json!({ "x": "${b}" }))
    );
}

#[test]
fn the_parts_of_a_sub_plans_value_are_known() {
    let parts = |child: Value, part: &str| {
        let mut known = KnownPlans::default();
        let child = Arc::new(document(child));
        let plan = KnownPlan {
            version: 1,
            document: child,
            needs_person: None,
        };
        known.insert("child".parse().unwrap(), plan);
        let parent = json!({ "id": "p", "steps": [
            { "id": "sub", "plan": { "id": "child" } },
            { "id": "after", "think": { "prompt": format!("${{sub.{part}}}") } },
        ] });
        let catalog = Catalog::default();
        let report = validate_with(document(parent), &catalog, &known, &Bounds::default());
        with_code(&report.findings, Code::UnknownField).len()
    };
    let think = json!([{ "id": "a", "think": { "prompt": "x" }, "result": "r" }, { "id": "b", "think": { "prompt": "y" } }]);
    let named = json!({ "id": "child", "steps": think, "outputs": { "total": "${r}" } });
    assert_eq!(parts(named.clone(), "total"), 0);
    assert_eq!(parts(named, "r"), 1);
    let unnamed = json!({ "id": "child", "steps": think });
    assert_eq!(parts(unnamed.clone(), "r"), 0);
    assert_eq!(parts(unnamed.clone(), "b"), 0);
    assert_eq!(parts(unnamed, "total"), 1);
}
