//! Clients of the gateway that wait for their session to begin, and the calls whose answers they
//! want as the server gave them.

use crate::port::{AnswerSink, BoxFuture, CallClient, ProgressSink};
use planwright_core::id::{PlanId, RunId};
use planwright_core::model::WantedCall;
use planwright_core::run::{AgentCall, ClientTerms, StepError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;

/// The most sessions that are remembered.
const MAX_SESSIONS: usize = 1024;

/// Where a call of a client stands.
#[derive(Debug)]
pub(crate) enum ClientOutcome {
    Ended(Result<Value, StepError>),
    /// The run of the call waits for a person.
    Parked(RunId),
}

/// A call that the session agreed to, and its run.
#[derive(Debug)]
pub(crate) struct BegunCall {
    pub(crate) call: AgentCall,
    pub(crate) run: RunId,
    pub(crate) begun: BegunRun,
}

/// Where the run of a call stands once it was begun.
#[derive(Debug)]
pub(crate) enum BegunRun {
    Executing(Box<dyn CallExecution>),
    /// It read, and this is what came of it.
    Ended(Result<Value, StepError>),
}

/// A run of a call that this process executes. A trait, because what a run is lies above the context.
pub(crate) trait CallExecution: Send + fmt::Debug {
    /// Follows the call until it ends or waits for a person.
    fn follow(self: Box<Self>) -> BoxFuture<'static, ClientOutcome>;
}

/// The way from a client to the run of its session.
pub(crate) trait ClientCalls: Send + Sync + fmt::Debug {
    /// Has the session decide about a call, and begins the run of what it agrees to: both are one
    /// commit.
    fn begin(
        &self,
        wanted: WantedCall,
        terms: ClientTerms,
        ears: ClientEars,
    ) -> BoxFuture<'static, Result<BegunCall, StepError>>;

    /// Goes on with a call whose run waited for a person.
    fn resume(&self, call: AgentCall) -> BoxFuture<'static, ClientOutcome>;
}

/// What the client of one call wants to hear.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientEars {
    pub(crate) answer: AnswerSink,
    pub(crate) progress: ProgressSink,
    pub(crate) client: Option<Arc<dyn CallClient>>,
}

/// The session of a client, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ClientWork {
    pub(crate) calls: Arc<dyn ClientCalls>,
    pub(crate) _ends: DropGuard,
}

/// The clients of this engine.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    expected: BTreeMap<PlanId, oneshot::Sender<ClientWork>>,
    ears: BTreeMap<RunId, ClientEars>,
    /// Plans that are sessions, of this process or others: nothing is looked for in them.
    sessions: BTreeSet<PlanId>,
    /// The store's count of changes to plans when no plan had a call left to make.
    nothing_left_at: Option<u64>,
}

impl Clients {
    /// A client waits for the session with this plan.
    pub(crate) fn expect(&self, plan: &PlanId) -> oneshot::Receiver<ClientWork> {
        let (sender, receiver) = oneshot::channel();
        self.registry().expected.insert(plan.clone(), sender);
        receiver
    }

    /// The client that waits for this plan, if its process is this one.
    pub(crate) fn take(&self, plan: &PlanId) -> Option<oneshot::Sender<ClientWork>> {
        self.registry().expected.remove(plan)
    }

    /// Remembers that a plan is a session. It stays one while its run goes on, and only then it is asked for.
    pub(crate) fn note_session(&self, plan: &PlanId) {
        let mut registry = self.registry();
        if registry.sessions.len() >= MAX_SESSIONS {
            registry.sessions.clear();
        }
        registry.sessions.insert(plan.clone());
    }

    /// Returns whether a plan is known to be a session.
    pub(crate) fn is_session(&self, plan: &PlanId) -> bool {
        self.registry().sessions.contains(plan)
    }

    /// Remembers that no plan had a call left to make when the store had counted so many changes to plans.
    pub(crate) fn note_nothing_left(&self, changes: Option<u64>) {
        if changes.is_some() {
            self.registry().nothing_left_at = changes;
        }
    }

    /// Returns whether no plan has a call left to make, as far as the store can tell at once.
    pub(crate) fn is_nothing_left(&self, changes: Option<u64>) -> bool {
        changes.is_some() && self.registry().nothing_left_at == changes
    }

    /// A client listens to the call of this run.
    pub(crate) fn listen(&self, run: &RunId, ears: ClientEars) {
        self.registry().ears.insert(run.clone(), ears);
    }

    /// The client of this run's call, if it has one.
    pub(crate) fn ears(&self, run: &RunId) -> Option<ClientEars> {
        self.registry().ears.get(run).cloned()
    }

    pub(crate) fn stop_listening(&self, run: &RunId) {
        self.registry().ears.remove(run);
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
