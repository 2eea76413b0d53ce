//! References against what the steps before them return.

use crate::plans::{check, tool};
use planwright_core::plan::Code;
use planwright_core::tool::{Catalog, SeenShape};
use serde_json::{Value, json};
use std::sync::Arc;

fn catalog() -> Catalog {
    let anything = json!({ "type": "object" });
    let closed = json!({ "type": "object", "additionalProperties": false, "required": ["path"],
        "properties": { "path": { "type": "string" }, "bytes": { "type": "integer" } } });
    let open = json!({ "type": "object", "properties": {
        "rows": { "type": "array", "items": { "$ref": "#/$defs/row" } },
        "next": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/row" }] },
        "free": {},
    }, "$defs": { "row": { "type": "object", "additionalProperties": false,
        "properties": { "name": { "type": "string" } } } } });
    let takes = json!({ "type": "object", "properties": {
        "count": { "type": "integer" }, "list": { "type": "array" }, "text": { "type": "string" } } });
    Catalog::new([
        tool("t", "write", anything.clone(), Some(closed)),
        tool("t", "query", anything.clone(), Some(open)),
        tool(
            "t",
            "read",
            anything.clone(),
            Some(json!({ "type": "string" })),
        ),
        tool("t", "other", anything, None),
        tool("t", "take", takes, None),
    ])
}

fn step(id: &str, args: Value) -> Value {
    json!({ "id": id, "tool": "t.take", "args": args })
}

/// The codes of what is found when a step asks for this.
fn asks_for(reference: &str) -> Vec<Code> {
    let plan = json!([
        { "id": "w", "tool": "t.write" },
        { "id": "q", "tool": "t.query" },
        { "id": "r", "tool": "t.read" },
        { "id": "o", "tool": "t.other" },
        { "id": "each", "tool": "t.write", "forEach": "${q.rows}" },
        { "id": "thought", "think": { "prompt": "Why?" } },
        { "id": "typed", "think": { "prompt": "Why?", "schema": { "type": "object",
            "additionalProperties": false, "properties": { "why": { "type": "string" } } } } },
        { "id": "asked", "input": { "schema": { "type": "object", "additionalProperties": false,
            "properties": { "n": { "type": "integer" } } } } },
        { "id": "last", "tool": "t.other", "args": { "any": reference } },
    ]);
    let found = check(plan, &catalog()).findings;
    found.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_part_that_a_value_does_not_have_is_found() {
    for reference in [
        "${w.nope}",
        "text ${w.Path} text",
        "${w.bytes.more}",
        "${q.rows.name}",
        "${q.rows[0].nope}",
        "${q.next.nope}",
        "${each.path}",
        "${each[0].nope}",
        "${typed.because}",
        "${asked.m}",
    ] {
        assert_eq!(asks_for(reference), [Code::UnknownField], "{reference}");
    }
    for reference in ["${q.nope}", "${r.text}", "${thought.answer}", "${w.path.x}"] {
        assert_eq!(asks_for(reference), [Code::UndeclaredField], "{reference}");
    }
}

#[test]
fn what_may_be_there_is_not_complained_about() {
    for reference in [
        "${w}",
        "${w.path} and ${w.bytes}",
        "${q.rows[3].name}",
        "${q.rows.0.name}",
        "${q.next.name}",
        "${q.free.anything[0].at.all}",
        "${r}",
        "${o.anything[1]}",
        "${each[0].bytes}",
        "${thought}",
        "${typed.why}",
        "${asked.n}",
    ] {
        assert_eq!(asks_for(reference), [], "{reference}");
    }
}

#[test]
fn elements_of_a_loop_have_the_shape_that_the_list_declares() {
    let each = |args: Value| {
        let plan = json!([
            { "id": "q", "tool": "t.query" },
            { "id": "each", "tool": "t.take", "forEach": "${q.rows}", "args": args },
        ]);
        let found = check(plan, &catalog()).findings;
        found
            .iter()
            .map(|finding| finding.code)
            .collect::<Vec<Code>>()
    };
    assert_eq!(each(json!({ "text": "${item.name} ${index}" })), []);
    assert_eq!(
        each(json!({ "text": "${item.title}" })),
        [Code::UnknownField]
    );
    assert_eq!(
        each(json!({ "count": "${item.name}" })),
        [Code::InvalidArgs]
    );
    assert_eq!(each(json!({ "count": "${index}" })), []);
}

#[test]
fn values_of_the_wrong_type_are_found_before_they_are_sent() {
    let think = json!({ "id": "a", "think": { "prompt": "How many?" } });
    let loops = json!({ "id": "l", "tool": "t.write", "forEach": [1, 2] });
    for (args, fits) in [
        (json!({ "count": "${a}" }), false),
        (json!({ "list": "${a}" }), false),
        (json!({ "text": "${a}" }), true),
        (json!({ "list": "${l}" }), true),
        (json!({ "text": "${l}" }), false),
        (json!({ "count": "${l[0].bytes}" }), true),
        (json!({ "count": "${l[0].path}" }), false),
    ] {
        let plan = json!([think.clone(), loops.clone(), step("b", args.clone())]);
        let found = check(plan, &catalog()).findings;
        let wrong = found
            .iter()
            .any(|finding| finding.code == Code::InvalidArgs);
        assert_eq!(wrong, !fits, "{args}: {found:?}");
    }
}

#[test]
fn suggestions_name_what_exists_and_never_turn_a_reference_into_text() {
    let cases = [
        ("${w.pathh}", "`path`"),
        ("${w.zzz}", "it has path, bytes"),
        ("${q.rows.name}", "forEach"),
        ("${w.Exchange Rate}", "`${w[\"Exchange Rate\"]}`"),
        ("${nothing_like_it_at_all}", "`${q}`, `${w}`"),
        ("${last}", "`${q}`, `${w}`"),
    ];
    for (reference, words) in cases {
        let plan = json!([
            { "id": "w", "tool": "t.write" },
            { "id": "q", "tool": "t.query" },
            { "id": "last", "tool": "t.other", "args": { "any": reference } },
        ]);
        let found = check(plan, &catalog()).findings;
        let suggestion = found[0].suggestion.as_deref().unwrap_or_default();
        assert!(suggestion.contains(words), "{reference}: {found:?}");
        assert!(!suggestion.contains("$$"), "{reference}: {found:?}");
    }
}

#[test]
fn every_bad_reference_of_a_text_is_reported() {
    let text = "${gone} and ${a b} and ${c d} and ${nothing} and ${w}";
    let plan = json!([
        { "id": "w", "tool": "t.write" },
        { "id": "last", "tool": "t.other", "args": { "any": text } },
    ]);
    let mut codes: Vec<Code> = check(plan, &catalog())
        .findings
        .iter()
        .map(|finding| finding.code)
        .collect();
    codes.sort();
    let malformed = Code::MalformedReference;
    let unresolved = Code::UnresolvedName;
    assert_eq!(codes, [malformed, malformed, unresolved, unresolved]);
}

#[test]
fn references_in_the_notation_of_another_program_are_noticed() {
    for (text, meant) in [
        ("{{w}}", "`${w}`"),
        ("Path: {{ steps.w.output }}", "`${w}`"),
        ("{{w.path}}", "`${w.path}`"),
        ("<w.output>", "`${w}`"),
        ("use $w.path here", "`${w.path}`"),
    ] {
        let plan = json!([
            { "id": "w", "tool": "t.write" },
            { "id": "last", "tool": "t.other", "args": { "in": [{ "any": text }] }, "dependsOn": ["w"] },
        ]);
        let found = check(plan, &catalog()).findings;
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].code, Code::ForeignReference, "{text}");
        assert_eq!(found[0].pointer, "/steps/1/args/in/0/any");
        let suggestion = found[0].suggestion.as_deref().unwrap();
        assert!(suggestion.contains(meant), "{text}: {suggestion}");
    }
    for text in [
        "<w>",
        "{{name}}",
        "$w",
        "$wage.x",
        "a < w.path",
        "{{ w + 1 }}",
        "$5.00",
    ] {
        let plan = json!([
            { "id": "w", "tool": "t.write" },
            { "id": "last", "tool": "t.other", "args": { "any": text }, "dependsOn": ["w"] },
        ]);
        assert_eq!(check(plan, &catalog()).findings, [], "{text}");
    }
}

fn codes(plan: Value, catalog: &Catalog) -> Vec<Code> {
    let found = check(plan, catalog).findings;
    found.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_loop_over_something_that_is_no_list_is_found() {
    let loops = |list: Value| {
        let plan = json!([
            { "id": "w", "tool": "t.write" },
            { "id": "q", "tool": "t.query" },
            { "id": "r", "tool": "t.read" },
            { "id": "o", "tool": "t.other" },
            { "id": "each", "tool": "t.other", "forEach": list },
        ]);
        codes(plan, &catalog())
    };
    for list in [json!("${w}"), json!("${w.bytes}"), json!("a, b")] {
        assert_eq!(loops(list.clone()), [Code::NotAList], "{list}");
    }
    // Text can be a list as JSON.
    assert_eq!(loops(json!("${w.path}")), [Code::UndeclaredField]);
    for list in [
        json!("${q.rows}"),
        json!("${o}"),
        json!("${o.rows}"),
        json!([1, "${w}"]),
    ] {
        assert_eq!(loops(list.clone()), [], "{list}");
    }
}

#[test]
fn parts_that_conditions_ask_for_are_looked_for() {
    let asks = |when: &str, expect: &str| {
        let plan = json!([
            { "id": "w", "tool": "t.write" },
            { "id": "q", "tool": "t.query" },
            { "id": "o", "tool": "t.other" },
            { "id": "each", "tool": "t.write", "forEach": "${q.rows}", "dependsOn": ["w", "o"],
              "args": { "mode": { "a": 1 } }, "when": when, "expect": expect },
        ]);
        codes(plan, &catalog())
    };
    for (when, expect) in [
        ("w.nope == 1", "true"),
        ("!item.title", "true"),
        ("steps.w.nope == 1", "true"),
        ("q.rows[0].title == 'x'", "true"),
        ("true", "result.done"),
    ] {
        assert_eq!(asks(when, expect), [Code::UnknownField], "{when} {expect}");
    }
    assert_eq!(asks("q.nope", "true"), [Code::UndeclaredField]);
    for (when, expect) in [
        ("w.bytes > 1 && item.name != ''", "result.path == w.path"),
        ("has(w.nope)", "args.mode.b == 1 || mode.c"),
        ("o.anything.at[0].all", "true"),
        ("q.rows.exists(row, row.title == 'x')", "true"),
    ] {
        assert_eq!(asks(when, expect), [], "{when} {expect}");
    }
}

#[test]
fn variables_have_the_type_of_what_is_written() {
    let plan = json!({ "goal": "g", "variables": { "who": "ada", "many": [1], "none": null },
        "steps": [step("a", json!({ "list": "${who}", "text": "${who}" })),
            step("b", json!({ "list": "${many}" })), step("c", json!({ "list": "${none}" }))] });
    let found = check(plan, &catalog()).findings;
    let errors: Vec<&str> = found
        .iter()
        .filter(|finding| finding.is_error())
        .map(|finding| finding.pointer.as_str())
        .collect();
    assert_eq!(errors, ["/steps/0/args/list"], "{found:?}");
}

#[test]
fn what_earlier_results_looked_like_makes_warnings_and_suggestions() {
    let known = tool("t", "other", json!({ "type": "object" }), None);
    let shape = SeenShape::of(
        &json!("{\"rows\": [{\"name\": \"Ada\"}], \"total\": 1}"),
        &|_| true,
    );
    known.note_seen(Arc::new(shape));
    let catalog = Catalog::new([known]);
    let asks = |reference: &str| {
        let plan = json!([
            { "id": "o", "tool": "t.other" },
            { "id": "each", "tool": "t.other", "forEach": "${o.rows}", "args": { "x": reference } },
        ]);
        check(plan, &catalog).findings
    };
    for reference in ["${o}", "${o.total}", "${o.rows[0].name}", "${item.name}"] {
        assert_eq!(asks(reference), [], "{reference}");
    }
    for reference in [
        "${o.totals}",
        "${o.rows[0].nam}",
        "${item.nam}",
        "${o.total.x}",
    ] {
        let found = asks(reference);
        assert_eq!(found.len(), 1, "{reference}: {found:?}");
        assert_eq!(found[0].code, Code::UndeclaredField);
        assert!(found[0].message.contains("earlier results"), "{found:?}");
    }
    let suggestion = asks("${o.totals}")[0].suggestion.clone().unwrap();
    assert!(suggestion.contains("total"), "{suggestion}");
}
