//! The runs that this process executes, and the requests that reach them.

use super::claimed::current_claim;
use super::joint_commit::JointWriter;
use super::observer::{Observer, Observers};
use crate::port::{MessageId, RequestClaim, SealCursor};
use planwright_core::id::RunId;
use planwright_core::run::{Command, Refusal, RunEvent};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

/// The outcome of a command: durable, or refused.
pub(crate) type Verdict = Result<(), Refusal>;

/// The entries that a command led to, or its refusal.
pub(crate) type Decided = Result<Vec<RunEvent>, Refusal>;

/// A command for a run, from this process or another one.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) reply: Reply,
    /// The request of a caller that the command carries out.
    pub(crate) claim: Option<RequestClaim>,
}

/// The way back to the sender of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Here(oneshot::Sender<Verdict>),
    /// The sender gets the entries that came of it, as they were written.
    Told(oneshot::Sender<Decided>),
    /// As told, before that is durable: what the sender opens because of it is written with it, or after
    /// it if all that is wanted is to read.
    Joined {
        reply: oneshot::Sender<Decided>,
        writer: JointWriter,
        reads: bool,
    },
    /// The answer goes to the mailbox of another process, in the commit that carries it out.
    Message(MessageId),
}

impl Request {
    pub(crate) fn here(command: Command, reply: oneshot::Sender<Verdict>) -> Self {
        Self {
            command,
            reply: Reply::Here(reply),
            claim: current_claim(),
        }
    }

    pub(crate) fn reporting(command: Command, reply: oneshot::Sender<Decided>) -> Self {
        Self {
            command,
            reply: Reply::Told(reply),
            claim: current_claim(),
        }
    }

    pub(crate) fn joined(
        command: Command,
        reply: oneshot::Sender<Decided>,
        writer: JointWriter,
        reads: bool,
    ) -> Self {
        Self {
            command,
            reply: Reply::Joined {
                reply,
                writer,
                reads,
            },
            claim: None,
        }
    }

    pub(crate) fn message(command: Command, id: MessageId) -> Self {
        Self {
            command,
            reply: Reply::Message(id),
            claim: None,
        }
    }
}

/// The registry of the runs this engine is executing.
#[derive(Default)]
pub(crate) struct ActiveRuns {
    inboxes: Mutex<BTreeMap<RunId, mpsc::Sender<Request>>>,
    watchers: Mutex<Vec<Arc<dyn Observer>>>,
    /// Set once the task that delivers mail of other processes runs.
    pub(crate) postman: OnceLock<()>,
    /// The cached statuses that earlier releases left out have been written.
    pub(crate) statuses_corrected: AtomicBool,
    /// How far the last pass of retention has looked.
    pub(crate) seal_cursor: Mutex<Option<SealCursor>>,
    draining: watch::Sender<bool>,
    /// A person may be there who answers while a call waits.
    pub(crate) holds_questions: AtomicBool,
}

impl fmt::Debug for ActiveRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActiveRuns")
    }
}

impl ActiveRuns {
    /// Adds the observers of all runs to those of one run.
    pub(crate) fn watching(&self, mut observers: Vec<Arc<dyn Observer>>) -> Observers {
        observers.extend(
            self.watchers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .cloned(),
        );
        Observers(observers)
    }

    /// Adds an observer of every run that is started or taken over from here on.
    pub(crate) fn watch_all(&self, observer: Arc<dyn Observer>) {
        self.watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(observer);
    }

    pub(crate) fn insert(&self, run: RunId, inbox: mpsc::Sender<Request>) {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(run, inbox);
    }

    pub(crate) fn remove(&self, run: &RunId) {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(run);
    }

    pub(crate) fn get(&self, run: &RunId) -> Option<mpsc::Sender<Request>> {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(run)
            .cloned()
    }

    /// Becomes true when the process is about to end: nothing starts any more, and a run is let go
    /// of as soon as no call of it is in flight.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }
}
