//! One change to the steps that have not run.

use crate::id::StepId;
use crate::plan::Step;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One change to a plan that is being run. Steps that completed cannot be changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Adjustment {
    /// Other arguments for a step that has not run.
    Modify {
        step: StepId,
        args: Map<String, Value>,
    },
    /// A step that failed runs again, with other arguments if there are any.
    Retry {
        step: StepId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Map<String, Value>>,
    },
    /// The step is left out, and its dependants go on without it.
    Skip {
        step: StepId,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The new step runs first: `step` depends on it.
    AddBefore { step: StepId, new: Box<Step> },
    /// The new step depends on `step`.
    AddAfter { step: StepId, new: Box<Step> },
    /// Another action under the same id: what depends on it still does.
    Replace { step: StepId, new: Box<Step> },
}

impl Adjustment {
    /// The step it is about.
    pub fn step(&self) -> &StepId {
        match self {
            Self::Modify { step, .. }
            | Self::Retry { step, .. }
            | Self::Skip { step, .. }
            | Self::AddBefore { step, .. }
            | Self::AddAfter { step, .. }
            | Self::Replace { step, .. } => step,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Modify { .. } => "modify",
            Self::Retry { .. } => "retry",
            Self::Skip { .. } => "skip",
            Self::AddBefore { .. } => "add_before",
            Self::AddAfter { .. } => "add_after",
            Self::Replace { .. } => "replace",
        }
    }
}
