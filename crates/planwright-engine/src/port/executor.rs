//! Handing the work of an agent step to a program of its own.

use super::{BoxFuture, ProgressSink};
use planwright_core::id::{AttemptNo, PlanId, RunId, StepId};
use planwright_core::model::ModelUse;
use planwright_core::run::StepError;
use planwright_core::tool::{Annotations, KnownTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One attempt at an agent step, for an executor outside.
#[derive(Debug)]
pub struct Delegation {
    /// The executor, as the operator calls it.
    pub executor: String,
    /// What it is to do, in words.
    pub instruction: String,
    /// What it may want to know: goal, target, results of earlier steps.
    pub context: Value,
    /// The names of the tools in scope.
    pub scope: Vec<String>,
    /// The plan of the step.
    pub plan: PlanId,
    /// The run of the step.
    pub run: RunId,
    /// The step that is delegated.
    pub step: StepId,
    /// The attempt at the step, counted from 1.
    pub attempt: AttemptNo,
    /// The only way to the plan's tools. It ends with the attempt.
    pub gateway: Arc<dyn Gateway>,
    /// Receives the progress that the executor reports.
    pub progress: ProgressSink,
    /// Cancelled when the result is no longer wanted.
    pub cancelled: CancellationToken,
}

/// The door through which an executor outside calls the plan's tools.
pub trait Gateway: Send + Sync + fmt::Debug {
    /// The tools in scope that are there now.
    fn tools(&self) -> Vec<GatewayTool>;

    /// Makes a call, if the run agrees to it. It may wait for a person.
    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>>;
}

/// A tool in scope, as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTool {
    /// Server and tool, `server.tool`.
    pub name: String,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints of the server.
    #[serde(default)]
    pub annotations: Annotations,
}

impl GatewayTool {
    /// Describes a tool of the catalog.
    pub fn new(tool: &KnownTool) -> Self {
        let definition = &tool.definition;
        Self {
            name: tool.name.to_string(),
            title: definition.title.clone(),
            description: definition.description.clone().unwrap_or_default(),
            schema: definition.input_schema.clone(),
            output_schema: definition.output_schema.clone(),
            annotations: definition.annotations.clone(),
        }
    }
}

/// The outcome of handing a step over.
#[derive(Debug)]
pub struct Delegated {
    /// The result of the step, or why there is none.
    pub outcome: Result<Value, DelegateError>,
    /// What its model took, where the executor says.
    pub used: Option<ModelUse>,
    /// It can do nothing but call the gateway: without a call, its word is no work.
    pub only_calls: bool,
}

impl From<Result<Value, DelegateError>> for Delegated {
    fn from(outcome: Result<Value, DelegateError>) -> Self {
        Self {
            outcome,
            used: None,
            only_calls: false,
        }
    }
}

/// Why an executor came to no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DelegateError {
    /// No executor of this name is configured.
    #[error("there is no executor `{0}`")]
    Unknown(String),
    /// It ran and said, by its exit code or otherwise, that it failed.
    #[error("{0}")]
    Failed(String),
    /// It never ran.
    #[error("{0}")]
    NotStarted(String),
    /// How far it got is unknown.
    #[error("{0}")]
    Lost(String),
    /// The engine stopped it.
    #[error("cancelled")]
    Cancelled,
}

/// All configured executors, behind one door.
pub trait Executors: Send + Sync + fmt::Debug {
    /// The names of the executors that may be used.
    fn names(&self) -> Vec<String>;

    /// Lets an executor work until it has a result.
    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Delegated>;
}
