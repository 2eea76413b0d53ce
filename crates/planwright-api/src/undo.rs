//! What would take a run back.

use planwright_core::id::StepId;
use planwright_core::plan::Step;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What `undo --dry-run --json` prints.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoPreview {
    pub plan_id: String,
    /// The run that would be taken back.
    pub run_id: String,
    pub digest: String,
    /// In the order of the calls.
    pub steps: Vec<UndoStep>,
    /// What the run did and nothing takes back.
    pub kept: Vec<KeptStep>,
}

/// One call that takes a step back.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoStep {
    /// The step that is taken back.
    pub step: String,
    pub tool: String,
    pub args: Value,
}

impl UndoStep {
    pub fn new(step: &StepId, undo: &Step) -> Self {
        Self {
            step: step.to_string(),
            tool: undo.action_label().to_owned(),
            args: Value::Object(undo.args.clone()),
        }
    }
}

/// A step that stays.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeptStep {
    pub step: String,
    pub reason: String,
}
