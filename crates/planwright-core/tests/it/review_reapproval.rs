//! After an edit people are asked about what changed: a step that is just as it was agreed to is
//! not asked about again.

use crate::plans::{plan, tool};
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_core::review::steps_already_approved;
use planwright_core::tool::Catalog;
use serde_json::{Value, json};

fn before() -> Value {
    json!({"id": "p", "goal": "Tidy up", "variables": {"where": "here"}, "steps": [
        {"id": "a", "tool": "t.a", "args": {"x": 1}},
        {"id": "b", "tool": "t.b", "args": {"at": "${where}"}},
        {"id": "c", "agent": {"instruction": "do it"}},
    ]})
}

fn judged_by(policy: &Value, after: Value, policy_after: &Value) -> Vec<String> {
    let read = |policy: &Value| {
        let document: PolicyDocument = serde_json::from_value(policy.clone()).unwrap();
        Policy::read(&document).unwrap()
    };
    let catalog = Catalog::new([
        tool("t", "a", json!({"type": "object"}), None),
        tool("t", "b", json!({"type": "object"}), None),
    ]);
    let before = plan(before());
    let after = plan(after);
    let judged_before = read(policy).judge_plan(&before, &catalog);
    let judged_after = read(policy_after).judge_plan(&after, &catalog);
    steps_already_approved((&before, &judged_before), (&after, &judged_after))
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The steps that need no new approval once the plan was changed like this.
fn kept(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut after = before();
    change(&mut after);
    judged_by(&json!({}), after, &json!({}))
}

#[test]
fn a_plan_that_was_not_changed_is_agreed_to_as_a_whole() {
    assert_eq!(kept(|_| ()), ["a", "b", "c"]);
}

#[test]
fn other_words_for_people_change_no_agreement() {
    let kept = kept(|plan| plan["steps"][0]["title"] = json!("Look at it"));
    assert_eq!(kept, ["a", "b", "c"]);
}

#[test]
fn a_step_with_other_arguments_is_asked_about_again() {
    let kept = kept(|plan| plan["steps"][0]["args"] = json!({"x": 2}));
    assert_eq!(kept, ["b", "c"]);
}

#[test]
fn a_step_whose_arguments_come_to_something_else_is_asked_about_again() {
    let kept = kept(|plan| plan["variables"]["where"] = json!("there"));
    assert_eq!(kept, ["a", "c"]);
}

#[test]
fn a_step_that_comes_after_others_is_asked_about_again() {
    let kept = kept(|plan| plan["steps"][1]["dependsOn"] = json!(["a"]));
    assert_eq!(kept, ["a", "c"]);
}

#[test]
fn a_step_that_was_added_is_asked_about() {
    let kept = kept(|plan| {
        let steps = plan["steps"].as_array_mut().unwrap();
        steps.push(json!({"id": "d", "tool": "t.a", "args": {"x": 1}}));
    });
    assert_eq!(kept, ["a", "b", "c"]);
}

#[test]
fn an_executor_that_is_told_something_else_is_asked_about_again() {
    let goal = kept(|plan| plan["goal"] = json!("Tear down"));
    assert_eq!(goal, ["a", "b"], "tools are told nothing");
    let notes = kept(|plan| plan["context"] = json!({"notes": "mind the door"}));
    assert_eq!(notes, ["a", "b"]);
}

#[test]
fn an_executor_that_may_call_more_is_asked_about_again() {
    let more = kept(|plan| {
        let steps = plan["steps"].as_array_mut().unwrap();
        steps.push(json!({"id": "d", "tool": "t.d"}));
    });
    assert_eq!(more, ["a", "b"]);
}

#[test]
fn a_step_that_is_judged_otherwise_is_asked_about_again() {
    let allow = json!({"rules": [{"tool": "t.*", "then": "allow"}]});
    let ask = json!({"rules": [
        {"tool": "t.b", "then": "ask"},
        {"tool": "t.*", "then": "allow"},
    ]});
    assert_eq!(judged_by(&allow, before(), &allow), ["a", "b", "c"]);
    let kept = judged_by(&allow, before(), &ask);
    assert_eq!(kept, ["a"], "the executor may call it too");
}
