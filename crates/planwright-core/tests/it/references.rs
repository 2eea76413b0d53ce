//! What a reference becomes when its value is there.

use crate::plans::{Have, check, plan, structural, with_code};
use planwright_core::plan::{Bounds, Code, Finding, Plan, ResolveError, StepIx};
use planwright_core::tool::Catalog;
use serde_json::{Map, Value, json};

/// Resolves `args` of a step that sees the variables of `values`.
fn resolve(args: Value, values: Value) -> Result<Value, ResolveError> {
    let plan =
        plan(json!({"variables": values, "steps": [{"id": "only", "tool": "t", "args": args}]}));
    plan.resolve_args(StepIx::new(0), &Have::variables(values))
        .map(Value::Object)
}

fn resolved(args: Value, values: Value) -> Value {
    resolve(args, values).unwrap()
}

#[test]
fn a_reference_alone_becomes_the_value() {
    assert_eq!(
        resolved(json!({"path": "${target}"}), json!({"target": "/tmp/a.py"})),
        json!({"path": "/tmp/a.py"})
    );
}

#[test]
fn references_within_text_become_one_string() {
    let values = json!({"base": "https://x", "version": "v2"});
    assert_eq!(
        resolved(json!({"u": "${base}/api/${version}"}), values),
        json!({"u": "https://x/api/v2"})
    );
}

#[test]
fn a_number_stays_a_number() {
    let values = json!({"config": {"server": {"port": 8080}}});
    assert_eq!(
        resolved(json!({"p": "${config.server.port}"}), values),
        json!({"p": 8080})
    );
}

#[test]
fn lists_and_objects_resolve_element_by_element_and_other_values_pass() {
    let args = json!({"a": ["${x}", {"b": "${x}"}], "n": 42, "z": null, "t": true});
    let expected = json!({"a": ["v", {"b": "v"}], "n": 42, "z": null, "t": true});
    assert_eq!(resolved(args, json!({"x": "v"})), expected);
}

#[test]
fn values_within_text_are_written_as_json() {
    let values = json!({"x": null, "o": {"a": [1, "t"]}, "t": true, "n": 1.5, "s": "q\"q"});
    let args = json!({"x": "${x}", "text": "-${x}-${o}-${t}-${n}-${s}-"});
    let expected = json!({"x": null, "text": "-null-{\"a\":[1,\"t\"]}-true-1.5-q\"q-"});
    assert_eq!(resolved(args, values), expected);
}

#[test]
fn lists_are_indexed_in_both_spellings_and_the_path_goes_on() {
    let values = json!({"list": [{"k": "v", "odd key": [7]}]});
    let args = json!({"a": "${list[0].k}", "b": "${list.0.k}", "c": "${list[0][\"odd key\"].0}", "d": "${list[0]}"});
    let expected = json!({"a": "v", "b": "v", "c": 7, "d": {"k": "v", "odd key": [7]}});
    assert_eq!(resolved(args, values), expected);
}

#[test]
fn a_value_that_contains_a_reference_arrives_unchanged() {
    let values = json!({"evil": "${secret.TOKEN} ${a${b}} $${x}", "a": 1});
    let args = json!({"whole": "${evil}", "text": "<${evil}>"});
    let expected = json!({"whole": "${secret.TOKEN} ${a${b}} $${x}", "text": "<${secret.TOKEN} ${a${b}} $${x}>"});
    assert_eq!(resolved(args, values), expected);
}

#[test]
fn a_doubled_dollar_is_a_literal() {
    let args = json!({"a": "$${x}", "b": "$${x} and ${x}", "c": "$x $5 $"});
    assert_eq!(
        resolved(args, json!({"x": 1})),
        json!({"a": "${x}", "b": "${x} and 1", "c": "$x $5 $"})
    );
}

#[test]
fn a_path_missing_in_a_real_value_names_the_reference_and_the_keys_there_are() {
    let error = resolve(
        json!({"p": "${config.server.prt}"}),
        json!({"config": {"server": {"host": "", "port": 1}}}),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`${config.server.prt}` has no value: `config.server` has the keys host, port"
    );
    let of_list = resolve(json!({"p": "${l[3]}"}), json!({"l": [1, 2]})).unwrap_err();
    assert_eq!(
        of_list.to_string(),
        "`${l[3]}` has no value: `l`, a list, has the keys 0 to 1"
    );
    let of_text = resolve(json!({"p": "${s.x}"}), json!({"s": "text"})).unwrap_err();
    assert_eq!(
        of_text.to_string(),
        "`${s.x}` has no value: `s`, text, has no keys"
    );
}

#[test]
fn a_missing_name_is_found_before_anything_runs() {
    let found = check(
        json!({"variables": {"target": 1}, "steps": [{"id": "a", "tool": "t", "args": {"x": "${targt}"}}]}),
        &Catalog::default(),
    );
    let findings = with_code(&found.findings, Code::UnresolvedName);
    assert_eq!(findings[0].pointer, "/steps/0/args/x");
    assert_eq!(
        findings[0].suggestion.as_deref(),
        Some("did you mean `target`?")
    );
    assert!(
        found.plan.is_some(),
        "a value given at run time may still resolve it"
    );
}

#[test]
fn variables_given_at_run_time_win_over_the_plans() {
    let plan = plan(json!({"variables": {"a": 1, "b": 2}, "steps": []}));
    let overrides = Map::from_iter([("b".to_owned(), json!(3)), ("c".to_owned(), json!(4))]);
    assert_eq!(
        Value::Object(plan.document().with_variables(&overrides).variables),
        json!({"a": 1, "b": 3, "c": 4})
    );
}

#[test]
fn a_reference_to_a_step_that_cannot_be_upstream_is_an_error() {
    let findings = structural(json!([
        {"id": "a", "tool": "t", "args": {"x": "${b}"}},
        {"id": "b", "tool": "t", "dependsOn": ["a"]},
    ]));
    assert_eq!(findings[0].code, Code::Cycle);
    let findings = structural(json!([{"id": "a", "tool": "t", "args": {"x": "${steps.a.y}"}}]));
    assert_eq!(findings[0].code, Code::SelfDependency);
}

#[test]
fn malformed_references_are_refused_with_their_place() {
    for text in ["${", "${}", "${a..b}", "x ${a[}", "${a b}", "${a${b}}"] {
        let findings =
            structural(json!([{"id": "a", "tool": "t", "args": {"deep": [{"x": text}]}}]));
        let malformed = |finding: &&Finding| finding.code == Code::MalformedReference;
        let found = findings.iter().find(malformed);
        let found = found.unwrap_or_else(|| panic!("{text}: {findings:?}"));
        assert_eq!(found.pointer, "/steps/0/args/deep/0/x");
        // How it is written right, never how it becomes literal text.
        let suggestion = found.suggestion.as_ref().unwrap();
        assert!(suggestion.contains("`${"), "{text}: {suggestion}");
        assert!(!suggestion.contains("$${"), "{text}: {suggestion}");
    }
}

#[test]
fn names_mean_variables_then_results_then_steps() {
    let plan = plan(json!({
        "variables": {"v": "variable"},
        "inputs": {"properties": {"i": {"type": "string", "default": "input"}}},
        "steps": [
            {"id": "v", "tool": "t", "result": "shown"},
            {"id": "shown", "tool": "t"},
            {"id": "c", "tool": "t", "args": {"a": "${v}", "b": "${steps.v}", "c": "${shown}", "d": "${steps.shown}",
                "e": "${i}"}},
        ],
    }));
    let values = Have {
        variables: plan.initial_variables(),
        ..Have::default()
    };
    let values = values.step(0, json!("first")).step(1, json!("second"));
    assert_eq!(
        Value::Object(plan.resolve_args(StepIx::new(2), &values).unwrap()),
        json!({"a": "variable", "b": "first", "c": "first", "d": "second", "e": "input"})
    );
    assert_eq!(
        plan.referenced_steps(StepIx::new(2)),
        [0, 1].map(StepIx::new)
    );
}

#[test]
fn of_several_producers_the_last_one_upstream_is_meant() {
    let plan = plan(json!([
        {"id": "one", "tool": "t", "result": "x"},
        {"id": "early", "tool": "t", "args": {"v": "${x}"}, "dependsOn": ["one"]},
        {"id": "two", "tool": "t", "result": "x", "args": {"v": "${x}"}, "dependsOn": ["early"]},
        {"id": "late", "tool": "t", "args": {"v": "${x}"}, "dependsOn": ["two"]},
    ]));
    let value = |step: usize| {
        let values = Have::default().step(0, json!(1)).step(2, json!(2));
        plan.resolve_args(StepIx::new(step), &values).unwrap()["v"].clone()
    };
    assert_eq!(
        (value(1), value(2), value(3)),
        (json!(1), json!(1), json!(2))
    );
}

#[test]
fn values_that_double_are_stopped_by_their_size() {
    let bounds = Bounds {
        max_resolved_bytes: 10_000,
        ..Bounds::default()
    };
    let document = crate::plans::document(json!({"variables": {"a": "x".repeat(400)}, "steps": [
        {"id": "small", "tool": "t", "args": {"x": "${a}".repeat(20)}},
        {"id": "bomb", "tool": "t", "args": {"x": "${a}".repeat(30)}},
        {"id": "spread", "tool": "t", "args": {"x": vec!["${a}"; 30]}},
    ]}));
    let plan = Plan::compile(document, &bounds).unwrap();
    let values = Have {
        variables: plan.initial_variables(),
        ..Have::default()
    };
    assert_eq!(
        plan.resolve_args(StepIx::new(0), &values).unwrap()["x"]
            .as_str()
            .unwrap()
            .len(),
        8_000
    );
    for step in [1, 2] {
        let error = plan.resolve_args(StepIx::new(step), &values).unwrap_err();
        assert_eq!(
            error,
            ResolveError::TooLarge {
                reference: "a".into(),
                limit: 10_000
            }
        );
    }
}

#[test]
fn a_secret_is_put_in_only_by_who_has_one_to_put_in() {
    let plan = plan(json!([{"id": "a", "tool": "t", "args": {"x": "Bearer ${secret.TOKEN}"}}]));
    let error = plan
        .resolve_args(StepIx::new(0), &Have::default())
        .unwrap_err();
    assert_eq!(
        error,
        ResolveError::Secret {
            reference: "secret.TOKEN".into()
        }
    );
    let names: Vec<String> = plan
        .secrets(StepIx::new(0))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["TOKEN"]);
    assert_eq!(plan.unsupported_features(), []);
}

#[test]
fn an_undo_may_use_the_value_of_its_own_step() {
    let plan =
        plan(json!([{"id": "a", "tool": "t", "undo": {"tool": "u", "args": {"id": "${a.id}"}}}]));
    let values = Have::default().step(0, json!({"id": 7}));
    assert_eq!(
        plan.resolve_undo_args(StepIx::new(0), &values)
            .unwrap()
            .unwrap()["id"],
        7
    );
}
