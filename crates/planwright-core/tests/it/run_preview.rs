//! Runs on paper: what would be sent, and what consent and the guards would say.

use planwright_core::plan::{Bounds, Document, Plan};
use planwright_core::policy::Policy;
use planwright_core::run::{Preview, Verdict, preview};
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Value, json};

fn catalog() -> Catalog {
    let tool = |name: &str, annotations| {
        let definition = ToolDefinition::new("w", name, "scripted", json!({"type": "object"}));
        KnownTool::new(definition.with_annotations(annotations), EffectClass::Safe)
    };
    Catalog::new([
        tool("read", Annotations::read_only()),
        tool("write", Annotations::default()),
    ])
}

fn on_paper(document: Value) -> Preview {
    let document: Document = serde_json::from_value(document).unwrap();
    let plan = Plan::compile(document, &Bounds::default()).unwrap();
    preview(&plan, &catalog(), &Policy::default(), "policy-1")
}

fn verdicts(preview: &Preview) -> Vec<&'static str> {
    preview
        .steps
        .iter()
        .map(|step| step.verdict.as_str())
        .collect()
}

#[test]
fn known_values_are_filled_in_and_the_rest_is_named_by_its_source() {
    let preview = on_paper(json!({
        "id": "p", "variables": {"name": "ada", "config": {"port": 8080}},
        "steps": [
            {"id": "a", "tool": "read", "args": {"who": "${name}", "port": "${config.port}", "text": "at ${config.port}"}},
            {"id": "b", "tool": "write", "args": {
                "all": "${a}", "part": "${a.list[0]}", "text": "${name}: ${a.x}", "deep": [{"k": "${a}"}], "n": 1,
            }},
        ],
    }));
    assert_eq!(
        preview.steps[0].args,
        json!({"who": "ada", "port": 8080, "text": "at 8080"})
    );
    assert_eq!(
        preview.steps[1].args,
        json!({
            "all": "‹result of step a›", "part": "‹list[0] of step a›", "text": "ada: ‹x of step a›",
            "deep": [{"k": "‹result of step a›"}], "n": 1,
        })
    );
}

#[test]
fn readers_are_allowed_writers_asked_about_and_strangers_denied() {
    let preview = on_paper(json!({"id": "p", "steps": [
        {"id": "a", "tool": "read"},
        {"id": "b", "tool": "w.write"},
        {"id": "c", "tool": "read", "approvalRequired": true},
        {"id": "d", "tool": "nobody.knows"},
    ]}));
    assert_eq!(verdicts(&preview), ["allow", "ask", "ask", "deny"]);
    assert!(preview.steps.iter().all(|step| !step.reason.is_empty()));
}

#[test]
fn the_budget_is_charged_in_dependency_order_as_a_run_would() {
    let steps = json!([
        {"id": "last", "tool": "read", "dependsOn": ["mid"]},
        {"id": "mid", "tool": "w.read", "dependsOn": ["first"]},
        {"id": "first", "tool": "read"},
    ]);
    let calls = on_paper(json!({"id": "p", "steps": steps, "limits": {"budget": {"calls": 2}}}));
    assert_eq!(verdicts(&calls), ["deny", "allow", "allow"]);
    // One tool under two names has one budget, whichever of them the budget uses.
    for name in ["read", "w.read"] {
        let budget = json!({"perTool": {name: 2}});
        let per_tool = on_paper(json!({"id": "p", "steps": steps, "limits": {"budget": budget}}));
        assert_eq!(
            verdicts(&per_tool),
            ["deny", "allow", "allow"],
            "budget for {name}"
        );
    }
    assert_eq!(calls.critical_path.len(), 3);
    assert_eq!(calls.steps[0].verdict, Verdict::Deny);
}

#[test]
fn a_loop_over_a_known_list_shows_each_call_and_is_charged_for_all_of_them() {
    let preview = on_paper(
        json!({"id": "p", "variables": {"names": ["a", "b"]}, "limits": {"budget": {"calls": 4}}, "steps": [
            {"id": "each", "tool": "read", "forEach": "${names}", "args": {"who": "${item}", "n": "${index}"}},
            {"id": "later", "tool": "read", "forEach": "${each}", "args": {"who": "${item}"}},
            {"id": "ask", "input": {"schema": {"type": "object"}}},
            {"id": "end", "tool": "read", "forEach": [1, 2], "dependsOn": ["later", "ask"]},
        ]}),
    );
    assert_eq!(
        preview.steps[0].items,
        Some(vec![
            json!({"who": "a", "n": 0}),
            json!({"who": "b", "n": 1})
        ])
    );
    assert_eq!(preview.steps[1].items, None);
    assert_eq!(
        preview.steps[1].args,
        json!({"who": "‹one element of result of step each›"})
    );
    assert_eq!(verdicts(&preview), ["allow", "allow", "ask", "deny"]);
}
