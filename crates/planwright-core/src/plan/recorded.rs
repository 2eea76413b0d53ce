//! Turning calls that were made one by one into a plan that makes them again.
//!
//! A value in the arguments of a call that an earlier call returned becomes a reference to that
//! result, so that the plan goes on with what it finds and not with what was found then.

use super::reference::is_name;
use super::{Document, Step};
use crate::id::{PlanId, StepId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A call that was made and came back.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// The full name of the tool.
    pub tool: String,
    /// The arguments, as they were sent.
    pub args: Map<String, Value>,
    /// The value that came back.
    pub result: Value,
    /// The call changed nothing.
    pub read_only: bool,
}

/// Texts that are shorter are in arguments by chance.
const MIN_TEXT: usize = 4;
/// Texts that are shorter are part of another text by chance.
const MIN_PART: usize = 8;
/// Values of one result that are looked for in later arguments.
const MAX_LEAVES: usize = 2_000;
/// Names that are tried for one call.
const MAX_NAMES: usize = 20_000;

/// A text or number somewhere in a result, and how it is referred to.
struct Leaf<'a> {
    value: &'a Value,
    reference: String,
}

/// The plan that makes these calls again. Calls keep the order of what they change: each waits for
/// the last change before it, and a change for everything read since.
pub fn document_of_calls(id: PlanId, title: &str, calls: &[RecordedCall]) -> Document {
    let mut names = BTreeSet::new();
    let mut leaves: Vec<Leaf<'_>> = Vec::new();
    let mut steps = Vec::with_capacity(calls.len());
    let mut last_change: Option<StepId> = None;
    let mut read_since: Vec<StepId> = Vec::new();
    for call in calls {
        let step_id = name_step(&call.tool, &mut names);
        let Value::Object(args) = with_references(Value::Object(call.args.clone()), &leaves) else {
            continue;
        };
        let mut depends_on: Vec<StepId> = last_change.iter().cloned().collect();
        if call.read_only {
            read_since.push(step_id.clone());
        } else {
            depends_on.append(&mut read_since);
            last_change = Some(step_id.clone());
        }
        collect_leaves(&call.result, step_id.to_string(), &mut leaves, &mut 0);
        steps.push(Step {
            id: Some(step_id),
            tool: Some(call.tool.clone()),
            args,
            depends_on,
            ..Step::default()
        });
    }
    Document {
        id: Some(id),
        title: Some(title.to_owned()),
        steps,
        ..Document::default()
    }
}

/// Names that mean something else in references.
const TAKEN: [&str; 8] = [
    "env",
    "index",
    "input",
    "inputs",
    "item",
    "secret",
    "steps",
    "variables",
];

/// The tool's own name, with a number where it was called before.
fn name_step(tool: &str, names: &mut BTreeSet<StepId>) -> StepId {
    let (_, short) = tool.split_once('.').unwrap_or(("", tool));
    let plain: String = short
        .chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => letter,
            _ => '_',
        })
        .collect();
    let usable = plain.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = if usable && !TAKEN.contains(&plain.as_str()) {
        plain
    } else {
        format!("call_{plain}")
    };
    let numbered = (1_usize..).map(|number| match number {
        1 => plain.clone(),
        number => format!("{plain}_{number}"),
    });
    let named = numbered.filter_map(|name| name.parse().ok());
    let free = named.take(MAX_NAMES).find(|id| !names.contains(id));
    let id: StepId = free.unwrap_or_else(|| {
        let name = format!("call_{}", names.len() + 1);
        name.parse().expect("letters and a number are an id")
    });
    names.insert(id.clone());
    id
}

fn collect_leaves<'a>(
    value: &'a Value,
    reference: String,
    leaves: &mut Vec<Leaf<'a>>,
    seen: &mut usize,
) {
    *seen += 1;
    if *seen > MAX_LEAVES {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| is_name(name)) {
                collect_leaves(field, format!("{reference}.{name}"), leaves, seen);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_leaves(item, format!("{reference}[{index}]"), leaves, seen);
            }
        }
        Value::String(text) if text.chars().count() < MIN_TEXT => {}
        Value::Number(number) if number.to_string().len() < MIN_TEXT => {}
        Value::String(_) | Value::Number(_) => leaves.push(Leaf { value, reference }),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The value as the plan writes it: references where an earlier result has it, the latest first.
fn with_references(value: Value, leaves: &[Leaf<'_>]) -> Value {
    if let Some(leaf) = leaves.iter().rev().find(|leaf| *leaf.value == value) {
        return Value::String(format!("${{{}}}", leaf.reference));
    }
    match value {
        Value::String(text) => Value::String(embed_references(&text, leaves)),
        Value::Array(items) => {
            let items = items.into_iter();
            Value::Array(items.map(|item| with_references(item, leaves)).collect())
        }
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, field)| (name, with_references(field, leaves)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// A text with the longest part that an earlier result has as a reference.
fn embed_references(text: &str, leaves: &[Leaf<'_>]) -> String {
    let plain = |text: &str| super::reference::escape(text);
    let longest = leaves
        .iter()
        .rev()
        .filter_map(|leaf| Some((leaf.value.as_str()?, &leaf.reference)))
        .filter(|(part, _)| part.chars().count() >= MIN_PART && text.contains(part))
        .max_by_key(|(part, _)| part.len());
    match longest.and_then(|(part, reference)| Some((text.split_once(part)?, reference))) {
        Some(((before, after), reference)) => {
            format!("{}${{{reference}}}{}", plain(before), plain(after))
        }
        None => plain(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Bounds, Plan};
    use serde_json::json;

    fn call(tool: &str, args: &Value, result: Value, read_only: bool) -> RecordedCall {
        RecordedCall {
            tool: tool.to_owned(),
            args: args.as_object().unwrap().clone(),
            result,
            read_only,
        }
    }

    fn ids_of(names: &[&str]) -> Vec<StepId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn what_an_earlier_call_returned_becomes_a_reference() {
        let calls = [
            call(
                "git.find",
                &json!({"name": "a"}),
                json!({"items": [{"sha": "abcdef12"}]}),
                true,
            ),
            call(
                "git.show",
                &json!({"rev": "abcdef12", "deep": [{"at": "abcdef12"}]}),
                json!("text"),
                true,
            ),
            call(
                "mail.send",
                &json!({"text": "see abcdef12 now", "n": 3}),
                json!(null),
                false,
            ),
            call(
                "mail.send",
                &json!({"text": "costs ${5}"}),
                json!(null),
                false,
            ),
        ];
        let document = document_of_calls("again".parse().unwrap(), "Again", &calls);
        let args = |step: usize| Value::Object(document.steps[step].args.clone());
        assert_eq!(
            args(1),
            json!({"rev": "${find.items[0].sha}", "deep": [{"at": "${find.items[0].sha}"}]})
        );
        assert_eq!(
            args(2),
            json!({"text": "see ${find.items[0].sha} now", "n": 3})
        );
        assert_eq!(args(3), json!({"text": "costs $${5}"}));
        let ids: Vec<String> = document
            .steps
            .iter()
            .map(|step| step.id.clone().unwrap().to_string())
            .collect();
        assert_eq!(ids, ["find", "show", "send", "send_2"]);
        assert_eq!(document.steps[2].depends_on, ids_of(&["find", "show"]));
        assert_eq!(document.steps[3].depends_on, ids_of(&["send"]));
        Plan::compile(document, &Bounds::default()).unwrap();
    }

    #[test]
    fn any_calls_are_a_plan() {
        let odd = [
            "x.1", "x.-", "x.ä", "noserver", "x.", "x.a b", "x.steps", "x.item",
        ];
        let calls: Vec<RecordedCall> = odd
            .iter()
            .map(|tool| {
                call(
                    tool,
                    &json!({"v": "${secret.X} and long text"}),
                    json!({"a-b": "long text", "ok": ["long text"]}),
                    false,
                )
            })
            .collect();
        let document = document_of_calls("odd".parse().unwrap(), "Odd", &calls);
        assert_eq!(document.steps.len(), odd.len());
        let plan = Plan::compile(document, &Bounds::default());
        assert!(plan.is_ok(), "{:?}", plan.err());
    }
}
