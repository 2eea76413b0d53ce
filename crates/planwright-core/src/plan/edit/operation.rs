//! One change to a plan document.

use crate::plan::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change to a plan document. A step is named by its id, or by its position counted from 1 if no step has that id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "camelCase", deny_unknown_fields)]
pub enum Edit {
    /// Puts a value at a dotted path: `title`, `variables.x`, `limits.maxConcurrency`, `steps.fetch.args.path`.
    Set { path: String, value: Value },
    /// Takes away what is at a path.
    Unset { path: String },
    /// Leaves a step out when the plan runs. It stays in the plan.
    Skip { step: String },
    /// Takes a step back in.
    Unskip { step: String },
    /// Adds a step: before or after another one, at a position counted from 1, or at the end.
    Add {
        step: Box<Step>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<usize>,
    },
    /// Moves a step: before or after another one, or to a position counted from 1.
    Move {
        step: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<usize>,
    },
    /// Removes steps that no other step needs. Those removed together may need each other.
    Remove { steps: Vec<String> },
}

impl Edit {
    /// More changes than this are not one edit.
    pub const MAX: usize = 1_000;
}
