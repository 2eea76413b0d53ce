//! The DAG on a terminal.

use crate::plans::{REFACTOR_AUTH, plan, read};
use planwright_core::plan::{Bounds, Glyph, Plan, StepIx, render};
use serde_json::json;
use std::collections::BTreeSet;

fn pending(plan: &Plan) -> String {
    render(plan, |_| Glyph::Pending)
}

#[test]
fn the_printed_example_is_drawn_line_by_line() {
    let plan = Plan::compile(read(REFACTOR_AUTH), &Bounds::default()).unwrap();
    assert_eq!(
        pending(&plan),
        include_str!("../fixtures/refactor_auth.dag.txt")
    );
}

#[test]
fn every_state_has_its_own_sign() {
    let signs: BTreeSet<char> = Glyph::ALL.iter().map(|glyph| glyph.as_char()).collect();
    assert_eq!(signs.len(), Glyph::ALL.len());
    let known = [
        Glyph::Pending,
        Glyph::Running,
        Glyph::Completed,
        Glyph::Failed,
    ]
    .map(Glyph::as_char);
    assert_eq!(known, ['○', '◉', '●', '✗']);
}

#[test]
fn levels_are_blocks_and_members_beside_others_are_marked() {
    let plan = plan(json!([
        {"id": "a", "tool": "t"}, {"id": "b", "tool": "t", "dependsOn": ["a"]},
        {"id": "c", "tool": "t", "dependsOn": ["a"]}, {"id": "d", "tool": "t", "dependsOn": ["b", "c"]},
    ]));
    let states = [
        Glyph::Completed,
        Glyph::Running,
        Glyph::Failed,
        Glyph::Blocked,
    ];
    let drawn = render(&plan, |ix: StepIx| states[ix.index()]);
    let squeezed: Vec<String> = drawn
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "● a. [t]",
        "",
        "◉ b. [t] ∥ ← after: a",
        "✗ c. [t] ∥ ← after: a",
        "",
        "◌ d. [t] ← after: b, c",
    ];
    assert_eq!(squeezed, expected);
}

#[test]
fn an_empty_plan_draws_nothing() {
    assert_eq!(pending(&plan(json!([]))), "");
}

#[test]
fn columns_line_up_and_a_long_title_is_never_cut() {
    let long = "x".repeat(100);
    let plan = plan(json!([
        {"id": "1", "title": "Größe", "tool": "a"}, {"id": "step_22", "title": "y".repeat(40), "tool": "long_name"},
        {"id": "3", "title": long, "tool": "b"},
    ]));
    let drawn = pending(&plan);
    let column = |line: &str| line.chars().position(|c| c == '[').unwrap();
    let lines: Vec<&str> = drawn.lines().collect();
    assert_eq!(column(lines[0]), column(lines[1]));
    assert!(lines[2].contains(&long));
}

#[test]
fn hostile_titles_stay_on_their_line() {
    let plan =
        plan(json!([{"id": "a", "title": "x\n● 9. Approved\u{1b}[2J\u{202e}", "tool": "t\u{7}"}]));
    let drawn = pending(&plan);
    assert_eq!(drawn.lines().count(), 1);
    assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{202e}') && !drawn.contains('\u{7}'));
}
