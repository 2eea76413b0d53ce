//! Plans that run plans: what is known about them before anything runs.

use crate::plans::{catalog, document};
use planwright_core::plan::{
    Bounds, Code, Document, KnownPlan, KnownPlans, ValidationReport, validate_with,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn known(plans: &[Value]) -> KnownPlans {
    let mut known = KnownPlans::default();
    for plan in plans {
        let document = document(plan.clone());
        let id = document.id.clone().unwrap();
        known.insert(
            id,
            KnownPlan {
                version: 1,
                document: Arc::new(document),
                needs_person: None,
            },
        );
    }
    known
}

fn validate(plan: Value, plans: &[Value]) -> ValidationReport {
    validate_with(
        document(plan),
        &catalog(),
        &known(plans),
        &Bounds::default(),
    )
}

fn runs(id: &str, child: &str) -> Value {
    json!({"id": id, "steps": [{"id": "s", "plan": {"id": child}}]})
}

fn reader(id: &str) -> Value {
    json!({"id": id, "steps": [{"id": "r", "tool": "read_file", "args": {"path": "x"}}]})
}

fn template() -> Value {
    json!({
        "id": "child",
        "inputs": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "times": {"type": "integer", "default": 2},
        }},
        "steps": [{"id": "r", "tool": "read_file", "args": {"path": "${path}"}}],
    })
}

fn errors(validated: &ValidationReport) -> Vec<(Code, String)> {
    let errors = validated
        .findings
        .iter()
        .filter(|finding| finding.is_error());
    errors
        .map(|finding| (finding.code, finding.message.clone()))
        .collect()
}

fn digest(plan: Value, plans: &[Value]) -> planwright_core::digest::Digest {
    validate(plan, plans).plan.unwrap().digest(&catalog(), "1")
}

#[test]
fn a_plan_that_is_not_there_is_an_error_that_can_be_mended() {
    let validated = validate(runs("p", "child"), &[]);
    assert_eq!(errors(&validated)[0].0, Code::UnknownPlan);
    assert!(
        validated.plan.is_some(),
        "it is kept: the other plan may be imported later"
    );
    assert!(validate(runs("p", "child"), &[reader("child")]).is_sound());
}

#[test]
fn a_circle_of_plans_is_printed() {
    let plans = [runs("a", "b"), runs("b", "c"), runs("c", "a")];
    let found = errors(&validate(runs("a", "b"), &plans));
    assert_eq!(found[0].0, Code::PlanCycle);
    assert!(found[0].1.contains("a → b → c → a"), "{found:?}");
    let itself = errors(&validate(runs("a", "a"), &[runs("a", "a")]));
    assert!(itself[0].1.contains("a → a"), "{itself:?}");
    let below = errors(&validate(runs("p", "a"), &plans));
    assert_eq!(below[0].0, Code::PlanCycle, "{below:?}");
}

#[test]
fn plans_nest_at_most_eight_deep() {
    let nest = |depth: usize| {
        let mut plans: Vec<Value> = (1..depth)
            .map(|at| runs(&format!("p{at}"), &format!("p{}", at + 1)))
            .collect();
        plans.push(reader(&format!("p{depth}")));
        errors(&validate(runs("p", "p1"), &plans))
    };
    assert_eq!(nest(KnownPlans::MAX_DEPTH - 1), []);
    assert_eq!(nest(KnownPlans::MAX_DEPTH)[0].0, Code::PlanCycle);
}

#[test]
fn many_ways_to_the_same_plans_cost_no_more_than_one() {
    // Eight levels of twelve plans that all run all of the next: 12^7 ways from the top to the
    // bottom.
    let level = |at: usize, next: &[String]| -> Vec<Value> {
        let steps: Vec<Value> = next.iter().map(|id| json!({"plan": {"id": id}})).collect();
        (0..12)
            .map(|n| json!({"id": format!("l{at}-{n}"), "steps": steps}))
            .collect()
    };
    let names = |at: usize| (0..12).map(|n| format!("l{at}-{n}")).collect::<Vec<_>>();
    let mut plans: Vec<Value> = names(7).iter().map(|id| reader(id)).collect();
    for at in (1..7).rev() {
        plans.extend(level(at, &names(at + 1)));
    }
    let validated = validate(runs("top", "l1-0"), &plans);
    assert_eq!(errors(&validated), []);
    let plan = validated.plan.unwrap();
    plan.digest(&catalog(), "1");
    assert!(plan.unsupported_features().is_empty() && plan.missing_tools(&catalog()).is_empty());
}

#[test]
fn inputs_are_checked_as_far_as_they_are_written() {
    let with = |inputs: Value| {
        let plan = json!({"id": "p", "variables": {"v": 1}, "steps": [{"id": "s", "plan": {"id": "child", "inputs": inputs}}]});
        errors(&validate(plan, &[template()]))
    };
    assert_eq!(with(json!({"path": "a"})), []);
    assert_eq!(with(json!({"path": "${v}"})), [], "known only when it runs");
    let missing = with(json!({}));
    assert!(
        missing[0].0 == Code::InvalidInputs && missing[0].1.contains("path"),
        "{missing:?}"
    );
    assert_eq!(with(json!({"path": 7}))[0].0, Code::InvalidInputs);
    assert_eq!(
        with(json!({"path": "a", "times": "often"}))[0].0,
        Code::InvalidInputs
    );
    let mistyped = validate(
        json!({"id": "p", "steps": [{"id": "s", "plan": {"id": "child", "inputs": {"path": "a", "timess": 1}}}]}),
        &[template()],
    );
    let finding = &mistyped.findings[0];
    assert_eq!(
        (finding.code, finding.pointer.as_str()),
        (Code::InvalidInputs, "/steps/0/plan/inputs/timess")
    );
    assert!(finding.suggestion.as_ref().unwrap().contains("times"));
}

#[test]
fn what_is_wrong_with_a_sub_plan_is_wrong_with_the_plan_that_runs_it() {
    let broken = json!({"id": "child", "steps": [{"id": "x", "tool": "no_such_tool"}]});
    let validated = validate(runs("p", "child"), std::slice::from_ref(&broken));
    let found = errors(&validated);
    assert_eq!(found[0].0, Code::SubplanInvalid);
    assert!(found[0].1.contains("no_such_tool"), "{found:?}");
    assert_eq!(
        validated.plan.unwrap().missing_tools(&catalog()),
        ["no_such_tool"]
    );
    let unsupported = json!({"id": "child", "steps": [{"id": "x", "input": {"schema": {"type": "object"}}, "expect": "true"}]});
    let plan = validate(runs("p", "child"), &[unsupported]).plan.unwrap();
    assert_eq!(
        plan.unsupported_features(),
        [(plan.find("s").unwrap(), "expect of an input")]
    );
}

#[test]
fn the_digest_covers_what_every_sub_plan_does() {
    let parent = || runs("p", "child");
    let child = |path: &str, title: &str| json!({"id": "child", "title": title, "steps": [{"id": "r", "tool": "read_file", "args": {"path": path}}]});
    let one = digest(parent(), &[child("x", "One")]);
    assert_eq!(one, digest(parent(), &[child("x", "Another title")]));
    assert_ne!(one, digest(parent(), &[child("y", "One")]));
    assert_ne!(one, digest(parent(), &[]));
    let below = |path: &str| digest(runs("top", "p"), &[parent(), child(path, "One")]);
    assert_ne!(
        below("x"),
        below("y"),
        "also what the plans of its plans do"
    );
    let own_tool =
        json!({"id": "p", "steps": [{"id": "r", "tool": "read_file", "args": {"path": "x"}}]});
    let alone = digest(own_tool.clone(), &[]);
    assert_eq!(
        alone,
        digest(own_tool, &[child("x", "One")]),
        "a plan that runs no other knows no other"
    );
}

#[test]
fn inputs_given_to_a_template_are_checked_all_at_once() {
    let document: Document = document(template());
    let given = |value: Value| serde_json::from_value::<Map<String, Value>>(value).unwrap();
    let variables = document
        .variables_for(&given(json!({"path": "a"})))
        .unwrap();
    assert_eq!(
        Value::Object(variables),
        json!({"path": "a", "times": 2}),
        "defaults are filled in"
    );
    let findings = document
        .variables_for(&given(json!({"times": "x", "pth": "a"})))
        .unwrap_err();
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert!(
        findings
            .iter()
            .all(|finding| finding.code == Code::InvalidInputs)
    );
}
