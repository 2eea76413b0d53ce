//! Plans in Markdown, read back: what was written by us, by hand, and by other programs.

use crate::plans::{document, read};
use planwright_core::plan::{
    Bounds, Document, MarkdownForm, MarkdownMeta, ReadMarkdown, ReadPlanError, from_markdown,
    to_cursor, to_markdown,
};
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) fn meta() -> MarkdownMeta {
    MarkdownMeta {
        status: "proposed".into(),
        version: 3,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        execution_session: Some(".plans/p/session.jsonl".into()),
        execution_started_at: None,
        execution_ended_at: None,
        result_summary: None,
        rejections: Vec::new(),
    }
}

#[track_caller]
fn taken(text: &str) -> ReadMarkdown {
    from_markdown(text.as_bytes(), &Bounds::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> ReadPlanError {
    from_markdown(text.as_bytes(), &Bounds::default()).unwrap_err()
}

fn everything() -> Document {
    document(json!({
        "id": "p", "title": "t", "goal": "g\n\n- a", "inputs": {"type": "object"}, "variables": {"v": [1, null]},
        "toolsRequired": ["t"], "successCriteria": ["s"], "risks": ["r", "r\u{200b}", ""], "plannerModel": "m",
        "executorModel": "", "estimatedDuration": 1.5,
        "context": {"toolOutputs": {"x": "```"}, "notes": "n\n# no heading", "artifacts": ["a", "[b](c)"],
            "template": {"id": "q", "version": 2}, "stored": {
                "notes": {"digest": format!("sha256:{}", "0".repeat(64)), "bytes": 5},
                "toolOutputs/od\nd": {"digest": format!("sha256:{}", "1".repeat(64)), "bytes": 6}}},
        "limits": {"maxConcurrency": 2, "onFailure": "continue", "maxCycles": 1, "maxReplans": 1,
            "budget": {"calls": 1, "perTool": {"t": 1}, "seconds": 1, "tokens": 1, "sameCall": 1}},
        "steps": [
            {"id": "a", "title": "t", "tool": "t", "args": {"x": 1}, "result": "r", "when": "true", "forEach": [1],
             "maxParallel": 1, "retry": {"max": 1, "backoff": 1, "factor": 1, "jitter": 0, "on": ["x"]},
             "timeoutSeconds": 1, "approvalRequired": true, "constraints": ["true"], "critical": false,
             "optional": true, "expect": "true", "undo": {"tool": "u", "args": {"y": 1}}, "capability": "c",
             "capabilityLabel": "l", "labels": ["l"]},
            {"think": {"prompt": "p", "schema": {}, "model": "m"}, "dependsOn": ["a"]},
            {"agent": {"instruction": "i", "tool": "t", "operation": "o", "target": "x", "executor": "e"}},
            {"input": {"message": "m", "schema": {"type": "object"}}},
            {"plan": {"id": "q", "inputs": {"x": 1}}},
        ],
    }))
}

#[test]
fn every_field_comes_back() {
    let document = everything();
    let text = to_markdown(&document, &meta());
    let read = taken(&text);
    assert_eq!(read.document, document, "{text}");
    assert_eq!((read.version, read.form), (Some(3), MarkdownForm::Plan));
    assert_eq!(read.notices, [""; 0]);
    assert!(
        text.contains("- [notes](artifacts/notes.json) sha256:0"),
        "{text}"
    );
}

#[test]
fn a_file_saved_with_other_line_breaks_is_the_same_plan() {
    let document = everything();
    let text = to_markdown(&document, &meta());
    assert_eq!(taken(&text.replace('\n', "\r\n")).document, document);
    assert_eq!(taken(&format!("\u{feff}{text}")).document, document);
}

#[test]
fn more_than_nine_steps_keep_their_blocks() {
    let steps: Vec<Value> = (0..120)
        .map(|n| json!({"id": format!("s{n}"), "tool": "t", "args": {"n": n}}))
        .collect();
    let document = document(json!({"id": "p", "steps": steps}));
    assert_eq!(taken(&to_markdown(&document, &meta())).document, document);
}

#[test]
fn an_edit_of_what_people_see_is_taken() {
    let text = to_markdown(&everything(), &meta());
    let edited = text
        .replace("title: \"t\"", "title: A new title")
        .replace("1. t (t)", "1. First (other.tool)")
        .replace("- s\n", "- s\n- and more\n")
        .replace("n\n\\# no heading", "Other notes,\nin two lines.")
        .replace("- r\n- r\n", "- rather not\n- r\n");
    let read = taken(&edited);
    assert_eq!(read.document.title.as_deref(), Some("A new title"));
    assert_eq!(read.document.steps[0].title.as_deref(), Some("First"));
    assert_eq!(read.document.steps[0].tool.as_deref(), Some("other.tool"));
    assert_eq!(read.document.success_criteria, ["s", "and more"]);
    assert_eq!(
        read.document.context.notes.as_deref(),
        Some("Other notes,\nin two lines.")
    );
    assert_eq!(read.document.risks[0], "rather not");
    assert_eq!(read.notices.len(), 1, "{:?}", read.notices);
}

#[test]
fn an_exact_text_cannot_say_something_else_than_the_prose() {
    let text = to_markdown(
        &document(json!({"id": "p", "goal": "harmless\u{200b}", "steps": []})),
        &meta(),
    );
    assert_eq!(
        taken(&text).document.goal.as_deref(),
        Some("harmless\u{200b}")
    );
    let read = taken(&text.replace("\"harmless\\u200b\"", "\"delete everything\""));
    assert_eq!(read.document.goal.as_deref(), Some("harmless"));
    assert!(
        read.notices[0].contains("`Goal` was edited"),
        "{:?}",
        read.notices
    );
}

#[test]
fn the_life_of_a_plan_is_not_the_files_to_say() {
    let text = to_markdown(&read("[]"), &meta()).replace("\"proposed\"", "approved");
    assert_eq!(taken(&text).version, Some(3));
    assert_eq!(taken(&text).document, read("[]"));
}

const BY_HAND: &str = "---
id: PLAN-a1b2c3d4
title: \"Tramitar factura\"
status: proposed        # proposed | approved
version: 1
created_at: 2026-02-11T12:00:00Z

# Planning
planner_model: claude-sonnet-4-5
tools_required:
  - odoo-toolbox
  - go-easy
execution_started_at:
---

## Steps
1. Fetch invoice 2024-0847 from Odoo (odoo-toolbox: read)
2. Send payment reminder to client (go-easy: gmail send)
   - politely
3. Update the status

## Context

### Tool Outputs
```json
{ \"x\": { \"data\": { \"amount_total\": 1500.00 } } }
```

### Notes
Through bank account *XYZ*.

### Artifacts
- invoice.pdf → somewhere/

## Risks
- Client email might bounce
";

#[test]
fn a_plan_written_by_hand_is_instructions_in_their_order() {
    let read = taken(BY_HAND);
    assert_eq!((read.version, read.form), (Some(1), MarkdownForm::Plan));
    assert_eq!(
        serde_json::to_value(&read.document).unwrap(),
        json!({
            "id": "PLAN-a1b2c3d4", "title": "Tramitar factura", "plannerModel": "claude-sonnet-4-5",
            "toolsRequired": ["odoo-toolbox", "go-easy"],
            "steps": [
                {"id": "1", "title": "Fetch invoice 2024-0847 from Odoo", "agent": {
                    "instruction": "Fetch invoice 2024-0847 from Odoo", "tool": "odoo-toolbox", "operation": "read"}},
                {"id": "2", "title": "Send payment reminder to client", "dependsOn": ["1"], "agent": {
                    "instruction": "Send payment reminder to client\n- politely", "tool": "go-easy",
                    "operation": "gmail send"}},
                {"id": "3", "title": "Update the status", "dependsOn": ["2"],
                    "agent": {"instruction": "Update the status"}},
            ],
            "context": {"toolOutputs": {"x": {"data": {"amount_total": 1500.0}}},
                "notes": "Through bank account *XYZ*.", "artifacts": ["invoice.pdf → somewhere/"]},
            "risks": ["Client email might bounce"],
        })
    );
    assert_eq!(
        taken(&to_markdown(&read.document, &meta())).document,
        read.document
    );
}

#[test]
fn every_error_names_its_line_and_what_to_do() {
    for (from, to, line, words) in [
        ("title:", "titel:", 3, "unknown"),
        ("version: 1", "version: one", 5, "frontmatter"),
        ("planner_model", "title", 9, "frontmatter"),
        ("## Risks", "## Dangers", 35, "`Dangers` is unknown"),
        ("- Client email", "Client email", 36, "no place"),
        ("1. Fetch", "First, fetch", 17, "no place"),
        ("1500.00 }", "1500.00 ", 27, "EOF"),
        ("## Context", "## Steps\n## Context", 22, "given twice"),
        ("{ \"x\":", "7 //", 25, "/context/toolOutputs"),
        ("### Notes\n", "### Notes\n```\n", 30, "never closed"),
        ("### Notes\n", "### Notes\n<!--\n", 30, "hides a section"),
        ("PLAN-a1b2c3d4", "../x", 2, "an id"),
        (
            "- politely",
            "```json\n   {\"dependsOn\": [7.5]}\n   ```",
            18,
            "dependsOn",
        ),
        (
            "- politely",
            "```json\n   {\"stepz\": 1}\n   ```",
            18,
            "stepz",
        ),
        (
            "- politely",
            "```json\n   {\"x\" 1}\n   ```",
            20,
            "expected",
        ),
        ("---\n\n## Steps", "\n## Steps", 1, "never closed"),
    ] {
        assert!(BY_HAND.contains(from), "{from}");
        let error = refused(&BY_HAND.replacen(from, to, 1));
        assert!(error.to_string().contains(words), "{from} → {to}: {error}");
        assert_eq!(error.line(), Some(line), "{from} → {to}: {error}");
        assert!(error.suggestion.is_some(), "{error:?}");
    }
}

#[test]
fn the_frontmatter_is_read_strictly() {
    for bad in [
        "a: &x 1\nid: *x",
        "title: !include x",
        "<<: {id: x}",
        "id: [",
        "version: -1",
        "version: 1.5",
        "tools_required: x",
        "id: a\nid: b",
        "title: {a: b}",
    ] {
        assert!(
            from_markdown(format!("---\n{bad}\n---\n").as_bytes(), &Bounds::default()).is_err(),
            "{bad}"
        );
    }
    let nested = format!("---\ntitle: {}\n---\n", "[".repeat(5_000));
    assert!(from_markdown(nested.as_bytes(), &Bounds::default()).is_err());
    let many = format!("---\ntools_required: [{}]\n---\n", "a,".repeat(30_000));
    assert!(from_markdown(many.as_bytes(), &Bounds::default()).is_err());
    let read = taken("---\ntitle: yes\nplanner_model: 12\n---\n");
    assert_eq!(read.document.title.as_deref(), Some("yes"));
    assert_eq!(read.document.planner_model.as_deref(), Some("12"));
}

const CURSOR: &str = "---
name: Add login
overview: Let people in.
todos:
  - id: look
    content: Look at the code
    status: completed
  - id: write it!
    content: |
      Write it
      well
    status: in_progress
  - id: test
    content: \"Test it\"
    status: pending
isProject: false
---

# Add login

Some *text*.
";

#[test]
fn todos_are_instructions_and_done_ones_are_left_out() {
    let read = taken(CURSOR);
    assert_eq!((read.form, read.version), (MarkdownForm::Cursor, None));
    assert_eq!(read.notices, ["1 task is done, so it was left out"]);
    assert_eq!(
        serde_json::to_value(&read.document).unwrap(),
        json!({
            "title": "Add login", "goal": "Let people in.", "context": {"notes": "# Add login\n\nSome *text*."},
            "steps": [
                {"id": "1", "title": "Write it", "agent": {"instruction": "Write it\nwell"}},
                {"id": "test", "title": "Test it", "agent": {"instruction": "Test it"}, "dependsOn": ["1"]},
            ],
        })
    );
    let error = refused(&CURSOR.replace("pending", "perhaps"));
    assert!(error.to_string().contains("`perhaps`"), "{error}");
}

#[test]
fn todos_come_back_from_what_is_written_for_other_programs() {
    let document = document(
        json!({"title": "T: \"x\"", "goal": "g\n---", "context": {"notes": "# a\ntext"}, "steps": [
            {"id": "a", "title": "A", "agent": {"instruction": "A"}},
            {"id": "b", "title": "B # b", "agent": {"instruction": "B # b"}, "dependsOn": ["a"]},
            {"id": "c", "title": "C", "agent": {"instruction": "C"}, "dependsOn": ["a"]},
        ]}),
    );
    assert_eq!(
        taken(&to_cursor(&document, &BTreeSet::new())).document,
        document
    );
    let done: BTreeSet<_> = ["a".parse().unwrap()].into();
    let left = taken(&to_cursor(&document, &done));
    assert_eq!(left.document.steps.len(), 2);
    assert!(
        left.document
            .steps
            .iter()
            .all(|step| step.depends_on.is_empty())
    );
}

#[test]
fn tasks_are_done_in_order_and_those_within_before_their_parent() {
    let text = "# Release\n\nDo it on Monday.\n\n- [x] Decide\n- [ ] Build\n  - [ ] Linux\n  - [x] Mac\n\n  Twice.\n\
        - [ ] Publish **it**\n\n## Later\n\n* [ ] Tell people\n  * by mail\n";
    let read = taken(text);
    assert_eq!(read.form, MarkdownForm::Tasks);
    assert_eq!(read.notices, ["2 tasks are done, so they were left out"]);
    assert_eq!(
        serde_json::to_value(&read.document).unwrap(),
        json!({
            "title": "Release", "context": {"notes": "Do it on Monday.\n\n## Later"},
            "steps": [
                {"id": "1", "title": "Linux", "agent": {"instruction": "Linux"}},
                {"id": "2", "title": "Build", "agent": {"instruction": "Build\nTwice."}, "dependsOn": ["1"]},
                {"id": "3", "title": "Publish **it**", "agent": {"instruction": "Publish **it**"}, "dependsOn": ["2"]},
                {"id": "4", "title": "Tell people", "agent": {"instruction": "Tell people\n- by mail"},
                    "dependsOn": ["3"]},
            ],
        })
    );
    let error = refused("# Nothing\n\nto do\n");
    assert!(error.to_string().contains("no task and no step"), "{error}");
}

#[test]
fn a_plan_that_is_too_long_or_not_text_is_refused() {
    let bounds = Bounds {
        max_document_bytes: 10,
        max_steps: 2,
        ..Bounds::default()
    };
    assert!(from_markdown(b"- [ ] abcdefgh", &bounds).is_err());
    let bounds = Bounds {
        max_steps: 2,
        ..Bounds::default()
    };
    for text in [
        "- [ ] a\n- [ ] b\n- [ ] c\n",
        "## Steps\n1. a\n2. b\n3. c\n",
    ] {
        let error = from_markdown(text.as_bytes(), &bounds).unwrap_err();
        assert!(
            error.to_string().contains("at most 2 are allowed"),
            "{error}"
        );
    }
    let error = from_markdown(b"- [ ] a\n\xff", &Bounds::default()).unwrap_err();
    assert_eq!(error.line(), Some(2), "{error}");
}

#[test]
fn shapes_that_nest_without_end_are_read_or_refused() {
    for piece in [
        "- ",
        "> ",
        "1. ",
        "[",
        "`",
        "*a_",
        "<a ",
        "- [ ] x\n  ",
        "# a\n",
        "```\n",
        "![",
        "\\",
        "(a: ",
        "&#",
    ] {
        let text = piece.repeat(10_000);
        for text in [
            text.clone(),
            format!("{text}x"),
            format!("## Steps\n1. {text}"),
            format!("## Goal\n{text}\n## Risks\n- {text}"),
        ] {
            drop(from_markdown(text.as_bytes(), &Bounds::default()));
        }
    }
    let nested: String = (0..400)
        .map(|depth| format!("{}- [ ] x\n", "  ".repeat(depth)))
        .collect();
    assert!(!taken(&nested).document.steps.is_empty());
}
