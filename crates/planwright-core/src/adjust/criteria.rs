//! The success criteria of a plan: asked about, or decided by steps of the plan itself.

use super::data::limit_text;
use super::schema::text;
use super::{StepStory, as_data};
use crate::model::{AnswerSchema, Message, find_json};
use crate::run::{CriterionCheck, Run, StepState, StoredValue};
use crate::text::sanitize_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Criteria that are asked about at once.
const MAX_CRITERIA: usize = 50;

/// Letters of the evidence that are kept.
const MAX_EVIDENCE: usize = 1_000;

/// What the plan's own steps say: a step with the label `criterion:2` decides the second criterion.
/// One that completed speaks for it unless its value is false, or has a `holds` that is.
pub fn settled_by_steps(run: &Run) -> BTreeMap<usize, CriterionCheck> {
    let criteria = &run.plan().document().success_criteria;
    let mut settled: BTreeMap<usize, CriterionCheck> = BTreeMap::new();
    for ix in run.plan().indices() {
        let numbers = run
            .definition(ix)
            .labels
            .iter()
            .filter_map(|label| label.strip_prefix("criterion:"));
        for number in numbers.filter_map(|number| number.trim().parse::<usize>().ok()) {
            let Some(criterion) = number.checked_sub(1).and_then(|index| criteria.get(index))
            else {
                continue;
            };
            let (holds, said) = verdict(run.step(ix));
            let evidence = format!("step `{}` {said}", run.step_id(ix));
            let check = settled.entry(number - 1).or_insert_with(|| CriterionCheck {
                criterion: criterion.clone(),
                holds: Some(true),
                evidence: String::new(),
            });
            // All steps that decide about one criterion have to agree.
            check.holds = match (check.holds, holds) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                (None, _) | (_, None) => None,
            };
            check.evidence = if check.evidence.is_empty() {
                evidence
            } else {
                format!("{}; {evidence}", check.evidence)
            };
        }
    }
    settled
}

fn verdict(state: &StepState) -> (Option<bool>, String) {
    match state {
        StepState::Completed {
            value: StoredValue::Inline(value),
            ..
        } => {
            let said = match &**value {
                Value::Bool(holds) => Some(*holds),
                Value::Object(object) => object.get("holds").and_then(Value::as_bool),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
            };
            let holds = said.unwrap_or(true);
            (
                Some(holds),
                if holds {
                    "says so".to_owned()
                } else {
                    "says that it does not".to_owned()
                },
            )
        }
        StepState::Completed {
            value: StoredValue::Artifact(_),
            ..
        } => {
            // A small value is read; what is too large to be read here may say anything.
            (None, "its result is too large to be a verdict".to_owned())
        }
        StepState::Failed { error, .. } => (
            Some(false),
            format!("failed: {}", limit_text(&error.message)),
        ),
        StepState::Pending { .. }
        | StepState::Blocked { .. }
        | StepState::Ready { .. }
        | StepState::AwaitingApproval { .. }
        | StepState::AwaitingInput { .. }
        | StepState::AwaitingPlan { .. }
        | StepState::Running { .. }
        | StepState::Looping { .. }
        | StepState::RetryDue { .. }
        | StepState::Denied { .. }
        | StepState::Skipped { .. }
        | StepState::Cancelled { .. }
        | StepState::OutcomeUnknown { .. }
        | StepState::Undone { .. } => (
            None,
            format!("is {}", state.status().as_str().replace('_', " ")),
        ),
    }
}

/// The conversation that asks about the criteria with these numbers, counted from 0.
pub fn criteria_messages(run: &Run, asked: &[usize], instructions: &str) -> Vec<Message> {
    let document = run.plan().document();
    let criteria: Vec<Value> = asked
        .iter()
        .take(MAX_CRITERIA)
        .filter_map(|&index| {
            Some(json!({ "criterion": index + 1, "text": limit_text(document.success_criteria.get(index)?) }))
        })
        .collect();
    let (steps, left_out) = StepStory::of_run(run);
    let goal = document
        .goal
        .as_deref()
        .or(document.title.as_deref())
        .unwrap_or_default();
    let plan = json!({ "goal": limit_text(goal), "run": run.status(), "stepsLeftOut": left_out });
    let text = [
        as_data("Plan", &plan),
        as_data("Steps", &steps),
        as_data("Criteria", &criteria),
        "\nWhich of them hold? Answer with the JSON object only.\n".to_owned(),
    ];
    vec![Message::system(instructions), Message::user(text.concat())]
}

/// Returns the schema of an answer about these criteria, named by their place in the plan.
pub fn criteria_schema(asked: &[usize]) -> AnswerSchema {
    let numbers: Vec<usize> = asked
        .iter()
        .take(MAX_CRITERIA)
        .map(|index| index + 1)
        .collect();
    let check = json!({
        "type": "object",
        "properties": {
            "criterion": { "type": "integer", "enum": numbers },
            "holds": { "type": ["boolean", "null"] },
            "evidence": text(500),
        },
        "required": ["criterion", "holds", "evidence"],
    });
    let checks = json!({ "type": "array", "maxItems": numbers.len(), "items": check });
    let schema =
        json!({ "type": "object", "properties": { "checks": checks }, "required": ["checks"] });
    AnswerSchema {
        name: "criteria".to_owned(),
        schema,
    }
}

/// The verdict of the answer on each criterion, by its number counted from 0. A criterion that the
/// answer does not mention, or mentions twice with different words, is unknown.
pub fn read_criteria(
    run: &Run,
    asked: &[usize],
    answer: &str,
) -> Result<Vec<(usize, CriterionCheck)>, String> {
    let value = find_json(answer).ok_or("there is no JSON object in the answer")?;
    let checks = value.get("checks").unwrap_or(&value);
    let list = checks.as_array().ok_or("the answer has no `checks`")?;
    let criteria = &run.plan().document().success_criteria;
    let told = |index: usize| -> (Option<bool>, String) {
        let mut found = list.iter().filter(|check| number(check) == Some(index + 1));
        let Some(check) = found.next() else {
            return (None, "the model did not say".to_owned());
        };
        if found.any(|other| other.get("holds") != check.get("holds")) {
            return (None, "the model said two things".to_owned());
        }
        let evidence = check
            .get("evidence")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let evidence = sanitize_line(evidence).chars().take(MAX_EVIDENCE).collect();
        (check.get("holds").and_then(Value::as_bool), evidence)
    };
    Ok(asked
        .iter()
        .filter_map(|&index| {
            let (holds, evidence) = told(index);
            Some((
                index,
                CriterionCheck {
                    criterion: criteria.get(index)?.clone(),
                    holds,
                    evidence,
                },
            ))
        })
        .collect())
}

fn number(check: &Value) -> Option<usize> {
    let number = check.get("criterion")?;
    let read = number
        .as_u64()
        .or_else(|| number.as_str()?.trim().parse().ok())?;
    usize::try_from(read).ok()
}
