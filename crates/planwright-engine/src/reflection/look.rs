//! The work of a run's loop before the run ends.

use crate::dispatch::{RunError, RunLoop};
use crate::port::BoxFuture;
use crate::run::runs::Runs;
use planwright_core::adjust::Reflected;
use planwright_core::journal::Cause;
use planwright_core::model::ModelUse;
use planwright_core::plan::Document;
use planwright_core::run::{Command, Look, Run, RunState};
use std::fmt;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The outcome of asking a model about a run.
#[derive(Debug)]
pub(crate) enum Looked {
    Reflected {
        reflected: Reflected,
        used: Vec<ModelUse>,
        problem: Option<String>,
    },
    /// The remaining work was planned anew, or why it could not be.
    Replanned {
        document: Result<Box<Document>, String>,
        used: Vec<ModelUse>,
    },
}

/// A model that is being asked. Dropping it tells the model that its answer is not awaited any
/// more.
pub(crate) struct Looking {
    pub(crate) looked: BoxFuture<'static, Looked>,
    _wanted: DropGuard,
}

impl Looking {
    /// Returns the answer; never, if no model is asked.
    pub(crate) async fn answer(looking: &mut Option<Self>) -> Looked {
        match looking {
            Some(looking) => (&mut looking.looked).await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Looking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looking")
    }
}

impl RunLoop {
    /// Does what is due before the run ends. Everything that happened so far is durable. Returns
    /// whether something was decided, so that the next commit has to be made.
    pub(crate) async fn look(&mut self) -> Result<bool, RunError> {
        if *self.run.state() == RunState::Paused {
            return Ok(false);
        }
        match self.run.reflection().next_look() {
            None => {
                self.looking = None;
                Ok(false)
            }
            Some(Look::Adjust) => {
                self.looking = None;
                self.adjust().await?;
                Ok(true)
            }
            Some(Look::Reflect) => {
                self.ask(Look::Reflect, Runs::ask_how_it_stands);
                Ok(false)
            }
            Some(Look::Replan) => {
                if let Some((revised, used)) = self.revised.take() {
                    self.replan(revised, used).await?;
                    return Ok(true);
                }
                self.ask(Look::Replan, Runs::ask_for_another_plan);
                Ok(false)
            }
        }
    }

    /// Asks, unless a model is being asked already.
    fn ask<F>(&mut self, look: Look, ask: impl FnOnce(Runs, Run, CancellationToken) -> F)
    where
        F: Future<Output = Looked> + Send + 'static,
    {
        if self.looking.is_some() {
            return;
        }
        self.observers.looking(&self.run, look);
        let cancelled = CancellationToken::new();
        let asking = ask(self.runs.clone(), self.run.clone(), cancelled.clone());
        self.looking = Some(Looking {
            looked: Box::pin(asking),
            _wanted: cancelled.drop_guard(),
        });
    }

    /// The model has answered.
    pub(crate) fn record_look(&mut self, looked: Looked) -> Result<(), RunError> {
        self.looking = None;
        match looked {
            Looked::Reflected {
                reflected,
                used,
                problem,
            } => {
                let command = Command::Reflect {
                    reflected: Box::new(reflected),
                    used,
                    problem,
                };
                self.execute(&command, Cause::Report)?;
            }
            Looked::Replanned {
                document: Ok(document),
                used,
            } => self.revised = Some((*document, used)),
            Looked::Replanned {
                document: Err(reason),
                used,
            } => {
                let reason = format!("the remaining work could not be planned anew: {reason}");
                self.execute(&Command::Abandon { reason, used }, Cause::Report)?;
            }
        }
        Ok(())
    }
}
