//! Where a plan may name a secret, and what is shown of it.

use planwright_core::plan::{Bounds, Document, Plan, StepIx, ValidationReport, Values, validate};
use planwright_core::run::preview;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Value, json};

fn catalog() -> Catalog {
    let schema = json!({
        "type": "object",
        "properties": { "token": { "type": "string" }, "count": { "type": "integer" }, "headers": { "type": "object" } },
    });
    Catalog::new([KnownTool::new(
        ToolDefinition::new("w", "send", "sends", schema),
        EffectClass::Unsafe,
    )])
}

fn check(steps: Value) -> ValidationReport {
    let document: Document = serde_json::from_value(json!({"id": "p", "steps": steps})).unwrap();
    validate(document, &catalog(), &Bounds::default())
}

/// The codes and places of what was found.
fn found(steps: Value) -> Vec<String> {
    let findings = check(steps).findings.into_iter();
    findings
        .filter(|finding| finding.is_error())
        .map(|found| format!("{} {}", found.code, found.pointer))
        .collect()
}

#[test]
fn a_secret_may_stand_in_arguments_and_in_those_of_undo() {
    let none: [&str; 0] = [];
    let steps = json!([{
        "id": "a", "tool": "send", "args": {"token": "${secret.TOKEN}", "headers": {"x": "Bearer ${secret.OTHER-1}"}},
        "undo": {"tool": "send", "args": {"token": "${secret.TOKEN}"}},
    }]);
    assert_eq!(found(steps), none);
}

#[test]
fn a_secret_anywhere_else_is_an_error_that_can_be_mended() {
    let elsewhere = json!([
        {"id": "a", "think": {"prompt": "use ${secret.TOKEN}"}},
        {"id": "b", "input": {"message": "is ${secret.TOKEN} right?", "schema": {}}},
        {"id": "c", "agent": {"instruction": "log in with ${secret.TOKEN}"}},
        {"id": "d", "plan": {"id": "other", "inputs": {"token": "${secret.TOKEN}"}}},
        {"id": "e", "tool": "send", "forEach": ["${secret.TOKEN}"], "args": {"token": "${item}"}},
        {"id": "f", "tool": "send", "when": "secret.TOKEN == 'x'"},
    ]);
    let validated = check(elsewhere.clone());
    assert!(
        validated.plan.is_some(),
        "it is kept, and does not run: {:?}",
        validated.findings
    );
    assert!(!validated.is_sound());
    let places: Vec<String> = found(elsewhere)
        .into_iter()
        .filter(|found| found.starts_with("E0130"))
        .collect();
    assert_eq!(
        places,
        [
            "E0130 /steps/0/think/prompt",
            "E0130 /steps/1/input/message",
            "E0130 /steps/2/agent/instruction",
            "E0130 /steps/3/plan/inputs/token",
            "E0130 /steps/4/forEach/0",
            "E0130 /steps/5/when",
        ]
    );
}

#[test]
fn a_secret_is_a_text_without_parts_and_has_a_plain_name() {
    let args = |reference: &str| json!([{"id": "a", "tool": "send", "args": {"token": reference}}]);
    assert_eq!(
        found(args("${secret.TOKEN.part}")),
        ["E0130 /steps/0/args/token"]
    );
    assert_eq!(
        found(args("${secret.TOKEN[0]}")),
        ["E0130 /steps/0/args/token"]
    );
    assert_eq!(found(args("${secret.ключ}")), ["E0130 /steps/0/args/token"]);
    assert_eq!(
        found(json!([{"id": "a", "tool": "send", "args": {"count": "${secret.N}"}}])),
        ["E0122 /steps/0/args/count"]
    );
}

struct Shown(Value);

impl Values for Shown {
    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }

    fn secret(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

fn plan() -> Plan {
    let steps = json!([{"id": "a", "tool": "send", "args": {"token": "${secret.A}", "headers": {"x": "Bearer ${secret.B}!"}}}]);
    check(steps).plan.unwrap()
}

#[test]
fn whoever_resolves_the_arguments_decides_what_stands_for_a_secret() {
    let values = Shown(json!({"A": "${secret.A}", "B": "bbbb"}));
    let args = plan().resolve_args(StepIx::new(0), &values).unwrap();
    assert_eq!(
        Value::Object(args),
        json!({"token": "${secret.A}", "headers": {"x": "Bearer bbbb!"}})
    );
}

#[test]
fn a_person_is_asked_before_a_secret_is_sent_also_to_a_tool_that_only_reads() {
    let schema = json!({"type": "object"});
    let definition = ToolDefinition::new("w", "look", "reads", schema)
        .with_annotations(Annotations::read_only());
    let catalog = Catalog::new([KnownTool::new(definition, EffectClass::Safe)]);
    let steps = json!([
        {"id": "a", "tool": "look", "args": {"at": "everything"}},
        {"id": "b", "tool": "look", "args": {"deep": [{"token": "Bearer ${secret.A}"}]}},
    ]);
    let document: Document = serde_json::from_value(json!({"id": "p", "steps": steps})).unwrap();
    let plan = validate(document, &catalog, &Bounds::default())
        .plan
        .unwrap();
    let verdicts = preview(
        &plan,
        &catalog,
        &planwright_core::policy::Policy::default(),
        "policy-1",
    )
    .steps
    .into_iter()
    .map(|step| step.verdict.as_str());
    assert_eq!(verdicts.collect::<Vec<_>>(), ["allow", "ask"]);
}

#[test]
fn a_dry_run_shows_which_secret_is_sent() {
    let args = &preview(
        &plan(),
        &catalog(),
        &planwright_core::policy::Policy::default(),
        "policy-1",
    )
    .steps[0]
        .args;
    assert_eq!(
        args,
        &json!({"token": "${secret.A}", "headers": {"x": "Bearer ${secret.B}!"}})
    );
}
