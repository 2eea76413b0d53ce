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
        /// The step that changes.
        step: StepId,
        /// Its new arguments.
        args: Map<String, Value>,
    },
    /// A step that failed runs again, with other arguments if there are any.
    Retry {
        /// The step that failed.
        step: StepId,
        /// Its new arguments; as before when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Map<String, Value>>,
    },
    /// The step is left out, and its dependants go on without it.
    Skip {
        /// The step that is left out.
        step: StepId,
        /// The reason why it is not needed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The new step runs first: `step` depends on it.
    AddBefore {
        /// The step that comes after the new one.
        step: StepId,
        /// The step that is added.
        new: Box<Step>,
    },
    /// The new step depends on `step`.
    AddAfter {
        /// The step that comes before the new one.
        step: StepId,
        /// The step that is added.
        new: Box<Step>,
    },
    /// Another action under the same id: what depends on it still does.
    Replace {
        /// The id that stays.
        step: StepId,
        /// The step as it is from now on.
        new: Box<Step>,
    },
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

    /// Returns the kind of change, as models and documents spell it.
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
