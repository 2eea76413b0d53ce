//! The facade over runs. Its methods stand in the files of this room and of `reflection`.

use crate::context::Context;
use crate::journal::load::{LoadError, load_run};
use crate::planner::Planner;
use crate::port::StoreError;
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
        Ok(self.context.ports.store.lease(id).await?.is_some())
    }

    /// Folds a run from its journal, and says where that ends.
    pub async fn load_run(&self, id: &RunId, review: &Review) -> Result<(Run, Head), LoadError> {
        let bounds = &self.context.settings.bounds;
        load_run(&*self.context.ports.store, id, review, bounds).await
    }
}
