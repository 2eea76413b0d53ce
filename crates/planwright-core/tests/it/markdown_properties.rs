//! Markdown that was written can be read back, regardless of its content.

use crate::markdown_reading::meta;
use planwright_core::plan::{
    Bounds, Document, MarkdownForm, from_markdown, from_markdown_as, to_cursor, to_markdown,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Text made of what means something to Markdown, YAML, JSON or a terminal.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "---",
            "---\n",
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            "\t",
            " ",
            "  ",
            "    ",
            "#",
            "# ",
            "## Steps\n",
            "### Notes\n",
            "```",
            "```json\n",
            "```json exact\n",
            "~~~",
            "`",
            "- ",
            "* ",
            "+ ",
            "-",
            "=",
            "===",
            "1. ",
            "2) ",
            "[ ] ",
            "[x] ",
            "[a](b)",
            "![a](b)",
            "[a]: b",
            "<!--",
            "-->",
            "<b>",
            "<script>",
            "&amp;",
            "\\",
            "\\\\",
            "\\#",
            "(",
            ")",
            "(a: b)",
            "(agent)",
            ": ",
            "|",
            "> ",
            "*",
            "**",
            "_",
            "__",
            "~",
            "!",
            "\"",
            "'",
            "{",
            "}",
            "[",
            "]",
            "%",
            "@",
            "?",
            "null",
            "~",
            "true",
            "no",
            "0x1",
            "1e3",
            "\u{0}",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "\u{200b}",
            "\u{202e}",
            "\u{2028}",
            "\u{2066}",
            "\u{3000}",
            "\u{feff}",
            "\u{fffe}",
            "\u{ffff}",
            "\u{e0041}",
            "🙂",
            "👩‍💻",
            "é",
            "漢字",
            "$a",
            "${a}",
            "artifacts/",
            "a",
            "word",
            "two words",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,4}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_992_i64..=9_007_199_254_740_992).prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any_text(), any_json(), 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::vec(any_text(), 0..4).prop_map(|texts| json!(texts))
}

fn text() -> impl Strategy<Value = Value> {
    any_text().prop_map(Value::from)
}

fn number() -> impl Strategy<Value = Value> {
    any::<f64>()
        .prop_filter("finite", |number| number.is_finite())
        .prop_map(Value::from)
}

/// Some of these keys, with values.
fn some_of(
    fields: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> impl Strategy<Value = Map<String, Value>> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(key, value)| prop::option::of(value).prop_map(move |value| (key, value)))
        .collect();
    fields.prop_map(|fields| {
        fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    })
}

fn action() -> impl Strategy<Value = Map<String, Value>> {
    let agent = some_of(vec![
        ("tool", text().boxed()),
        ("operation", text().boxed()),
        ("target", text().boxed()),
        ("executor", text().boxed()),
    ]);
    let schema = prop_oneof![object(), any::<bool>().prop_map(Value::from)];
    prop_oneof![
        (text(), prop::option::of(object())).prop_map(|(tool, args)| json!({"tool": tool, "args": args})),
        (text(), prop::option::of(object()), prop::option::of(text())).prop_map(
            |(prompt, schema, model)| json!({"think": {"prompt": prompt, "schema": schema, "model": model}})
        ),
        (text(), agent).prop_map(|(instruction, mut agent)| {
            agent.insert("instruction".to_owned(), instruction);
            json!({ "agent": agent })
        }),
        (prop::option::of(text()), schema)
            .prop_map(|(message, schema)| json!({"input": {"message": message, "schema": schema}})),
        object().prop_map(|inputs| json!({"plan": {"id": "other", "inputs": inputs}})),
        Just(json!({})),
    ]
    .prop_map(|value| value.as_object().cloned().unwrap_or_default())
}

fn any_step() -> impl Strategy<Value = Value> {
    let retry = (any::<u32>(), number(), texts())
        .prop_map(|(max, backoff, on)| json!({"max": max, "backoff": backoff, "on": on}));
    let undo = (text(), object()).prop_map(|(tool, args)| json!({"tool": tool, "args": args}));
    let options = some_of(vec![
        ("title", text().boxed()),
        (
            "dependsOn",
            prop::collection::vec("[a-c]", 0..3)
                .prop_map(|ids| json!(ids))
                .boxed(),
        ),
        ("result", text().boxed()),
        ("when", text().boxed()),
        ("forEach", any_json().boxed()),
        ("maxParallel", any::<u32>().prop_map(Value::from).boxed()),
        ("retry", retry.boxed()),
        ("timeoutSeconds", number().boxed()),
        (
            "approvalRequired",
            any::<bool>().prop_map(Value::from).boxed(),
        ),
        ("constraints", texts().boxed()),
        ("critical", any::<bool>().prop_map(Value::from).boxed()),
        ("optional", any::<bool>().prop_map(Value::from).boxed()),
        ("skip", any::<bool>().prop_map(Value::from).boxed()),
        ("expect", text().boxed()),
        ("undo", undo.boxed()),
        ("capability", text().boxed()),
        ("capabilityLabel", text().boxed()),
        ("labels", texts().boxed()),
    ]);
    // Often the title is all there is to say to an agent.
    (action(), options, any::<bool>()).prop_map(|(mut step, options, same)| {
        step.extend(options);
        if let (true, Some(title), Some(Value::Object(agent))) =
            (same, step.get("title").cloned(), step.get_mut("agent"))
        {
            agent.insert("instruction".to_owned(), title);
        }
        Value::Object(step)
    })
}

fn any_context() -> impl Strategy<Value = Value> {
    let artifact = json!({"digest": format!("sha256:{}", "a".repeat(64)), "bytes": 12});
    let stored =
        prop::collection::btree_map(any_text(), Just(artifact), 0..3).prop_map(|map| json!(map));
    some_of(vec![
        ("toolOutputs", object().boxed()),
        ("notes", text().boxed()),
        ("artifacts", texts().boxed()),
        ("stored", stored.boxed()),
        ("template", Just(json!({"id": "t", "version": 1})).boxed()),
    ])
    .prop_map(Value::Object)
}

fn any_document() -> impl Strategy<Value = Document> {
    let limits = some_of(vec![
        ("maxConcurrency", any::<u32>().prop_map(Value::from).boxed()),
        ("onFailure", Just(json!("reflect")).boxed()),
        (
            "budget",
            (0_u64..1 << 50)
                .prop_map(|calls| json!({"calls": calls, "perTool": {"a\n": calls}}))
                .boxed(),
        ),
    ])
    .prop_map(Value::Object);
    let fields = some_of(vec![
        ("id", "[a-z]{1,6}".prop_map(Value::from).boxed()),
        ("title", text().boxed()),
        ("goal", text().boxed()),
        ("inputs", object().boxed()),
        ("variables", object().boxed()),
        ("toolsRequired", texts().boxed()),
        ("successCriteria", texts().boxed()),
        ("context", any_context().boxed()),
        ("risks", texts().boxed()),
        ("limits", limits.boxed()),
        ("plannerModel", text().boxed()),
        ("executorModel", text().boxed()),
        ("estimatedDuration", number().boxed()),
    ]);
    (fields, prop::collection::vec(any_step(), 0..4)).prop_map(|(mut plan, steps)| {
        plan.insert("steps".to_owned(), steps.into());
        Document::from_json(Value::Object(plan), &Bounds::default()).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_was_written_comes_back(document in any_document()) {
        let text = to_markdown(&document, &meta());
        let read = from_markdown(text.as_bytes(), &Bounds::default());
        let read = read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&read.document, &document, "{}", text);
        prop_assert_eq!(&read.notices, &Vec::<String>::new());
        let unseen = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'));
        prop_assert!(!text.contains(unseen), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any_text(), more in any_text()) {
        let text = format!("{text}{more}");
        for text in [text.clone(), format!("---\n{text}\n---\n{more}"), format!("## Steps\n1. {text}\n2. {more}\n")] {
            for form in [MarkdownForm::Plan, MarkdownForm::Cursor, MarkdownForm::Tasks] {
                drop(from_markdown_as(text.as_bytes(), form, &Bounds::default()));
            }
            if let Ok(read) = from_markdown(text.as_bytes(), &Bounds::default()) {
                let again = from_markdown(to_markdown(&read.document, &meta()).as_bytes(), &Bounds::default());
                prop_assert_eq!(again.unwrap().document, read.document);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_as_markdown(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(from_markdown(&bytes, &Bounds::default()));
    }
}

proptest! {
    #[test]
    fn todos_are_written_so_that_they_can_be_read(document in any_document()) {
        let text = to_cursor(&document, &BTreeSet::new());
        let read = from_markdown(text.as_bytes(), &Bounds::default());
        let read = read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read.form, MarkdownForm::Cursor);
        prop_assert_eq!(read.document.steps.len(), document.steps.len());
    }
}
