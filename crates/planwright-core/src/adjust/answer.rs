//! Reads the answer of the reflector. Any answer, even a malformed one, has a definite result.

use super::{Adjustment, Assessment};
use crate::id::StepId;
use crate::model::find_json;
use crate::plan::{Bounds, Step};
use crate::text::sanitize_line;
use serde_json::{Map, Value};

/// Letters of the reasoning that are kept.
const MAX_REASONING: usize = 4_000;

/// The depth at which the answer may lie in what was written around it.
const MAX_DEPTH: usize = 3;

/// The outcome of asking how a run stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Reflected {
    /// The state of the run.
    pub assessment: Assessment,
    /// The reasons of the model.
    pub reasoning: String,
    /// The changes that the model wants.
    pub adjustments: Vec<Adjustment>,
}

impl Reflected {
    /// The state of the run could not be determined.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self {
            assessment: Assessment::Unknown,
            reasoning: cut(&why.into()),
            adjustments: Vec::new(),
        }
    }

    /// Reads an answer: plain, fenced, or inside of another object. One that makes no sense is no
    /// answer.
    pub fn read(text: &str, bounds: &Bounds) -> Result<Self, String> {
        let value = find_json(text).ok_or("there is no JSON object in the answer")?;
        let object = with_assessment(&value, MAX_DEPTH).ok_or("the answer has no `assessment`")?;
        let assessment = read_assessment(object.get("assessment"))?;
        let reasoning = first(object, &["reasoning", "reason", "summary"]).and_then(Value::as_str);
        let listed = first(object, &["adjustments", "changes"])
            .cloned()
            .unwrap_or(Value::Null);
        let adjustments = match listed {
            Value::Null => Vec::new(),
            Value::Array(list) if list.len() > Adjustment::MAX => {
                return Err(format!(
                    "there are {} adjustments, at most {} are made",
                    list.len(),
                    Adjustment::MAX
                ));
            }
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    read_adjustment(value, bounds)
                        .map_err(|why| format!("adjustment {}: {why}", index + 1))
                })
                .collect::<Result<_, _>>()?,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                return Err("`adjustments` is no list".to_owned());
            }
        };
        Ok(Self {
            assessment,
            reasoning: cut(reasoning.unwrap_or_default()),
            adjustments,
        })
    }
}

/// The text as it can be kept and shown.
fn cut(text: &str) -> String {
    sanitize_line(text)
        .trim()
        .chars()
        .take(MAX_REASONING)
        .collect()
}

/// The object that has an assessment: the value itself, or one inside of it.
fn with_assessment(value: &Value, depth: usize) -> Option<&Map<String, Value>> {
    let inside = match value {
        Value::Object(object) if object.contains_key("assessment") => return Some(object),
        Value::Object(object) => object.values().collect::<Vec<_>>(),
        Value::Array(list) => list.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    if depth == 0 {
        return None;
    }
    inside
        .into_iter()
        .find_map(|value| with_assessment(value, depth - 1))
}

fn read_assessment(value: Option<&Value>) -> Result<Assessment, String> {
    let Some(Value::String(word)) = value else {
        return Err("`assessment` is no text".to_owned());
    };
    let plain = word.trim().to_lowercase().replace([' ', '-'], "_");
    plain.parse().map_err(|_| {
        format!(
            "`{}` is no assessment",
            sanitize_line(&word.chars().take(50).collect::<String>())
        )
    })
}

fn first<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .find_map(|name| object.get(*name))
        .filter(|value| !value.is_null())
}

fn read_adjustment(value: &Value, bounds: &Bounds) -> Result<Adjustment, String> {
    let Value::Object(object) = value else {
        return Err("it is no object".to_owned());
    };
    let word =
        first(object, &["type", "adjustmentType", "adjustment_type"]).and_then(Value::as_str);
    let word = word
        .ok_or("it has no `type`")?
        .trim()
        .to_lowercase()
        .replace('-', "_");
    let step = read_step_id(first(object, &["step", "stepId", "step_id"]))?;
    let args = first(
        object,
        &["args", "newArgs", "newInput", "new_input", "new_tool_input"],
    );
    let args = match args {
        None => None,
        Some(Value::Object(args)) => Some(args.clone()),
        Some(_) => return Err("`args` is no object".to_owned()),
    };
    let new = || {
        let new = first(object, &["new", "newStep", "new_step"]).ok_or("it has no `new` step")?;
        let read =
            Step::read(new.clone(), bounds).map_err(|error| format!("the new step: {error}"))?;
        Ok::<_, String>(Box::new(read))
    };
    Ok(match word.as_str() {
        "modify" => Adjustment::Modify {
            step,
            args: args.ok_or("it has no `args`")?,
        },
        "retry" => Adjustment::Retry { step, args },
        "skip" => {
            let reason = first(object, &["reason", "reasoning"])
                .and_then(Value::as_str)
                .unwrap_or_default();
            Adjustment::Skip {
                step,
                reason: cut(reason),
            }
        }
        "add_before" => Adjustment::AddBefore { step, new: new()? },
        "add_after" => Adjustment::AddAfter { step, new: new()? },
        "replace" => Adjustment::Replace { step, new: new()? },
        _ => {
            return Err(
                "its `type` is none of retry, modify, skip, add_before, add_after, replace"
                    .to_owned(),
            );
        }
    })
}

fn read_step_id(value: Option<&Value>) -> Result<StepId, String> {
    let text = match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err("it names no `step`".to_owned()),
    };
    text.parse()
        .map_err(|_| "its `step` is no id of a step".to_owned())
}
