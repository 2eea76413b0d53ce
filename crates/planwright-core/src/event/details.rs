//! What an event says about a step and what came of it. Texts are cut: an event is a notice, not
//! the value itself.

use crate::id::StepId;
use crate::json::serialize_seconds;
use crate::plan::Step;
use crate::run::{StepError, StoredValue};
use crate::status::StepStatus;
use serde::Serialize;
use serde_json::Value;

/// Letters of a value that an event shows.
const PREVIEW: usize = 200;

/// Letters of an error or a reason that an event shows.
pub(super) const MAX_TEXT: usize = 2_000;

/// A step as events show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepDetails {
    /// The id of the step or element.
    pub id: StepId,
    /// The title that the author gave it, else what it does.
    pub action: String,
    /// The tool it calls.
    pub tool: String,
    /// Its status.
    pub state: StepStatus,
    /// The capability it needs, as the plan names it.
    pub capability: Option<String>,
    /// The capability in words for people.
    pub capability_label: Option<String>,
    /// The labels the author gave it.
    pub labels: Vec<String>,
    /// The time limit of one attempt.
    #[serde(serialize_with = "serialize_seconds")]
    pub timeout_seconds: Option<f64>,
    /// The plan asks a person before it runs.
    pub approval_required: bool,
}

impl StepDetails {
    pub(super) fn new(id: StepId, step: &Step, state: StepStatus) -> Self {
        let tool = step.action_label().to_owned();
        Self {
            id,
            action: step.title.clone().unwrap_or_else(|| tool.clone()),
            tool,
            state,
            capability: step.capability.as_deref().map(str::to_owned),
            capability_label: step.capability_label.as_deref().map(str::to_owned),
            labels: step.labels.clone(),
            timeout_seconds: step.timeout_seconds,
            approval_required: step.approval_required,
        }
    }
}

/// The result of a step, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultSummary {
    /// Of the whole value as JSON.
    pub bytes: u64,
    /// How it begins: a text as it is, anything else as JSON. Absent when the value is kept outside
    /// the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

impl ResultSummary {
    pub(super) fn new(value: &StoredValue) -> Self {
        match value {
            StoredValue::Inline(value) => {
                let json = value.to_string();
                let preview = if let Value::String(text) = &**value {
                    cut(text, PREVIEW)
                } else {
                    cut(&json, PREVIEW)
                };
                Self {
                    bytes: json.len() as u64,
                    preview: Some(preview),
                }
            }
            StoredValue::Artifact(artifact) => Self {
                bytes: artifact.bytes,
                preview: None,
            },
        }
    }
}

/// Why a step is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorSummary {
    /// The code of the error, as in the journal.
    pub code: String,
    /// The error in words, shortened.
    pub message: String,
}

impl ErrorSummary {
    pub(super) fn new(error: &StepError) -> Self {
        Self {
            code: cut(error.code.as_str(), PREVIEW),
            message: cut(&error.message, MAX_TEXT),
        }
    }
}

/// The beginning of a text, with a mark where something is left out.
pub(super) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
