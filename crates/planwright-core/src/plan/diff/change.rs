//! The differences between two versions of a plan, as data.

use crate::id::StepId;
use crate::plan::SafeguardLoss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that differs between two documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDiff {
    /// Fields of the plan itself.
    pub fields: Vec<FieldChange>,
    /// Steps, those that are there afterwards first, in their order; then those that were removed.
    pub steps: Vec<StepChange>,
    /// Safeguards that are gone, hold back less, or are other ones. Only a person may agree to that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safeguards: Vec<SafeguardLoss>,
}

/// One value that is there on one side only, or is another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// As edits spell it: `args.path`, `limits.budget.calls`.
    pub path: String,
    /// The value before; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value afterwards; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether it changes what is executed. If not, it is only words.
    pub executable: bool,
}

/// What happened to one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepChange {
    /// Id of the step, the same before and afterwards.
    #[schemars(with = "String")]
    pub id: StepId,
    /// The kind of change.
    pub kind: ChangeKind,
    /// Title of the step, afterwards if it is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool, or the kind of action.
    pub action: String,
    /// Its position before, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Its position afterwards, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// Whether it stands elsewhere among the steps that are on both sides.
    pub moved: bool,
    /// Fields that differ.
    pub fields: Vec<FieldChange>,
    /// Whether it changes what is executed.
    pub executable: bool,
}

/// The kind of change to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The step is new.
    Added,
    /// The step is gone.
    Removed,
    /// Fields of the step differ.
    Changed,
    /// Only its place is another one.
    Moved,
}

impl PlanDiff {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.steps.is_empty()
    }

    /// Returns whether anything that is executed differs. If not, the digests are the same with the
    /// same tools.
    pub fn is_executable(&self) -> bool {
        self.fields.iter().any(|change| change.executable)
            || self.steps.iter().any(|step| step.executable)
    }
}
