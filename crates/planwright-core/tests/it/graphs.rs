//! Steps and what they wait for.

use crate::plans::{check, document, plan, structural, with_code};
use planwright_core::plan::{Bounds, Code, Plan, StepIx};
use planwright_core::tool::Catalog;
use serde_json::{Value, json};

fn level_sizes(plan: &Plan) -> Vec<usize> {
    plan.graph().levels().iter().map(Vec::len).collect()
}

fn after(plan: &Plan, index: usize) -> Vec<usize> {
    plan.graph()
        .dependencies(StepIx::new(index))
        .iter()
        .map(|ix| ix.index())
        .collect()
}

#[test]
fn a_plan_without_steps_is_a_plan() {
    assert!(plan(json!({"steps": []})).is_empty());
    let found = check(json!({"steps": []}), &Catalog::default());
    assert_eq!(found.findings[0].code, Code::NoSteps);
    assert!(found.is_sound());
}

#[test]
fn a_diamond_shows_levels_of_one_two_one() {
    let diamond = plan(json!([
        {"id": 1, "tool": "t"}, {"id": 2, "tool": "t", "dependsOn": [1]}, {"id": 3, "tool": "t", "dependsOn": [1]},
        {"id": 4, "tool": "t", "dependsOn": [2, 3]},
    ]));
    assert_eq!(level_sizes(&diamond), [1, 2, 1]);
}

#[test]
fn five_roots_and_a_join_show_levels_of_five_one() {
    let mut steps = vec![json!({"tool": "t"}); 5];
    steps.push(json!({"tool": "t", "dependsOn": [1, 2, 3, 4, 5]}));
    assert_eq!(level_sizes(&plan(Value::Array(steps))), [5, 1]);
}

#[test]
fn a_reference_makes_an_edge_by_itself() {
    let plan = plan(json!([
        {"id": "a", "tool": "t", "result": "x"}, {"id": "b", "tool": "t", "args": {"v": "got ${x.y}"}},
        {"id": "c", "think": "look at ${b}"}, {"id": "d", "tool": "t", "when": "x.size() > 0 && steps.c == 'y'"},
    ]));
    assert_eq!(after(&plan, 1), [0]);
    assert_eq!(after(&plan, 2), [1]);
    assert_eq!(after(&plan, 3), [0, 2]);
}

#[test]
fn dependencies_listed_twice_count_once() {
    let plan =
        plan(json!([{"id": "a", "tool": "t"}, {"id": "b", "tool": "t", "dependsOn": ["a", "a"]}]));
    assert_eq!(after(&plan, 1), [0]);
    assert_eq!(plan.document().steps[1].depends_on.len(), 1);
}

#[test]
fn an_unknown_dependency_is_named_with_the_nearest() {
    let findings = structural(
        json!([{"id": "fetch", "tool": "t"}, {"id": "b", "tool": "t", "dependsOn": ["fetsh"]}]),
    );
    assert_eq!(findings[0].code, Code::UnknownDependency);
    assert_eq!(findings[0].pointer, "/steps/1/dependsOn/0");
    assert!(findings[0].message.contains("`fetsh`"));
    assert_eq!(
        findings[0].suggestion.as_deref(),
        Some("did you mean `fetch`?")
    );
}

#[test]
fn a_self_dependency_is_named() {
    let findings = structural(json!([{"id": "a", "tool": "t", "dependsOn": ["a"]}]));
    assert_eq!(findings[0].code, Code::SelfDependency);
    assert_eq!(findings[0].message, "step `a` depends on itself");
}

#[test]
fn a_duplicate_id_is_named() {
    let findings = structural(json!([{"id": "a", "tool": "t"}, {"id": "a", "tool": "t"}]));
    assert_eq!(
        (findings[0].code, findings[0].pointer.as_str()),
        (Code::DuplicateId, "/steps/1/id")
    );
    assert!(findings[0].message.contains("`a`"));
}

#[test]
fn a_cycle_is_printed_in_full() {
    let findings = structural(json!([
        {"id": "a", "tool": "t", "dependsOn": ["c"]}, {"id": "b", "tool": "t", "args": {"x": "${a}"}},
        {"id": "c", "tool": "t", "dependsOn": ["b"]}, {"id": "d", "tool": "t", "dependsOn": ["a"]},
    ]));
    assert_eq!(findings[0].code, Code::Cycle);
    assert!(
        findings[0].message.ends_with("a → b → c → a"),
        "{}",
        findings[0].message
    );
}

#[test]
fn every_cycle_and_every_other_mistake_is_reported_at_once() {
    let findings = structural(json!([
        {"id": "a", "tool": "t", "dependsOn": ["b"]}, {"id": "b", "tool": "t", "dependsOn": ["a"]},
        {"id": "c", "tool": "t", "dependsOn": ["d"]}, {"id": "d", "tool": "t", "dependsOn": ["c", "nowhere"]},
        {"id": "e"}, {"id": "f", "tool": "t", "think": "x", "timeoutSeconds": -1},
    ]));
    assert_eq!(with_code(&findings, Code::Cycle).len(), 2);
    for code in [
        Code::UnknownDependency,
        Code::NoAction,
        Code::SeveralActions,
        Code::BadNumber,
    ] {
        assert_eq!(with_code(&findings, code).len(), 1, "{code}");
    }
}

#[test]
fn two_steps_that_may_run_at_once_cannot_share_a_result_name() {
    let findings = structural(json!([
        {"id": "a", "tool": "t", "result": "x"}, {"id": "b", "tool": "t", "result": "x"},
        {"id": "c", "tool": "t", "args": {"v": "${x}"}, "dependsOn": ["a", "b"]},
    ]));
    assert_eq!(findings[0].code, Code::ResultClash);
    assert!(
        findings[0].message.contains("`a` and `b`"),
        "{}",
        findings[0].message
    );
    plan(json!([
        {"id": "a", "tool": "t", "result": "x"}, {"id": "m", "tool": "t", "dependsOn": ["a"]},
        {"id": "b", "tool": "t", "result": "x", "dependsOn": ["m"]},
    ]));
}

#[test]
fn steps_and_edges_are_bounded_on_both_sides() {
    let bounds = Bounds {
        max_steps: 3,
        max_edges: 2,
        ..Bounds::default()
    };
    let compile =
        |value: Value| Plan::compile(document(value), &bounds).map_err(|findings| findings[0].code);
    let chain = |n: usize| {
        let step =
            |i: usize| json!({"tool": "t", "dependsOn": if i > 1 { vec![i - 1] } else { vec![] }});
        Value::Array((1..=n).map(step).collect())
    };
    assert!(compile(chain(3)).is_ok());
    assert_eq!(compile(chain(4)).unwrap_err(), Code::TooLarge);
    let triangle =
        json!([{"tool": "t"}, {"tool": "t", "dependsOn": [1]}, {"tool": "t", "dependsOn": [1, 2]}]);
    assert_eq!(compile(triangle).unwrap_err(), Code::TooLarge);
    let long = |length: usize| json!([{"tool": "t", "title": "x".repeat(length)}]);
    assert!(compile(long(64 << 10)).is_ok());
    assert_eq!(compile(long((64 << 10) + 1)).unwrap_err(), Code::TooLarge);
}

#[test]
fn hostile_shapes_end_quickly() {
    let bounds = Bounds::default();
    // One cycle through every step.
    let ring: Vec<Value> = (0..20_000)
        .map(|i| json!({"tool": "t", "dependsOn": [(i + 1) % 20_000 + 1]}))
        .collect();
    assert_eq!(
        Plan::compile(document(Value::Array(ring)), &bounds).unwrap_err()[0].code,
        Code::Cycle
    );
    // Every pair of neighbours shares its own result name.
    let shared = (0..20_000).map(|i| {
        let args = if i % 2 == 1 {
            json!({"v": format!("${{r{}}}", i / 2)})
        } else {
            json!({})
        };
        let after = if i > 0 { vec![i] } else { vec![] };
        json!({"tool": "t", "result": format!("r{}", i / 2), "args": args, "dependsOn": after})
    });
    let shared: Vec<Value> = shared.collect();
    let result = Plan::compile(document(Value::Array(shared)), &bounds);
    assert!(result.is_ok(), "{:?}", result.unwrap_err().first());
    // Everything is wrong everywhere.
    let wrong: Vec<Value> = (0..20_000)
        .map(|i| json!({"dependsOn": [format!("no-{i}")], "args": {"x": "${nothing}"}}))
        .collect();
    let findings = Plan::compile(document(Value::Array(wrong)), &bounds).unwrap_err();
    assert!(findings.len() <= 2_000);
}

#[test]
fn the_same_document_gets_the_same_id() {
    let one = plan(json!([{"tool": "t"}]));
    assert_eq!(one.id(), plan(json!({"steps": [{"tool": "t"}]})).id());
    assert_ne!(one.id(), plan(json!([{"tool": "u"}])).id());
    assert!(one.id().as_str().starts_with("plan-"));
    assert_eq!(one.document().id.as_ref(), Some(one.id()));
}
