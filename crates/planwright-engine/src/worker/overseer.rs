//! The workers, what waits for them, and the queues of the broker, for those who look after them.

use super::take::{Worker, WorkerError, WorkerOptions};
use crate::context::Context;
use crate::journal::load::plan_of_run;
use crate::port::{
    Broker, BrokerError, DeadNotice, ListedWorker, Offers, QueueState, StoreError, WaitingOffers,
};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::id::{PlanId, RunId};
use std::sync::Arc;

/// The workers of a store and the queues of its broker. Cheap to clone: it shares the engine's
/// context.
#[derive(Debug, Clone)]
pub struct Workers {
    pub(super) context: Arc<Context>,
}

impl Workers {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    fn offers(&self) -> Result<&dyn Offers, WorkersError> {
        let offers = self.context.ports.offers.as_deref();
        offers.ok_or(WorkersError::NoWorkers)
    }

    fn broker(&self) -> Result<&dyn Broker, WorkersError> {
        let broker = self.context.settings.dispatch.broker.as_deref();
        broker.ok_or(WorkersError::NoBroker)
    }

    /// The broker, if workers take steps with this capability: a queue of another name is not made
    /// by asking for it.
    fn broker_for(&self, capability: &str) -> Result<&dyn Broker, WorkersError> {
        let broker = self.broker()?;
        let known = &self.context.settings.dispatch.capabilities;
        match known.contains(capability) {
            true => Ok(broker),
            false => Err(WorkersError::UnknownCapability(capability.to_owned())),
        }
    }

    /// Makes this process a worker and begins to take offers in the background.
    pub async fn start_worker(&self, options: WorkerOptions) -> Result<Worker, WorkerError> {
        Worker::start(Arc::clone(&self.context), options).await
    }

    /// Returns whether this store can have workers.
    pub fn are_possible(&self) -> bool {
        self.context.ports.offers.is_some()
    }

    /// Returns whether a broker tells workers where to look.
    pub fn have_broker(&self) -> bool {
        self.context.settings.dispatch.broker.is_some()
    }

    /// The capabilities whose steps workers carry out.
    pub fn capabilities(&self) -> Vec<String> {
        let known = &self.context.settings.dispatch.capabilities;
        known.iter().cloned().collect()
    }

    /// Lists the workers that are there, and those that are gone and had claimed a step: these are
    /// of interest while steps wait for what becomes of them.
    pub async fn list(&self) -> Result<Vec<ListedWorker>, WorkersError> {
        let mut workers = self.offers()?.workers().await?;
        workers.retain(|worker| worker.is_alive || !worker.claims.is_empty());
        Ok(workers)
    }

    /// Counts the steps that no worker has taken, by capability.
    pub async fn waiting(&self) -> Result<Vec<WaitingOffers>, WorkersError> {
        Ok(self.offers()?.waiting_offers().await?)
    }

    /// Returns the plan of a run, if the store has it: the run that a notice names may be none.
    pub async fn plan_of_run(&self, run: &RunId) -> Option<PlanId> {
        plan_of_run(&*self.context.ports.store, run).await.ok()
    }

    /// Returns how the queues of the broker stand.
    pub async fn queues(&self) -> Result<Vec<QueueState>, WorkersError> {
        Ok(self.broker()?.states(&self.capabilities()).await?)
    }

    /// Lists the notices of a capability that were given up, the oldest first.
    pub async fn dead(
        &self,
        capability: &str,
        limit: usize,
    ) -> Result<Vec<DeadNotice>, WorkersError> {
        let broker = self.broker_for(capability)?;
        Ok(broker.list_dead(capability, limit).await?)
    }

    /// Sends a notice again that was given up.
    pub async fn requeue(&self, capability: &str, id: &str) -> Result<(), WorkersError> {
        let broker = self.broker_for(capability)?;
        match broker.requeue(capability, id).await? {
            true => Ok(()),
            false => Err(WorkersError::UnknownNotice(id.to_owned())),
        }
    }

    /// Forgets the notices of a capability that were given up. Returns how many these were.
    pub async fn purge(&self, capability: &str) -> Result<u64, WorkersError> {
        Ok(self.broker_for(capability)?.purge_dead(capability).await?)
    }
}

/// Why there is nothing to say about workers or queues.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorkersError {
    /// Its store is a file, or there is none.
    #[error("there are no workers: the store is not a database")]
    NoWorkers,
    /// Workers are told by the store.
    #[error("no broker is configured: steps are offered to workers in the store")]
    NoBroker,
    /// No step is offered to workers with it.
    #[error("no worker carries out steps with the capability `{0}` here")]
    UnknownCapability(String),
    /// It was sent again or forgotten, or never was one.
    #[error("no notice `{0}` was given up")]
    UnknownNotice(String),
    /// The broker failed.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClassifiedError for WorkersError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoWorkers => ErrorKind::Conflict.with_code("no_workers"),
            Self::NoBroker => ErrorKind::Conflict.with_code("no_broker"),
            Self::UnknownCapability(_) => ErrorKind::NotFound.with_code("unknown_capability"),
            Self::UnknownNotice(_) => ErrorKind::NotFound.with_code("unknown_notice"),
            Self::Broker(error) => error.class(),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        let words = match self {
            Self::NoWorkers => {
                "workers share a store in Postgres: planwright serve --store postgres://USER@HOST/DATABASE"
            }
            Self::NoBroker => "[dispatch] url in planwright.toml names one",
            Self::UnknownCapability(_) => {
                "[dispatch] capabilities in planwright.toml has those that workers carry out"
            }
            Self::UnknownNotice(_) => "list them again: others may have sent it or forgotten it",
            Self::Broker(BrokerError::Unreachable(_)) => {
                "runs go on without it: workers look for steps in the store"
            }
            Self::Broker(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
        };
        Some(Hint::Text(words.to_owned()))
    }
}
