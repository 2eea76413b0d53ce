//! Notices that tell workers where to look.
//!
//! The store decides who carries out a step. A notice may be lost, doubled, late or forged: it
//! grants nothing, and a worker that receives one reads everything else from the store.

use super::BoxFuture;
use planwright_core::id::{AttemptNo, RunId, StepId};
use planwright_core::time::Timestamp;
use planwright_core::trace::TraceParent;
use std::fmt;

/// Says that an attempt of a step waits for a worker: ids and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepNotice {
    /// The capability that the worker needs.
    pub capability: String,
    /// The run of the step.
    pub run: RunId,
    /// The step that waits.
    pub step: StepId,
    /// The attempt that waits.
    pub attempt: AttemptNo,
    /// The key of the call, the same however often the notice is sent.
    pub idempotency_key: String,
    /// The place of the call in a trace.
    pub trace: Option<TraceParent>,
}

/// A notice that arrived, and has to be settled with [`Notices::settle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedNotice {
    /// The name that the broker gave to this delivery.
    pub delivery: String,
    /// The notice itself.
    pub notice: StepNotice,
    /// True if the broker may have delivered it before.
    pub redelivered: bool,
}

/// What is to become of a notice that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeEnd {
    /// The result of the attempt is durable, or there is nothing to do any more.
    Done,
    /// This worker cannot take it now: another one may.
    Returned,
}

/// The notices for one worker, one connection's worth of them.
pub trait Notices: Send + fmt::Debug {
    /// Waits for the next notice. It may be dropped while it waits without losing a notice.
    fn next(&mut self) -> BoxFuture<'_, Result<ReceivedNotice, BrokerError>>;

    /// Tells the broker what became of a notice.
    fn settle<'a>(
        &'a mut self,
        delivery: &'a str,
        end: NoticeEnd,
    ) -> BoxFuture<'a, Result<(), BrokerError>>;
}

/// How the queue of one capability stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// The capability that the queue is for.
    pub capability: String,
    /// Notices that wait for a worker.
    pub waiting: u64,
    /// Notices that a worker holds, if the broker tells.
    pub held: Option<u64>,
    /// Notices that were given up.
    pub dead: u64,
    /// When the oldest waiting notice was sent, if the broker tells.
    pub oldest: Option<Timestamp>,
    /// How often notices were delivered again, if the broker tells.
    pub redelivered: Option<u64>,
}

/// A notice that was delivered too often without being settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadNotice {
    /// Its name among the dead ones.
    pub id: String,
    /// The notice itself; `None` if it cannot be read.
    pub notice: Option<StepNotice>,
    /// How often it was delivered, if the broker tells.
    pub deliveries: Option<u64>,
    /// When it was given up, if the broker tells.
    pub since: Option<Timestamp>,
}

/// Sends notices to workers, and keeps those that were given up. Losing all that a broker has loses
/// no step: owners of runs send their notices again.
pub trait Broker: Send + Sync + fmt::Debug {
    /// Sends a notice. It returns when the broker has confirmed it.
    fn publish<'a>(&'a self, notice: &'a StepNotice) -> BoxFuture<'a, Result<(), BrokerError>>;

    /// Starts to receive the notices for some capabilities, at most `ahead` unsettled ones.
    fn receive<'a>(
        &'a self,
        capabilities: &'a [String],
        worker: &'a str,
        ahead: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Notices>, BrokerError>>;

    /// Returns how the queues of some capabilities stand. For none it says that the broker answers.
    fn states<'a>(
        &'a self,
        capabilities: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<QueueState>, BrokerError>>;

    /// Lists notices of a capability that were given up, the oldest first.
    fn list_dead<'a>(
        &'a self,
        capability: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadNotice>, BrokerError>>;

    /// Sends a dead notice again. Returns false if there is no such one.
    fn requeue<'a>(
        &'a self,
        capability: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, BrokerError>>;

    /// Forgets all dead notices of a capability, and returns how many these were.
    fn purge_dead<'a>(&'a self, capability: &'a str) -> BoxFuture<'a, Result<u64, BrokerError>>;
}

/// Why a broker could not be used. No variant holds a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// It does not answer, or the connection broke: it may work later.
    #[error("the broker cannot be reached: {0}")]
    Unreachable(String),
    /// It answered with a refusal, which waiting will not change.
    #[error("the broker refused: {0}")]
    Refused(String),
    /// What arrived is not one of our notices.
    #[error("not a notice: {0}")]
    Unreadable(String),
}
