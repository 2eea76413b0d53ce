//! Looking at a run before it ends, and going on in another one.

use crate::id::RunId;
use serde::{Deserialize, Serialize};

/// The bounds of reflecting and adjusting, and how much of them is used up. Carried from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reflection {
    /// How often a run is looked at, over all runs of the same work.
    pub max_cycles: u32,
    /// How often the rest may be planned anew.
    pub max_replans: u32,
    /// What was used up before this run began.
    pub cycles: u32,
    pub replans: u32,
    /// The run that this one goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
}

/// Whether a success criterion of the plan holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriterionCheck {
    pub criterion: String,
    /// Absent when nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// What speaks for it or against it, as the model or the step says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
}
