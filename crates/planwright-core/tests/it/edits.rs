//! Changes to plan documents: what each does, what each refuses, and what differs afterwards.

use crate::plans::{catalog, document};
use planwright_core::plan::{Bounds, ChangeKind, Document, Edit, EditError, Plan, PlanDiff, Step};
use proptest::collection::vec;
use proptest::prelude::ProptestConfig;
use proptest::proptest;
use serde_json::{Value, json};

fn base() -> Document {
    document(
        json!({"id": "p", "title": "t", "goal": "g", "variables": {"v": 1}, "steps": [
            {"id": "a", "title": "A", "tool": "fs.read_file", "args": {"path": "x", "n": [1, 2]}, "labels": ["l"]},
            {"id": "b", "title": "B", "tool": "stat", "args": {"path": "${a}"}, "retry": {"max": 1}},
            {"id": "c", "tool": "stat", "args": {"path": "y"}, "dependsOn": ["b"]},
            {"id": "d", "tool": "stat", "args": {"path": "z"}},
        ]}),
    )
}

fn make(edits: &[Edit]) -> Result<Document, EditError> {
    base().with_edits(edits, &Bounds::default())
}

fn read(edit: Value) -> Edit {
    serde_json::from_value(edit).unwrap()
}

fn one(edit: Value) -> Result<Document, EditError> {
    make(&[read(edit)])
}

fn set(path: &str, value: Value) -> Result<Document, EditError> {
    one(json!({"op": "set", "path": path, "value": value}))
}

fn order(document: &Document) -> Vec<&str> {
    document
        .steps
        .iter()
        .map(|step| step.id.as_ref().unwrap().as_str())
        .collect()
}

fn refused(edit: Value) -> (String, String) {
    let error = one(edit).unwrap_err();
    (error.to_string(), error.suggest().unwrap_or_default())
}

#[test]
fn a_value_is_put_at_its_path_and_a_step_goes_by_id_or_position() {
    assert_eq!(set("title", json!("new")).unwrap().title.unwrap(), "new");
    assert_eq!(
        set("steps.a.args.path", json!("q")).unwrap().steps[0].args["path"],
        "q"
    );
    assert_eq!(
        set("steps.2.args.path", json!("q")).unwrap().steps[1].args["path"],
        "q"
    );
    assert_eq!(
        set("steps.b.args.deep.er", json!(1)).unwrap().steps[1].args["deep"],
        json!({"er": 1})
    );
    assert_eq!(
        set("steps.a.args.n.2", json!(3)).unwrap().steps[0].args["n"],
        json!([1, 2, 3])
    );
    assert_eq!(
        set("steps.a.retry.max", json!(4)).unwrap().steps[0]
            .retry
            .as_ref()
            .unwrap()
            .max,
        4
    );
    assert_eq!(
        set("limits.budget.perTool.stat", json!(4))
            .unwrap()
            .limits
            .budget
            .per_tool["stat"],
        4
    );
    assert_eq!(
        set("variables.\"odd.name\"", json!(4)).unwrap().variables["odd.name"],
        4
    );
    let numbered = document(json!({"steps": [{"id": "2", "tool": "x"}, {"id": "1", "tool": "y"}]}));
    let edit = [read(
        json!({"op": "set", "path": "steps.1.title", "value": "one"}),
    )];
    let edited = numbered.with_edits(&edit, &Bounds::default()).unwrap();
    assert_eq!(
        edited.steps[1].title.as_deref(),
        Some("one"),
        "the id wins over the position"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_probably_meant() {
    for (path, value, words, hint) in [
        (
            "titl",
            json!("x"),
            "the key `titl` is unknown",
            "did you mean `title`?",
        ),
        (
            "steps.a.timeout",
            json!(1),
            "the key `timeout` is unknown",
            "did you mean `timeoutSeconds`?",
        ),
        (
            "steps.a.depends_on",
            json!([]),
            "the key `depends_on` is unknown",
            "did you mean `dependsOn`?",
        ),
        ("steps.a.timeoutSeconds", json!("soon"), "invalid type", ""),
        (
            "steps.fetch.title",
            json!("x"),
            "there is no step `fetch`",
            "the plan has 4 steps",
        ),
        ("steps.9.title", json!("x"), "there is no step `9`", ""),
        (
            "title.x",
            json!("x"),
            "`title` is a text, and has no parts",
            "",
        ),
        ("id", json!("q"), "the id of a plan cannot be changed", ""),
        (
            "steps.a.args.n.7",
            json!(1),
            "`7` is none",
            "counted from 0",
        ),
        (
            "steps..x",
            json!(1),
            "is not a path",
            "steps.fetch.args.path",
        ),
    ] {
        let (error, hinted) = refused(json!({"op": "set", "path": path, "value": value}));
        assert!(error.contains(words), "{path}: {error}");
        assert!(hinted.contains(hint), "{path}: {hinted}");
    }
    let (error, hint) = refused(json!({"op": "unset", "path": "steps.a.args.pth"}));
    assert_eq!(
        (error.as_str(), hint.as_str()),
        (
            "there is nothing at `steps.a.args.pth`",
            "did you mean `path`?"
        )
    );
    assert!(serde_json::from_value::<Edit>(json!({"op": "explode"})).is_err());
    assert!(
        serde_json::from_value::<Edit>(json!({"op": "skip", "step": "a", "force": true})).is_err()
    );
}

#[test]
fn what_is_taken_away_is_gone() {
    assert_eq!(
        one(json!({"op": "unset", "path": "goal"})).unwrap().goal,
        None
    );
    assert!(
        one(json!({"op": "unset", "path": "steps.b.retry"}))
            .unwrap()
            .steps[1]
            .retry
            .is_none()
    );
    assert_eq!(
        one(json!({"op": "unset", "path": "steps.a.args.n.0"}))
            .unwrap()
            .steps[0]
            .args["n"],
        json!([2])
    );
    assert_eq!(
        order(&one(json!({"op": "unset", "path": "steps.d"})).unwrap()),
        ["a", "b", "c"]
    );
}

#[test]
fn a_step_that_is_skipped_stays_and_can_be_taken_back_in() {
    let skipped = one(json!({"op": "skip", "step": "c"})).unwrap();
    assert!(skipped.steps[2].skip);
    assert_eq!(skipped.steps.len(), 4);
    let back = skipped
        .with_edits(
            &[read(json!({"op": "unskip", "step": "3"}))],
            &Bounds::default(),
        )
        .unwrap();
    assert_eq!(back, base());
}

#[test]
fn a_step_moves_only_where_its_dependencies_allow() {
    let to = |edit: Value| order(&one(edit).unwrap()).join("");
    assert_eq!(to(json!({"op": "move", "step": "d", "to": 1})), "dabc");
    assert_eq!(
        to(json!({"op": "move", "step": "d", "before": "b"})),
        "adbc"
    );
    assert_eq!(to(json!({"op": "move", "step": "d", "after": "a"})), "adbc");
    assert_eq!(to(json!({"op": "move", "step": "c", "to": 4})), "abdc");
    assert_eq!(to(json!({"op": "move", "step": "c", "after": "d"})), "abdc");
    let (error, _) = refused(json!({"op": "move", "step": "c", "to": 1}));
    assert_eq!(
        error,
        "step `c` cannot stand there: it needs step `b`, which would come after it"
    );
    let (error, _) = refused(json!({"op": "move", "step": "a", "after": "b"}));
    assert_eq!(
        error,
        "step `a` cannot stand there: step `b` needs it and would come before it"
    );
    for bad in [
        json!({"op": "move", "step": "c"}),
        json!({"op": "move", "step": "c", "to": 0}),
        json!({"op": "move", "step": "c", "to": 9}),
        json!({"op": "move", "step": "c", "before": "d", "to": 1}),
        json!({"op": "move", "step": "c", "before": "nobody"}),
    ] {
        assert!(one(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_step_is_added_where_it_is_wanted_and_is_numbered_if_it_has_no_id() {
    let step = json!({"id": "n", "tool": "stat"});
    assert_eq!(
        order(&one(json!({"op": "add", "step": step})).unwrap()).join(""),
        "abcdn"
    );
    assert_eq!(
        order(&one(json!({"op": "add", "step": step, "before": "b"})).unwrap()).join(""),
        "anbcd"
    );
    assert_eq!(
        order(&one(json!({"op": "add", "step": step, "after": "b"})).unwrap()).join(""),
        "abncd"
    );
    assert_eq!(
        order(&one(json!({"op": "add", "step": step, "to": 1})).unwrap()).join(""),
        "nabcd"
    );
    assert_eq!(
        order(&one(json!({"op": "add", "step": {"tool": "stat"}, "to": 2})).unwrap()).join(""),
        "a2bcd"
    );
    let (error, _) = refused(json!({"op": "add", "step": {"id": "a", "tool": "stat"}}));
    assert_eq!(error, "there is a step `a` already");
    let read = Step::read(
        json!({"description": "D", "tool": "x", "arguments": {"k": 1}}),
        &Bounds::default(),
    );
    let read = read.unwrap();
    assert_eq!(
        (read.id, read.title.as_deref(), &read.args["k"]),
        (None, Some("D"), &json!(1))
    );
}

#[test]
fn a_step_that_others_need_is_not_removed() {
    assert_eq!(
        order(&one(json!({"op": "remove", "steps": ["d"]})).unwrap()).join(""),
        "abc"
    );
    let (error, hint) = refused(json!({"op": "remove", "steps": ["a"]}));
    assert_eq!(error, "step `a` cannot be removed: step `b` needs it");
    assert!(hint.contains("skip"), "{hint}");
    assert_eq!(
        order(&one(json!({"op": "remove", "steps": ["a", "c", "b"]})).unwrap()).join(""),
        "d"
    );
}

#[test]
fn an_edit_has_limits() {
    let many = vec![Edit::Skip { step: "a".into() }; Edit::MAX + 1];
    assert!(matches!(make(&many), Err(EditError::TooMany { .. })));
    let mut deep = json!(1);
    for _ in 0..Bounds::default().max_depth + 1 {
        deep = json!([deep]);
    }
    assert!(matches!(
        set("variables.v", deep),
        Err(EditError::TooLarge(_))
    ));
    let small = Bounds {
        max_document_bytes: 500,
        ..Bounds::default()
    };
    let edit = [read(
        json!({"op": "set", "path": "goal", "value": "x".repeat(500)}),
    )];
    assert!(matches!(
        base().with_edits(&edit, &small),
        Err(EditError::TooLarge(_))
    ));
}

#[test]
fn a_diff_speaks_of_steps_and_fields_and_says_what_is_only_words() {
    let edits = [
        json!({"op": "set", "path": "title", "value": "two\nlines\u{202e}"}),
        json!({"op": "set", "path": "variables.w", "value": 2}),
        json!({"op": "set", "path": "steps.a.args.path", "value": "other"}),
        json!({"op": "set", "path": "steps.a.title", "value": "Other"}),
        json!({"op": "unset", "path": "steps.b.retry"}),
        json!({"op": "remove", "steps": ["c"]}),
        json!({"op": "add", "step": {"id": "n", "title": "New", "tool": "stat", "args": {"path": "p"}}}),
        json!({"op": "move", "step": "d", "to": 1}),
    ]
    .map(read);
    let diff = PlanDiff::between(&base(), &make(&edits).unwrap());
    let text = diff.to_string();
    assert_eq!(
        text,
        "~ title: \"t\" → \"two\\nlines\\u{202e}\"  (only words)\n\
         + variables.w: 2\n\
         ~ step d  [stat]  moved from 4 to 1\n\
         ~ step a  Other  [fs.read_file]\n    ~ title: \"A\" → \"Other\"  (only words)\n    ~ args.path: \"x\" → \"other\"\n\
         ~ step b  B  [stat]\n    - retry: {\"max\":1,\"backoff\":1.0,\"factor\":2.0,\"jitter\":0.0}\n\
         + step n  New  [stat]\n    args: {\"path\":\"p\"}\n\
         - step c  [stat]\n    dependsOn: [\"b\"]\n    args: {\"path\":\"y\"}\n\
         ! safeguard: step b: retry removed (was {\"max\":1,\"backoff\":1.0,\"factor\":2.0,\"jitter\":0.0})\n",
        "{text}"
    );
    let wire = serde_json::to_value(&diff).unwrap();
    assert_eq!(wire["steps"][0]["kind"], "moved");
    assert_eq!(wire["fields"][0]["executable"], false);
    assert_eq!(serde_json::from_value::<PlanDiff>(wire).unwrap(), diff);
}

#[test]
fn the_fewest_moves_explain_a_new_order() {
    let steps = |order: &str| {
        let steps: Vec<Value> = order
            .chars()
            .map(|id| json!({"id": id.to_string(), "tool": "x"}))
            .collect();
        document(json!({"id": "p", "steps": steps}))
    };
    let moved = |before: &str, after: &str| {
        let diff = PlanDiff::between(&steps(before), &steps(after));
        assert!(
            diff.steps
                .iter()
                .all(|step| step.kind == ChangeKind::Moved && step.executable)
        );
        diff.steps
            .iter()
            .map(|step| step.id.to_string())
            .collect::<String>()
    };
    assert_eq!(moved("abcdef", "fabcde"), "f");
    assert_eq!(moved("abcdef", "bcdefa"), "a");
    assert_eq!(moved("abcdef", "abcdef"), "");
    assert_eq!(moved("abcd", "dcba").len(), 3);
}

/// Changes of every kind, most of which can be made in any order.
fn kinds() -> Vec<Edit> {
    [
        json!({"op": "set", "path": "title", "value": "other"}),
        json!({"op": "set", "path": "goal", "value": "other"}),
        json!({"op": "set", "path": "risks", "value": ["r"]}),
        json!({"op": "set", "path": "successCriteria", "value": ["s"]}),
        json!({"op": "set", "path": "plannerModel", "value": "m"}),
        json!({"op": "set", "path": "estimatedDuration", "value": 5}),
        json!({"op": "set", "path": "context.notes", "value": "n"}),
        json!({"op": "set", "path": "steps.a.title", "value": "other"}),
        json!({"op": "set", "path": "steps.a.labels", "value": []}),
        json!({"op": "set", "path": "steps.d.capabilityLabel", "value": "c"}),
        json!({"op": "set", "path": "toolsRequired", "value": ["stat", "fs.read_file"]}),
        json!({"op": "set", "path": "toolsRequired", "value": ["fs.read_file", "stat"]}),
        json!({"op": "set", "path": "variables.v", "value": 2}),
        json!({"op": "set", "path": "limits.maxConcurrency", "value": 2}),
        json!({"op": "set", "path": "executorModel", "value": "m"}),
        json!({"op": "set", "path": "steps.a.args.path", "value": "w"}),
        json!({"op": "set", "path": "steps.c.dependsOn", "value": ["a", "b"]}),
        json!({"op": "set", "path": "steps.c.dependsOn", "value": ["b", "a"]}),
        json!({"op": "set", "path": "steps.d.when", "value": "true"}),
        json!({"op": "unset", "path": "steps.b.retry"}),
        json!({"op": "skip", "step": "d"}),
        json!({"op": "unskip", "step": "d"}),
        json!({"op": "move", "step": "d", "to": 1}),
        json!({"op": "move", "step": "d", "to": 4}),
        json!({"op": "add", "step": {"id": "n", "tool": "stat", "args": {"path": "p"}}}),
        json!({"op": "remove", "steps": ["n"]}),
    ]
    .map(read)
    .into()
}

fn after(choices: &[usize]) -> Document {
    let kinds = kinds();
    let bounds = Bounds::default();
    let mut document = base();
    for &choice in choices {
        // What cannot be made now is left out.
        document = document
            .with_edits(&kinds[choice..=choice], &bounds)
            .unwrap_or(document);
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_without_anything_executable_is_a_diff_of_words(
        one in vec(0..26_usize, 0..8),
        two in vec(0..26_usize, 0..8),
    ) {
        let before = after(&one);
        let after = after(&two);
        let diff = PlanDiff::between(&before, &after);
        assert_eq!(diff.is_empty(), before == after);
        let digest = |document: Document| {
            Plan::compile(document, &Bounds::default()).unwrap().digest(&catalog(), "1")
        };
        let same = digest(before.clone()) == digest(after.clone());
        assert_eq!(same, !diff.is_executable(), "{diff}");
        let back = PlanDiff::between(&after, &before);
        assert_eq!(back.is_executable(), diff.is_executable());
        assert_eq!(back.fields.len(), diff.fields.len());
    }
}
