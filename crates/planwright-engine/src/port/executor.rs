//! Handing the work of an agent step to a program of its own.

use super::{BoxFuture, ProgressSink};
use planwright_core::id::{AttemptNo, PlanId, RunId, StepId};
use planwright_core::model::OfferedTool;
use planwright_core::run::StepError;
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
    fn tools(&self) -> Vec<OfferedTool>;

    /// Makes a call, if the run agrees to it. It may wait for a person.
    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>>;
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
    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Result<Value, DelegateError>>;
}
