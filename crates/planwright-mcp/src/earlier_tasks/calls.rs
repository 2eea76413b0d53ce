//! Calls that became tasks before they had a run: they ask a person first, have a plan written, or end
//! without a run. A task with a run is its run, and is known to the journal.

use planwright_core::id::RunId;
use planwright_core::time::Timestamp;
use rmcp::model::CallToolResult;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Calls of all clients. What ended longest ago is forgotten first.
const MAX_CALLS: usize = 256;
/// Tasks whose changes are told.
const MAX_FOLLOWED: usize = 64;

/// Where such a call stands.
#[derive(Debug, Clone)]
pub(super) enum CallState {
    Calling,
    /// The rest is the story of its run.
    Running(RunId),
    Ended(Box<CallToolResult>, Timestamp),
}

/// One of these calls.
#[derive(Debug)]
pub(super) struct CallTask {
    /// The caller, who alone sees it.
    pub(super) owner: String,
    pub(super) created: Timestamp,
    pub(super) cancelled: CancellationToken,
    pub(super) state: watch::Receiver<CallState>,
}

impl CallTask {
    pub(super) fn now(&self) -> CallState {
        self.state.borrow().clone()
    }

    /// Waits until the call has a run or is over.
    pub(super) async fn wait_until_settled(&self) -> CallState {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, CallState::Calling));
        match settled.await {
            Ok(settled) => settled.clone(),
            // Its task broke off, and left this.
            Err(_) => self.now(),
        }
    }

    fn has_ended(&self) -> bool {
        matches!(&*self.state.borrow(), CallState::Ended(..))
    }
}

/// The calls of all clients that are tasks without being runs.
#[derive(Debug)]
pub(crate) struct CallTasks {
    calls: Mutex<BTreeMap<String, Arc<CallTask>>>,
    followed: Arc<Semaphore>,
}

impl Default for CallTasks {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            followed: Arc::new(Semaphore::new(MAX_FOLLOWED)),
        }
    }
}

impl CallTasks {
    /// Keeps a call under an id that no one can guess. Nothing while too many are under way.
    pub(super) fn keep(&self, call: CallTask) -> Option<(String, Arc<CallTask>)> {
        let id = format!(
            "call_{:016x}{:016x}",
            getrandom::u64().ok()?,
            getrandom::u64().ok()?
        );
        let mut calls = self.calls();
        if calls.len() >= MAX_CALLS {
            let ended = calls.iter().filter(|(_, call)| call.has_ended());
            let oldest = ended.min_by_key(|(_, call)| call.created)?.0.clone();
            calls.remove(&oldest);
        }
        let call = Arc::new(call);
        calls.insert(id.clone(), Arc::clone(&call));
        Some((id, call))
    }

    /// The call with this id, for its own caller.
    pub(super) fn get(&self, id: &str, caller: &str) -> Option<Arc<CallTask>> {
        let calls = self.calls();
        calls.get(id).filter(|call| call.owner == caller).cloned()
    }

    /// The calls of a caller.
    pub(super) fn of(&self, caller: &str) -> Vec<(String, Arc<CallTask>)> {
        let calls = self.calls();
        let own = calls.iter().filter(|(_, call)| call.owner == caller);
        own.map(|(id, call)| (id.clone(), Arc::clone(call)))
            .collect()
    }

    /// Room to tell a client of one more task. A client without it asks how its task stands.
    pub(super) fn follow(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.followed).try_acquire_owned().ok()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, Arc<CallTask>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
