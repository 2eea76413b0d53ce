//! The calls with which a client carries out a plan itself: each has to be a step that is ready, with
//! exactly the arguments that would be sent.

use super::clients::ClientEars;
use super::observer::Observer;
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent, StepError, StepErrorCode, StepState, StoredValue};
use planwright_core::tool::{EffectClass, KnownTool, ToolName};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The claims of one client on the steps of one run.
#[derive(Default)]
pub struct StepClaims {
    book: Mutex<Book>,
    claimed: Notify,
}

#[derive(Default)]
struct Book {
    /// Calls that no step was found for yet.
    open: Vec<Claim>,
    /// Steps whose calls the client makes.
    steps: BTreeMap<StepId, ClaimedStep>,
}

struct Claim {
    tool: ToolName,
    args: Map<String, Value>,
    step: ClaimedStep,
    /// Every ready step is compared with it in this turn.
    looked_at: bool,
}

struct ClaimedStep {
    ears: ClientEars,
    ended: oneshot::Sender<StepEnd>,
}

/// The outcome of a call that was to be a step.
#[derive(Debug)]
pub(crate) enum StepEnd {
    /// No step that is ready makes this call.
    NoStep,
    Completed(StepId, StoredValue),
    Failed(StepId, StepError),
    /// A person is asked first.
    Waits(StepId),
}

impl fmt::Debug for StepClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepClaims").finish_non_exhaustive()
    }
}

impl StepClaims {
    /// Claims the step that makes this call, and says what came of it.
    pub(crate) fn claim(
        &self,
        tool: ToolName,
        args: Map<String, Value>,
        ears: ClientEars,
    ) -> oneshot::Receiver<StepEnd> {
        let (ended, receiver) = oneshot::channel();
        self.book().open.push(Claim {
            tool,
            args,
            step: ClaimedStep { ears, ended },
            looked_at: false,
        });
        self.claimed.notify_one();
        receiver
    }

    /// Waits for the next claim.
    pub(crate) async fn wait(&self) {
        self.claimed.notified().await;
    }

    /// The steps that are ready are about to be looked at.
    pub(crate) fn begin_turn(&self) {
        for claim in &mut self.book().open {
            claim.looked_at = true;
        }
    }

    /// They have been looked at. If some had to wait for other calls, claims wait with them.
    pub(crate) fn end_turn(&self, starved: bool) {
        if starved {
            return;
        }
        let missed: Vec<Claim> = self
            .book()
            .open
            .extract_if(.., |claim| claim.looked_at)
            .collect();
        for claim in missed {
            // The client may have gone.
            drop(claim.step.ended.send(StepEnd::NoStep));
        }
    }

    /// Returns whether the client makes this call of this step. Once it does, it makes it again too
    /// where the plan says so.
    pub(crate) fn take(&self, step: &StepId, tool: &KnownTool, args: &Map<String, Value>) -> bool {
        let mut book = self.book();
        if book.steps.contains_key(step) {
            return true;
        }
        let found = book.open.iter().position(|claim| claim.is_for(tool, args));
        let Some(at) = found else {
            return false;
        };
        let claim = book.open.remove(at);
        book.steps.insert(step.clone(), claim.step);
        true
    }

    /// Returns the ears of the client that makes the call of this step.
    pub(crate) fn ears(&self, step: &StepId) -> Option<ClientEars> {
        self.book().steps.get(step).map(|step| step.ears.clone())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// The key of a keyed tool is ours, so a client does not know it.
    fn is_for(&self, tool: &KnownTool, args: &Map<String, Value>) -> bool {
        if self.tool != tool.name {
            return false;
        }
        let ours = match (tool.class, &tool.key_argument) {
            (EffectClass::Keyed, Some(key)) if !self.args.contains_key(key) => Some(key),
            _ => None,
        };
        let sent = args.iter().filter(|(name, _)| Some(*name) != ours);
        sent.clone().count() == self.args.len()
            && sent
                .into_iter()
                .all(|(name, value)| self.args.get(name) == Some(value))
    }
}

impl Observer for StepClaims {
    fn entry(&self, run: &Run, _: &Entry<RunEvent>) {
        let mut book = self.book();
        let over: Vec<(StepId, StepEnd)> = book
            .steps
            .keys()
            .filter_map(|step| Some((step.clone(), end_of(run, step)?)))
            .collect();
        for (step, end) in over {
            if let Some(claimed) = book.steps.remove(&step) {
                drop(claimed.ended.send(end));
            }
        }
    }

    /// Those who wait hear that no answer comes. A call that was begun is never taken for one that
    /// was not: it would be made again.
    fn left(&self, run: &RunId) {
        let book = std::mem::take(&mut *self.book());
        for claim in book.open {
            drop(claim.step.ended.send(StepEnd::NoStep));
        }
        for (step, claimed) in book.steps {
            let message = format!("what became of the step is in the journal of {run}");
            let error = StepError::new(StepErrorCode::Stopped, message);
            drop(claimed.ended.send(StepEnd::Failed(step, error)));
        }
    }
}

/// The outcome of a step, once that is known.
fn end_of(run: &Run, step: &StepId) -> Option<StepEnd> {
    let state = run.step(run.find(step.as_str())?);
    let failed = |code, message: &str| StepEnd::Failed(step.clone(), StepError::new(code, message));
    Some(match state {
        StepState::Completed { value, .. } => StepEnd::Completed(step.clone(), value.clone()),
        StepState::Failed { error, .. } => StepEnd::Failed(step.clone(), (**error).clone()),
        StepState::AwaitingApproval { .. } | StepState::AwaitingInput { .. } => {
            StepEnd::Waits(step.clone())
        }
        StepState::OutcomeUnknown { .. } => failed(
            StepErrorCode::OutcomeUnknown,
            "the connection broke during the call, and it may have happened",
        ),
        StepState::Denied { .. } => failed(StepErrorCode::Denied, "a person denied the step"),
        StepState::Skipped { .. } | StepState::Cancelled { .. } | StepState::Undone { .. } => {
            failed(StepErrorCode::Stopped, "the step is not wanted any more")
        }
        StepState::Pending { .. }
        | StepState::Blocked { .. }
        | StepState::Ready { .. }
        | StepState::AwaitingPlan { .. }
        | StepState::Running { .. }
        | StepState::Looping { .. }
        | StepState::RetryDue { .. } => return None,
    })
}
