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
    Set {
        /// The path as it is written.
        path: String,
        /// The value to put there.
        value: Value,
    },
    /// Takes away what is at a path.
    Unset {
        /// The path as it is written.
        path: String,
    },
    /// Leaves a step out when the plan runs. It stays in the plan.
    Skip {
        /// The step to leave out.
        step: String,
    },
    /// Takes a step back in.
    Unskip {
        /// The step to take back in.
        step: String,
    },
    /// Adds a step: before or after another one, at a position counted from 1, or at the end.
    Add {
        /// The step to add.
        step: Box<Step>,
        /// Step before which it is put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
        /// Step after which it is put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Position counted from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<usize>,
    },
    /// Moves a step: before or after another one, or to a position counted from 1.
    Move {
        /// The step to move.
        step: String,
        /// Step before which it is put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
        /// Step after which it is put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Position counted from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<usize>,
    },
    /// Removes steps that no other step needs. Those removed together may need each other.
    Remove {
        /// The steps to remove.
        steps: Vec<String>,
    },
}

impl Edit {
    /// More changes than this are not one edit.
    pub const MAX: usize = 1_000;
}
