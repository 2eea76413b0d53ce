//! Reading a planner's answer.

use crate::model::find_json;
use crate::plan::{Bounds, Document, Finding, ReadPlanError};
use serde_json::{Map, Value, json};

/// The reason an answer is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadAnswerError {
    /// The answer was cut off.
    #[error("the answer was cut off before it was complete: write a shorter plan")]
    Cut,
    /// The answer has no JSON object.
    #[error("there is no JSON object in the answer")]
    NoJson,
    /// The model says that it will not or cannot, in its words.
    #[error("the model refused: {0}")]
    Refused(String),
    /// The JSON is not a plan.
    #[error(transparent)]
    Unreadable(#[from] ReadPlanError),
    /// The plan has no steps.
    #[error("the plan has no steps")]
    NoSteps,
}

impl ReadAnswerError {
    /// As a finding, where it is one.
    pub fn into_finding(self) -> Result<Finding, Self> {
        match self {
            Self::Unreadable(error) => Ok(error.into_finding()),
            other @ (Self::Cut | Self::NoJson | Self::Refused(_) | Self::NoSteps) => Err(other),
        }
    }
}

/// The goal and the author of a plan, which the model does not decide.
#[derive(Debug, Clone, Copy)]
pub struct PlanOrigin<'a> {
    /// Goal of the plan.
    pub goal: &'a str,
    /// Model that wrote it.
    pub model: &'a str,
}

const MAX_TITLE: usize = 100;

/// Keys that models add to a plan to explain themselves. They are no part of one.
const REMARKS: [&str; 6] = [
    "reasoning",
    "explanation",
    "thoughts",
    "analysis",
    "summary",
    "$schema",
];

/// Reads the plan in an answer: whole, in a fence, in prose, under `plan`, in any spelling that can
/// be imported. An answer that was cut off is none, also where it could be read: what is missing
/// might matter.
///
/// The id, the goal and the author of the plan are not the model's to say.
pub fn read_answer(
    text: &str,
    cut: bool,
    adoption: PlanOrigin<'_>,
) -> Result<Document, ReadAnswerError> {
    if cut {
        return Err(ReadAnswerError::Cut);
    }
    let mut value = find_json(text).ok_or_else(|| no_plan(text))?;
    normalise_answer(&mut value);
    let mut document = Document::from_json(value, &Bounds::for_untrusted())?;
    if document.steps.is_empty() {
        return Err(ReadAnswerError::NoSteps);
    }
    document.id = None;
    document.goal = Some(adoption.goal.to_owned());
    document.planner_model = Some(adoption.model.to_owned());
    document.executor_model = None;
    document.title = Some(choose_title(document.title.as_deref(), adoption.goal));
    for step in &mut document.steps {
        let mut seen = Vec::with_capacity(step.depends_on.len());
        step.depends_on.retain(|id| {
            !seen.contains(id) && {
                seen.push(id.clone());
                true
            }
        });
    }
    Ok(document)
}

/// The beginnings of models that say no. Asking again costs a round and gives the same answer.
const REFUSALS: [&str; 11] = [
    "i can't",
    "i cannot",
    "i can not",
    "i'm sorry",
    "i am sorry",
    "sorry",
    "i won't",
    "i will not",
    "i'm unable",
    "i am unable",
    "i'm not able",
];
/// The words of a refusal that are shown.
const MAX_REFUSAL: usize = 500;

fn no_plan(text: &str) -> ReadAnswerError {
    let said = text.trim().replace('\u{2019}', "'");
    let lower = said.to_lowercase();
    match REFUSALS.iter().any(|begin| lower.starts_with(begin)) {
        true => ReadAnswerError::Refused(said.chars().take(MAX_REFUSAL).collect()),
        false => ReadAnswerError::NoJson,
    }
}

/// Takes out what is no part of a plan, and names steps that have no name: `s1`, `s2`, … as they
/// were asked for.
fn normalise_answer(value: &mut Value) {
    let plan = match value {
        Value::Object(envelope) if envelope.contains_key("steps") => Some(envelope),
        Value::Object(envelope) => {
            REMARKS.iter().for_each(|key| drop(envelope.remove(*key)));
            envelope.get_mut("plan").and_then(Value::as_object_mut)
        }
        Value::Array(steps) => return name_steps(steps),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let Some(plan) = plan else { return };
    REMARKS.iter().for_each(|key| drop(plan.remove(*key)));
    if let Some(Value::Array(steps)) = plan.get_mut("steps") {
        name_steps(steps);
    }
}

fn name_steps(steps: &mut [Value]) {
    steps
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .for_each(unfold_call);
    let named = |step: &Map<String, Value>| step.contains_key("id") || step.contains_key("index");
    if steps.iter().any(|step| step.as_object().is_some_and(named)) {
        return;
    }
    for (step, number) in steps.iter_mut().zip(1_usize..) {
        if let Some(step) = step.as_object_mut() {
            step.insert("id".to_owned(), json!(format!("s{number}")));
        }
    }
}

/// Moves the action of a step up from `call`, where the schema says it once for all steps.
fn unfold_call(step: &mut Map<String, Value>) {
    if ["tool", "think", "agent", "input", "plan"]
        .iter()
        .any(|action| step.contains_key(*action))
    {
        return;
    }
    if let Some(Value::Object(call)) = step.get("call") {
        let call = call.clone();
        step.remove("call");
        for (key, value) in call {
            step.entry(key).or_insert(value);
        }
    }
}

/// The model's title, or the beginning of the goal.
fn choose_title(given: Option<&str>, goal: &str) -> String {
    let text = given.map(str::trim).filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| goal.trim().lines().next().unwrap_or_default());
    let mut title: String = text.chars().take(MAX_TITLE).collect();
    if text.chars().count() > MAX_TITLE {
        title.push('…');
    }
    title
}
