//! A run in progress, as the caller that started it holds it.

use crate::context::Request;
use crate::dispatch::{Ended, RunError};
use crate::run::remote_command::RunCommand;
use planwright_core::id::RunId;
use planwright_core::principal::Principal;
use planwright_core::run::{Refusal, Run};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A run that is being executed by this engine.
#[derive(Debug)]
pub struct RunHandle {
    pub(crate) run: RunId,
    pub(crate) inbox: mpsc::Sender<Request>,
    pub(crate) task: JoinHandle<Result<Ended, RunError>>,
}

impl RunHandle {
    /// A run that no process executes yet.
    pub(crate) fn of_queued(run: Run) -> Self {
        let (inbox, _) = mpsc::channel(1);
        Self {
            run: run.id().clone(),
            inbox,
            task: tokio::spawn(async { Ok(Ended { run }) }),
        }
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Waits until the run has ended or only a person can move it on.
    pub async fn wait(&mut self) -> Result<Run, RunError> {
        match (&mut self.task).await {
            Ok(ended) => ended.map(|ended| ended.run),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Returns whether this engine does not execute the run any more.
    pub(crate) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until this engine takes no commands for the run any more.
    pub(crate) async fn closed(&self) {
        self.inbox.closed().await;
    }

    /// Stops executing, as a crash would. What is durable stays.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }

    /// In-flight calls finish, nothing new starts.
    pub async fn pause(&self, by: Principal) -> Result<(), Refusal> {
        self.command(RunCommand::Pause { by }).await
    }

    /// In-flight calls are stopped, the rest never runs.
    pub async fn cancel(&self, by: Principal) -> Result<(), Refusal> {
        self.command(RunCommand::Cancel { by }).await
    }

    /// Gives the run a command, and waits for its decision.
    pub async fn command(&self, command: RunCommand) -> Result<(), Refusal> {
        let (reply, answer) = oneshot::channel();
        let request = Request::here(command.into_command(), reply);
        let sent = self.inbox.send(request).await;
        sent.map_err(|_| Refusal::NotExecuting)?;
        answer.await.map_err(|_| Refusal::NotExecuting)?
    }
}
