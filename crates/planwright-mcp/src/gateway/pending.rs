//! Calls whose question is with a client of the modern era, until it makes the call again.

use super::drive::{AttendedCall, ClientRequest};
use super::link::ClientAsks;
use crate::question::PATIENCE;
use crate::run_question::RunQuestion;
use planwright_core::run::Run;
use planwright_core::tool::ToolName;
use planwright_engine::FollowedRun;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most calls that wait for an answer.
const MAX_PENDING: usize = 64;

/// What our words for calls begin with. Others are words of the servers.
const OURS: &str = "planwright:";

/// Returns whether this is a word of ours, for a call that waits or waited.
pub(super) fn is_ours(state: &str) -> bool {
    state.starts_with(OURS)
}

/// A call that waits for what a person says.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) waiting: Waiting,
    pub(super) tool: ToolName,
    pub(super) args: Map<String, Value>,
    /// The caller that was asked.
    pub(super) key: String,
}

/// What goes on with the answer.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A call of its own.
    Call(AttendedCall, OpenQuestion),
    /// A step of a plan that the client carries out.
    Step(Arc<FollowedRun>, Box<RunQuestion>),
}

/// What the client was asked about a call.
#[derive(Debug)]
pub(super) enum OpenQuestion {
    /// The run of the call waits for a person.
    Run(Box<Run>),
    /// The server wants something of the client.
    Client(ClientAsks),
}

#[derive(Debug, Default)]
pub(super) struct PendingCalls(Mutex<HashMap<String, (Instant, PendingCall)>>);

impl PendingCalls {
    /// Keeps a call, and returns the word by which its answer is known. The call comes back if too
    /// many wait.
    pub(super) fn keep(&self, call: PendingCall) -> Result<String, Box<PendingCall>> {
        let word = || Some((getrandom::u64().ok()?, getrandom::u64().ok()?));
        let mut pending = self.pending();
        pending.retain(|_, (asked, _)| asked.elapsed() < PATIENCE);
        let Some((first, second)) = word().filter(|_| pending.len() < MAX_PENDING) else {
            return Err(Box::new(call));
        };
        let state = format!("{OURS}{first:016x}{second:016x}");
        pending.insert(state.clone(), (Instant::now(), call));
        Ok(state)
    }

    /// Takes the call that was kept under this word, once, if the same caller makes exactly that call
    /// again.
    pub(super) fn take(&self, state: &str, request: &ClientRequest) -> Option<PendingCall> {
        let mut pending = self.pending();
        let is_same = pending.get(state).is_some_and(|(asked, call)| {
            asked.elapsed() < PATIENCE
                && call.tool == request.tool
                && call.args == request.args
                && call.key == request.caller.key
        });
        let taken = is_same.then(|| pending.remove(state)).flatten()?;
        Some(taken.1)
    }

    /// Gives up all calls that wait.
    pub(super) fn clear(&self) {
        let given_up = std::mem::take(&mut *self.pending());
        // Ending them may take the lock of something else.
        drop(given_up);
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, (Instant, PendingCall)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
