//! The view of a run that a model is shown: bounded, and as data.

use crate::run::{Run, StepState, StoredValue};
use crate::status::StepStatus;
use crate::text::{is_invisible, sanitize_line};
use serde::Serialize;
use serde_json::Value;

/// Letters of one result, error or argument that a model is shown.
const MAX_TEXT: usize = 2_000;

/// Bytes of all steps together. What does not fit is counted.
const MAX_BYTES: usize = 48 << 10;

/// One step as a model is told about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStory {
    /// The id of the step.
    pub id: String,
    /// The title that the author gave it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The tool it calls.
    pub tool: String,
    /// Its status.
    pub state: StepStatus,
    /// The steps it comes after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// As they are written in the plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// The error, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

impl StepStory {
    /// The steps of a run: all that fit, those that did not succeed first, and how many are left
    /// out.
    pub fn of_run(run: &Run) -> (Vec<Self>, usize) {
        let stands = |state: &StepState| match state {
            StepState::Failed { .. }
            | StepState::Denied { .. }
            | StepState::OutcomeUnknown { .. } => 0,
            StepState::Completed { .. } => 2,
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::Running { .. }
            | StepState::Looping { .. }
            | StepState::RetryDue { .. }
            | StepState::Skipped { .. }
            | StepState::Cancelled { .. }
            | StepState::Undone { .. } => 1,
        };
        let mut order: Vec<_> = run.plan().indices().collect();
        order.sort_by_key(|&ix| stands(run.step(ix)));
        let mut told = Vec::new();
        let mut bytes = 0;
        for ix in order {
            let story = Self::of_step(run, ix);
            bytes += serde_json::to_vec(&story).map_or(0, |json| json.len());
            if bytes > MAX_BYTES {
                break;
            }
            told.push((ix, story));
        }
        told.sort_by_key(|(ix, _)| *ix);
        let left_out = run.plan().len() - told.len();
        (told.into_iter().map(|(_, story)| story).collect(), left_out)
    }

    fn of_step(run: &Run, ix: crate::plan::StepIx) -> Self {
        let step = run.definition(ix);
        let state = run.step(ix);
        let args = if step.args.is_empty() {
            String::new()
        } else {
            Value::Object(step.args.clone()).to_string()
        };
        Self {
            id: run.step_id(ix).to_string(),
            title: limit_text(step.title.as_deref().unwrap_or_default()),
            tool: limit_text(step.action_label()),
            state: state.status(),
            depends_on: step.depends_on.iter().map(ToString::to_string).collect(),
            args: limit_text(&args),
            error: run
                .explain(state)
                .map(|error| limit_text(&format!("{}: {}", error.code, error.message))),
            result: state.value().map(told),
        }
    }
}

fn told(value: &StoredValue) -> String {
    match value {
        StoredValue::Inline(value) => match &**value {
            Value::String(text) => limit_text(text),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => limit_text(&other.to_string()),
        },
        StoredValue::Artifact(artifact) => {
            format!(
                "(a value of {} bytes that is kept elsewhere)",
                artifact.bytes
            )
        }
    }
}

/// The beginning of a text, without what a reader cannot see. Line breaks stay.
pub(super) fn limit_text(text: &str) -> String {
    let cut: String = text
        .chars()
        .filter(|&c| c == '\n' || !(c.is_control() || is_invisible(c)))
        .take(MAX_TEXT)
        .collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        format!("{cut}… (cut)")
    } else {
        cut
    }
}

/// A value as JSON that cannot end the block it stands in, with a heading.
pub fn as_data(heading: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".to_owned());
    // A backtick in JSON stands in a text, where its number says the same.
    let json = json.replace('`', "\\u0060");
    format!("## {}\n```json\n{json}\n```\n", sanitize_line(heading))
}
