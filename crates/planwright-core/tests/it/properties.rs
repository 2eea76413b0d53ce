//! What holds for every input.

use crate::plans::{Have, read};
use planwright_core::json::parse_strict;
use planwright_core::plan::{Bounds, Document, Plan, StepIx, validate};
use planwright_core::tool::Catalog;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "\\$\\{[a-z.\\[\\]0-9\"]{0,8}\\}?",
        "\\PC{0,6}",
        "\\$[ab1]"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_992_i64..=9_007_199_254_740_992).prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn args() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map("[a-z]{1,4}", any_json(), 0..4)
        .prop_map(|map| map.into_iter().collect())
}

/// A key of a step in one of its spellings, with some value.
fn any_step() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "id",
        "index",
        "title",
        "action",
        "tool",
        "args",
        "think",
        "agent",
        "input",
        "plan",
        "depends_on",
        "result",
        "when",
        "forEach",
        "retry",
        "timeout",
        "expect",
        "constraints",
        "undo",
        "operation",
        "status",
        "optional",
    ]);
    prop::collection::vec((key, any_json()), 0..6).prop_map(|entries| {
        Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    })
}

/// A plan that reads: numbered steps that may only depend on earlier ones.
fn sound_plan() -> impl Strategy<Value = Value> {
    let step = (
        args(),
        "\\PC{0,10}",
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        any::<bool>(),
    );
    prop::collection::vec(step, 0..8).prop_map(|steps| {
        let steps: Vec<Value> = steps
            .into_iter()
            .enumerate()
            .map(|(i, (args, title, after, approval))| {
                let after: Vec<String> = if i == 0 {
                    vec![]
                } else {
                    after.iter().map(|index| format!("s{}", index.index(i))).collect()
                };
                json!({"id": format!("s{i}"), "title": title, "tool": "t", "args": args, "dependsOn": after,
                    "approvalRequired": approval})
            })
            .collect();
        json!({"id": "p", "steps": steps})
    })
}

/// The same JSON with the keys of every object in reverse order.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .rev()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), reversed(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(reversed).collect::<Vec<_>>().join(",")
        ),
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(parse_strict(&bytes));
        drop(Document::read(&bytes, &Bounds::default()));
    }

    #[test]
    fn any_punctuation_is_read_or_refused(text in "[\\[\\]{}\",:/*\\\\a0-9eE.+\\-\n$]{0,80}") {
        drop(parse_strict(text.as_bytes()));
        drop(Document::read(text.as_bytes(), &Bounds::default()));
    }

    #[test]
    fn strict_parsing_agrees_with_serde_json(value in any_json()) {
        prop_assert_eq!(parse_strict(value.to_string().as_bytes()).unwrap(), value);
    }

    #[test]
    fn any_step_is_read_or_refused_and_validated(steps in prop::collection::vec(any_step(), 0..4)) {
        if let Ok(document) = Document::read(json!({"steps": steps}).to_string().as_bytes(), &Bounds::default()) {
            validate(document, &Catalog::default(), &Bounds::default());
        }
    }

    #[test]
    fn any_text_is_a_template_or_refused(text in "(\\$|\\{|\\}|\\[|\\]|\\.|\"|a|0|s|\\\\|é){0,20}", value in any_json()) {
        let plan = json!({"variables": {"a": value, "s": 1}, "steps": [{"tool": "t", "args": {"x": text}}]});
        if let Ok(plan) = Plan::compile(read(&plan.to_string()), &Bounds::default()) {
            drop(plan.resolve_args(StepIx::new(0), &Have::variables(json!({"a": value}))));
        }
    }

    #[test]
    fn what_a_tool_returned_arrives_unchanged(value in any_json()) {
        let plan = read(r#"[{"id":"a","tool":"t"},{"id":"b","tool":"t","args":{"x":["${a}"]}}]"#);
        let plan = Plan::compile(plan, &Bounds::default()).unwrap();
        let resolved = plan.resolve_args(StepIx::new(1), &Have::default().step(0, value.clone())).unwrap();
        prop_assert_eq!(&resolved["x"][0], &value);
    }

    #[test]
    fn a_canonical_document_round_trips(plan in sound_plan()) {
        let document = read(&plan.to_string());
        prop_assert_eq!(&read(&serde_json::to_string(&document).unwrap()), &document);
        if let Ok(compiled) = Plan::compile(document, &Bounds::default()) {
            let saved = serde_json::to_string(compiled.document()).unwrap();
            prop_assert_eq!(&Plan::compile(read(&saved), &Bounds::default()).unwrap(), &compiled);
        }
    }

    #[test]
    fn the_digest_ignores_key_order_and_titles_but_not_arguments(plan in sound_plan(), title in "\\PC{0,10}") {
        let digest = |text: &str| {
            let plan = Plan::compile(read(text), &Bounds::default()).ok()?;
            Some(plan.digest(&Catalog::default(), "1"))
        };
        let original = digest(&plan.to_string());
        prop_assert_eq!(original, digest(&reversed(&plan)));
        if original.is_some() && !plan["steps"].as_array().unwrap().is_empty() {
            let mut renamed = plan.clone();
            renamed["steps"][0]["title"] = title.into();
            prop_assert_eq!(original, digest(&renamed.to_string()));
            let mut changed = plan;
            changed["steps"][0]["args"]["another"] = json!(1);
            prop_assert_ne!(original, digest(&changed.to_string()));
        }
    }
}
