//! Sets of adjustments: made as a whole or not at all, and never to what was executed.

use planwright_core::adjust::{Adjustable, Adjustment, Assessment, Reflected, StepProgress};
use planwright_core::id::StepId;
use planwright_core::plan::{Bounds, Document, Plan, Step};
use planwright_core::status::StepStatus;
use planwright_testing::dice::Dice;
use serde_json::{Value, json};

fn document(steps: &Value) -> Document {
    serde_json::from_value(json!({"id": "p", "steps": steps})).unwrap()
}

fn abc() -> Document {
    document(&json!([
        {"id": "a", "tool": "t.a"},
        {"id": "b", "tool": "t.b", "dependsOn": ["a"], "args": {"x": 1}, "result": "found"},
        {"id": "c", "tool": "t.c", "dependsOn": ["b"], "args": {"of": "${found}"}},
    ]))
}

/// `a` completed, `b` failed, `c` has not run.
fn state() -> Adjustable {
    standing(&[
        ("a", StepProgress::Done(StepStatus::Completed)),
        ("b", StepProgress::Failed),
        ("c", StepProgress::Open),
    ])
}

fn standing(steps: &[(&str, StepProgress)]) -> Adjustable {
    steps
        .iter()
        .map(|(id, standing)| (id.parse().unwrap(), *standing))
        .collect()
}

fn read(adjustments: &Value) -> Vec<Adjustment> {
    let answer =
        json!({"assessment": "needs_adjustment", "reasoning": "", "adjustments": adjustments});
    Reflected::read(&answer.to_string(), &Bounds::default())
        .unwrap()
        .adjustments
}

fn adjusted(adjustments: &Value) -> Document {
    abc()
        .apply_adjustments(&read(adjustments), &state(), &Bounds::default())
        .unwrap()
}

#[track_caller]
fn refused(adjustments: &Value, words: &str) {
    let error = abc()
        .apply_adjustments(&read(adjustments), &state(), &Bounds::default())
        .unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

fn ids(document: &Document) -> Vec<String> {
    document
        .steps
        .iter()
        .map(|step| step.id.as_ref().unwrap().to_string())
        .collect()
}

fn step<'a>(document: &'a Document, id: &str) -> &'a Step {
    document
        .steps
        .iter()
        .find(|step| step.id.as_ref().is_some_and(|found| found.as_str() == id))
        .unwrap()
}

fn waits_for(document: &Document, id: &str) -> Vec<String> {
    step(document, id)
        .depends_on
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_step_added_before_another_is_waited_for() {
    let after =
        adjusted(&json!([{"type": "add_before", "step": "b", "new": {"id": "n", "tool": "t.n"}}]));
    assert_eq!(ids(&after), ["a", "n", "b", "c"]);
    assert_eq!(waits_for(&after, "b"), ["a", "n"]);
    assert_eq!(
        (waits_for(&after, "n"), waits_for(&after, "c")),
        (vec![], vec!["b".to_owned()])
    );
}

#[test]
fn a_step_added_after_another_waits_for_it_and_dependants_stay() {
    let after = adjusted(&json!([{"type": "add_after", "step": "a", "new": {"tool": "t.n"}}]));
    assert_eq!(ids(&after), ["a", "added-1", "b", "c"]);
    assert_eq!(
        (waits_for(&after, "added-1"), waits_for(&after, "b")),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
}

#[test]
fn what_replaces_a_step_keeps_its_id_its_edges_and_its_name() {
    let after = adjusted(
        &json!([{"type": "replace", "step": "b", "new": {"id": "zzz", "tool": "t.other", "args": {"y": 2}}}]),
    );
    assert_eq!(ids(&after), ["a", "b", "c"]);
    let b = step(&after, "b");
    assert_eq!(
        (
            b.tool.as_deref(),
            b.result.as_deref(),
            waits_for(&after, "b")
        ),
        (Some("t.other"), Some("found"), vec!["a".to_owned()])
    );
    assert_eq!(waits_for(&after, "c"), ["b"]);
}

#[test]
fn arguments_are_said_anew_and_skipping_leaves_the_step_in_the_plan() {
    let after = adjusted(&json!([
        {"type": "retry", "step": "b", "args": {"z": 3}},
        {"type": "skip", "step": "c", "reason": "not needed"},
    ]));
    assert_eq!(
        Value::Object(step(&after, "b").args.clone()),
        json!({"z": 3})
    );
    assert!(step(&after, "c").skip);
    // Trying again as it is changes nothing in the plan.
    assert_eq!(adjusted(&json!([{"type": "retry", "step": "b"}])), abc());
}

#[test]
fn insertions_compose_with_each_other_and_with_changes() {
    let after = adjusted(&json!([
        {"type": "add_before", "step": "c", "new": {"tool": "t.n"}},
        {"type": "add_before", "step": "c", "new": {"tool": "t.m"}},
        {"type": "modify", "step": "c", "args": {}},
        {"type": "retry", "step": "b"},
    ]));
    assert_eq!(ids(&after), ["a", "b", "added-1", "added-2", "c"]);
    assert_eq!(waits_for(&after, "c"), ["b", "added-1", "added-2"]);
}

#[test]
fn what_was_executed_cannot_be_changed_and_one_mistake_refuses_the_set() {
    for word in ["modify", "retry", "replace", "skip", "add_before"] {
        let change = json!({"type": word, "step": "a", "args": {}, "new": {"tool": "t.n"}});
        refused(
            &json!([change, {"type": "retry", "step": "b"}]),
            "what was executed cannot be changed",
        );
    }
    refused(
        &json!([{"type": "modify", "step": "b", "args": {}}]),
        "retry it",
    );
    refused(
        &json!([{"type": "retry", "step": "c"}]),
        "it has not failed",
    );
    refused(
        &json!([{"type": "skip", "step": "b"}, {"type": "retry", "step": "b"}]),
        "changed twice",
    );
    refused(
        &json!([{"type": "skip", "step": "nowhere"}]),
        "there is no step `nowhere`",
    );
    refused(
        &json!([{"type": "add_after", "step": "a", "new": {"id": "c", "tool": "t.n"}}]),
        "there is a step `c` already",
    );
    refused(&json!([]), "nothing to adjust");
    refused(
        &json!([{"type": "add_before", "step": "b", "new": {"id": "n", "tool": "t.n", "dependsOn": ["c"]}}]),
        "c",
    );
}

#[test]
fn what_was_partly_done_is_skipped_or_replaced_and_what_nobody_knows_waits_for_a_person() {
    let partly = standing(&[
        ("a", StepProgress::Done(StepStatus::Completed)),
        ("b", StepProgress::Partial),
        ("c", StepProgress::Open),
    ]);
    let make = |adjustments: Value, state: &Adjustable| {
        abc().apply_adjustments(&read(&adjustments), state, &Bounds::default())
    };
    assert!(make(json!([{"type": "retry", "step": "b"}]), &partly).is_err());
    assert!(
        make(
            json!([{"type": "modify", "step": "c", "args": {}}]),
            &partly
        )
        .is_err()
    );
    assert!(
        make(
            json!([{"type": "skip", "step": "b"}, {"type": "modify", "step": "c", "args": {}}]),
            &partly
        )
        .is_ok()
    );
    assert!(
        make(
            json!([{"type": "replace", "step": "b", "new": {"tool": "t.n"}}]),
            &partly
        )
        .is_ok()
    );
    let unknown = standing(&[
        ("a", StepProgress::Unknown),
        ("b", StepProgress::Failed),
        ("c", StepProgress::Open),
    ]);
    let error = make(json!([{"type": "retry", "step": "b"}]), &unknown).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("whether step `a` happened is not known"),
        "{error}"
    );
}

#[test]
fn answers_are_read_plain_fenced_and_nested_and_nonsense_is_no_answer() {
    let plain = json!({"assessment": "Needs Adjustment", "reasoning": "why\u{1b}[31m", "adjustments": [
        {"type": "RETRY", "step": "b", "args": {"x": 2}},
        {"adjustment_type": "add-before", "step_id": "b", "new_step": {"tool": "t.n", "args": {"q": 1}}},
        {"type": "skip", "step": 3},
    ]});
    let fenced = format!("Let me think.\n```json\n{plain}\n```\nDone.");
    let nested = json!({"result": {"reflection": plain}}).to_string();
    for text in [plain.to_string(), fenced, nested] {
        let read = Reflected::read(&text, &Bounds::default()).unwrap();
        assert_eq!(
            (read.assessment, read.reasoning.as_str()),
            (Assessment::NeedsAdjustment, "why[31m")
        );
        let words: Vec<&str> = read.adjustments.iter().map(Adjustment::word).collect();
        assert_eq!(words, ["retry", "add_before", "skip"]);
        assert_eq!(read.adjustments[2].step().as_str(), "3");
    }
    for nonsense in [
        "",
        "fine!",
        "[]",
        "{}",
        "{\"assessment\": 1}",
        "{\"assessment\": \"great\"}",
        "{\"assessment\": \"complete\", \"adjustments\": {}}",
        "{\"assessment\": \"complete\", \"adjustments\": [1]}",
        "{\"assessment\": \"complete\", \"adjustments\": [{\"type\": \"explode\", \"step\": \"a\"}]}",
        "{\"assessment\": \"complete\", \"adjustments\": [{\"type\": \"modify\", \"step\": \"a\"}]}",
        "{\"assessment\": \"complete\", \"adjustments\": [{\"type\": \"skip\", \"step\": \"../a\"}]}",
    ] {
        assert!(
            Reflected::read(nonsense, &Bounds::default()).is_err(),
            "{nonsense}"
        );
    }
}

#[test]
fn adjustments_survive_the_journal() {
    let made = read(&json!([
        {"type": "modify", "step": "c", "args": {"x": 1}},
        {"type": "retry", "step": "b"},
        {"type": "skip", "step": "c", "reason": "r"},
        {"type": "add_before", "step": "b", "new": {"tool": "t.n"}},
        {"type": "add_after", "step": "b", "new": {"tool": "t.n", "args": {"a": [1]}}},
        {"type": "replace", "step": "b", "new": {"tool": "t.n"}},
    ]));
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<Adjustment>>(&text).unwrap(),
        made
    );
}

fn random_document(dice: &mut Dice) -> Document {
    let steps: Vec<Value> = (0..1 + dice.below(6))
        .map(|at| {
            let before: Vec<String> = (0..at)
                .filter(|_| dice.chance(30))
                .map(|at| format!("s{at}"))
                .collect();
            let args = if at > 0 && dice.chance(30) {
                json!({"of": format!("${{s{}}}", dice.below(at))})
            } else {
                json!({"n": at})
            };
            json!({"id": format!("s{at}"), "tool": "t.x", "dependsOn": before, "args": args})
        })
        .collect();
    document(&json!(steps))
}

fn random_standing(dice: &mut Dice) -> StepProgress {
    match dice.below(20) {
        0..8 => StepProgress::Done(StepStatus::Completed),
        8..10 => StepProgress::Done(StepStatus::Skipped),
        10..13 => StepProgress::Failed,
        13 => StepProgress::Partial,
        14 => StepProgress::Unknown,
        _ => StepProgress::Open,
    }
}

fn random_adjustment(dice: &mut Dice) -> Value {
    let word = dice
        .try_pick(&[
            "modify",
            "retry",
            "skip",
            "add_before",
            "add_after",
            "replace",
        ])
        .unwrap();
    let step = format!("s{}", dice.below(7));
    let mut new = json!({"tool": "t.new", "args": {"n": dice.below(3)}});
    if dice.chance(40) {
        new["id"] = json!(format!(
            "{}{}",
            if dice.chance(30) { "s" } else { "n" },
            dice.below(4)
        ));
    }
    if dice.chance(30) {
        new["dependsOn"] = json!([format!("s{}", dice.below(7))]);
    }
    if dice.chance(20) {
        new["args"] = json!({"of": format!("${{s{}}}", dice.below(7))});
    }
    json!({"type": word, "step": step, "args": {"n": dice.below(5)}, "new": new})
}

#[test]
fn random_sets_never_touch_what_was_executed_and_lead_to_a_sound_plan_or_nowhere() {
    let mut made = 0;
    let mut refused = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let document = random_document(&mut dice);
        let state: Adjustable = document
            .steps
            .iter()
            .map(|step| (step.id.clone().unwrap(), random_standing(&mut dice)))
            .collect();
        let adjustments: Vec<Value> = (0..1 + dice.below(4))
            .map(|_| random_adjustment(&mut dice))
            .collect();
        let adjustments = read(&json!(adjustments));
        let before = document.clone();
        match document.apply_adjustments(&adjustments, &state, &Bounds::default()) {
            Err(error) => {
                refused += 1;
                assert!(!error.problems.is_empty());
            }
            Ok(after) => {
                made += 1;
                Plan::compile(after.clone(), &Bounds::default()).unwrap();
                for old in &before.steps {
                    let id = old.id.as_ref().unwrap();
                    let now = step(&after, id.as_str());
                    match state.progress(id) {
                        StepProgress::Done(_) => assert_eq!(now, old, "seed {seed}"),
                        StepProgress::Unknown | StepProgress::Absent => panic!("seed {seed}"),
                        StepProgress::Partial => {
                            assert!(now.skip || now.tool != old.tool, "seed {seed}");
                        }
                        StepProgress::Open | StepProgress::Failed => {}
                    }
                    let touched = adjustments.iter().any(|adjustment| {
                        adjustment.step() == id && adjustment.word() != "add_after"
                    });
                    assert!(
                        touched || now == old,
                        "seed {seed}: `{id}` was changed by the way"
                    );
                }
                let added = adjustments
                    .iter()
                    .filter(|adjustment| adjustment.word().starts_with("add_"))
                    .count();
                assert_eq!(after.steps.len(), before.steps.len() + added, "seed {seed}");
            }
        }
        assert_eq!(document, before);
    }
    assert!(
        made > 500 && refused > 500,
        "{made} made, {refused} refused"
    );
}

#[test]
fn a_step_that_nothing_is_known_about_cannot_be_changed() {
    let none: Adjustable = std::iter::empty::<(StepId, StepProgress)>().collect();
    let error = abc().apply_adjustments(
        &read(&json!([{"type": "skip", "step": "c"}])),
        &none,
        &Bounds::default(),
    );
    assert!(error.is_err());
}
