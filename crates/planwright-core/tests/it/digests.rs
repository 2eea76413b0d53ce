//! What changes the digest of a plan, and what does not.

use crate::plans::{catalog, plan, tool};
use planwright_core::digest::Digest;
use planwright_core::plan::DigestFrame;
use planwright_core::tool::Catalog;
use serde_json::{Value, json};

fn digest(value: Value) -> Digest {
    plan(value).digest(&catalog(), "1")
}

fn base() -> Value {
    json!({"id": "p", "title": "t", "goal": "g", "variables": {"v": 1}, "risks": ["r"], "steps": [
        {"id": "a", "title": "A", "tool": "read_file", "args": {"path": "x", "n": [1, 2]}, "labels": ["l"]},
        {"id": "b", "title": "B", "tool": "stat", "args": {"path": "${a}"}, "retry": {"max": 1}},
    ]})
}

#[track_caller]
fn changed(pointer: &str, value: Value) -> bool {
    let mut other = base();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    other
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert(key.to_owned(), value);
    digest(base()) != digest(other)
}

#[test]
fn words_for_people_do_not_change_the_digest() {
    for (pointer, value) in [
        ("/id", json!("q")),
        ("/title", json!("other")),
        ("/goal", json!("other")),
        ("/successCriteria", json!(["x"])),
        ("/context", json!("notes")),
        ("/risks", json!([])),
        ("/plannerModel", json!("m")),
        ("/estimatedDuration", json!(5)),
        ("/steps/0/title", json!("other")),
        ("/steps/0/labels", json!([])),
        ("/steps/0/capabilityLabel", json!("x")),
    ] {
        assert!(!changed(pointer, value), "{pointer}");
    }
}

#[test]
fn a_digest_whose_frame_is_known_is_the_same() {
    let other_arguments = json!({"id": "q", "variables": {"v": 1}, "steps": [
        {"id": "a", "tool": "read_file", "args": {"path": "\"steps\":\"0", "n": null}},
        {"id": "b", "tool": "stat", "args": {"path": "${a}"}, "retry": {"max": 1}},
    ]});
    let one_step =
        |path: &str| json!({"steps": [{"id": "a", "tool": "stat", "args": {"path": path}}]});
    for (framed, others) in [
        (base(), vec![base(), other_arguments]),
        (
            one_step("x"),
            vec![one_step("y"), one_step("0"), one_step("")],
        ),
    ] {
        let frame = DigestFrame::of(&plan(framed), &catalog(), "1");
        for other in others {
            let other = plan(other);
            assert_eq!(frame.digest(&other), other.digest(&catalog(), "1"));
            assert_ne!(frame.digest(&other), other.digest(&catalog(), "2"));
        }
    }
}

#[test]
fn words_that_an_executor_is_told_change_the_digest() {
    let told = |goal: Value, title: &str| {
        digest(
            json!({"id": "p", "title": title, "goal": goal, "toolsRequired": ["read_file"], "steps": [
                {"id": "a", "title": "A", "agent": {"instruction": "look"}},
            ]}),
        )
    };
    assert_ne!(told(json!("g"), "t"), told(json!("other"), "t"));
    // The title takes the place of a goal that is not there, and is mere words beside one.
    assert_eq!(told(json!("g"), "t"), told(json!("g"), "other"));
    assert_ne!(told(Value::Null, "t"), told(Value::Null, "other"));
}

#[test]
fn everything_executed_changes_the_digest() {
    for (pointer, value) in [
        ("/variables", json!({"v": 2})),
        ("/inputs", json!({"type": "object"})),
        ("/limits", json!({"maxConcurrency": 1})),
        ("/toolsRequired", json!(["read_file", "stat"])),
        ("/executorModel", json!("m")),
        ("/steps/0/args", json!({"path": "y"})),
        ("/steps/0/args/n", json!([2, 1])),
        ("/steps/0/tool", json!("fs.read_file")),
        ("/steps/0/id", json!("c")),
        ("/steps/0/result", json!("r")),
        ("/steps/0/when", json!("true")),
        ("/steps/0/skip", json!(true)),
        ("/steps/0/forEach", json!([1])),
        ("/steps/0/approvalRequired", json!(true)),
        ("/steps/0/critical", json!(false)),
        ("/steps/0/optional", json!(true)),
        ("/steps/0/undo", json!({"tool": "stat"})),
        ("/steps/0/capability", json!("repo.read")),
        ("/steps/0/timeoutSeconds", json!(5)),
        ("/steps/1/retry", json!({"max": 2})),
    ] {
        if pointer == "/steps/0/id" {
            let mut other = base();
            other["steps"][0]["id"] = value;
            other["steps"][1]["args"]["path"] = json!("${c}");
            assert_ne!(digest(base()), digest(other));
        } else {
            assert!(changed(pointer, value), "{pointer}");
        }
    }
}

#[test]
fn an_edge_counts_once_however_it_is_said() {
    assert!(
        !changed("/steps/1/dependsOn", json!(["a"])),
        "the reference makes this edge already"
    );
    let mut with_edge = base();
    with_edge["steps"][1]["args"]["path"] = json!("y");
    let without_edge = digest(with_edge.clone());
    with_edge["steps"][1]["dependsOn"] = json!(["a"]);
    assert_ne!(digest(with_edge), without_edge);
}

#[test]
fn tool_definitions_and_policy_are_part_of_the_digest() {
    let plan = plan(base());
    let one = plan.digest(&catalog(), "1");
    assert_ne!(one, plan.digest(&catalog(), "2"));
    assert_ne!(one, plan.digest(&Catalog::default(), "1"));
    let changed = Catalog::new([tool(
        "fs",
        "read_file",
        json!({"type": "object", "title": "changed"}),
        None,
    )]);
    assert_ne!(
        plan.digest(&changed, "1"),
        plan.digest(&Catalog::default(), "1")
    );
}
