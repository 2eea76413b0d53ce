//! What an agent step wanted to do, turn by turn.

use super::{StepError, StoredValue};
use crate::id::RunId;
use serde::{Deserialize, Serialize};

/// A call that the model of an agent step wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCall {
    /// The model's own name for it.
    pub id: String,
    /// As the model wrote it.
    pub tool: String,
    /// As the model wrote them.
    pub args: StoredValue,
    /// The run that makes the call, or why it is not made.
    #[serde(flatten)]
    pub fate: CallFate,
}

/// What was decided about a wanted call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFate {
    /// A child run makes it.
    Run(RunId),
    /// It is not made; the model is told why.
    Refused(StepError),
}
