//! The facade over runs. Its methods stand in the files of this room and of `reflection`.

use crate::context::{Context, Tenure};
use crate::journal::load::{LoadError, fold_added, load_run, load_run_with_review};
use crate::planner::Planner;
use crate::port::{AcquireError, StoreError};
use crate::review::plans::Plans;
use planwright_core::id::RunId;
use planwright_core::journal::Head;
use planwright_core::review::Review;
use planwright_core::run::Run;
use std::sync::Arc;

/// The life of runs: starting, resuming, commanding, forking, undoing, continuing after an
/// adjustment.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// let unknown = planwright_core::id::RunId::mint(1);
/// assert!(!engine.runs().is_executed(&unknown).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Runs {
    pub(crate) context: Arc<Context>,
}

impl Runs {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    pub(crate) fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    pub(crate) fn planner(&self) -> Planner {
        Planner::new(&self.context)
    }

    /// Is a live process executing this run?
    pub async fn is_executed(&self, id: &RunId) -> Result<bool, StoreError> {
        let store = &self.context.ports.store;
        Ok(store.lease(id).await?.is_some() || self.has_overdue_owner(id).await?)
    }

    /// Returns whether the lease of the run has run out although another process that holds it is
    /// alive: the machine slept, its clock was set, or the process was stopped. It renews the lease
    /// as soon as it gets to it, unless it never will.
    pub(crate) async fn has_overdue_owner(&self, id: &RunId) -> Result<bool, StoreError> {
        let owner = self.context.ports.store.living_owner(id).await?;
        let is_other = owner.is_some_and(|owner| owner != self.context.settings.owner);
        Ok(is_other && self.context.ports.store.lease(id).await?.is_none())
    }

    /// Takes over a run whose owner is gone.
    pub(crate) async fn acquire(&self, id: &RunId) -> Result<Tenure, AcquireError> {
        let ttl = self.context.settings.lease_ttl;
        let asked_at = self.context.ports.clock.uptime();
        let owner = &self.context.settings.owner;
        let lease = self.context.ports.store.acquire(id, owner, ttl).await?;
        Ok(Tenure::new(lease, ttl, asked_at))
    }

    /// Folds a run from its journal, and says where that ends.
    pub async fn load_run(&self, id: &RunId, review: &Review) -> Result<(Run, Head), LoadError> {
        let bounds = &self.context.settings.bounds;
        load_run(&*self.context.ports.store, id, review, bounds).await
    }

    /// Folds a run and the review of its plan, and says where the journal of the run ends.
    pub(crate) async fn load_run_with_review(
        &self,
        id: &RunId,
    ) -> Result<(Review, Run, Head), LoadError> {
        let bounds = &self.context.settings.bounds;
        load_run_with_review(&*self.context.ports.store, id, bounds).await
    }

    /// Folds what was added to the journal of a run since it ended at `head`.
    pub async fn bring_up_to_date(&self, run: &mut Run, head: Head) -> Result<Head, LoadError> {
        fold_added(&*self.context.ports.store, run, head).await
    }
}
