//! The tools that workers have, beside those of this process.

use crate::port::{BoxFuture, Call, Outcome, Tools};
use planwright_core::id::RunId;
use planwright_core::tool::{Catalog, KnownTool};
use std::sync::{Arc, PoisonError, RwLock};

/// The tools of workers, as far as they were heard of.
#[derive(Debug, Default)]
pub(crate) struct WorkerTools(RwLock<Vec<Arc<KnownTool>>>);

impl WorkerTools {
    /// Replaces what is known. What stayed the same is not compiled again.
    pub(crate) fn learn(&self, tools: Vec<KnownTool>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = tools.into_iter().map(|tool| {
            let before = known.iter().find(|known| known.digest() == tool.digest());
            before.map_or_else(|| Arc::new(tool), Arc::clone)
        });
        *known = kept.collect();
    }

    fn known(&self) -> Vec<Arc<KnownTool>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The tools of this process with those of workers in the catalog, so that plans can name them. A call of one that only
/// workers have is not made here.
#[derive(Debug)]
pub(crate) struct ToolsWithWorkers {
    pub(crate) own: Arc<dyn Tools>,
    pub(crate) workers: Arc<WorkerTools>,
}

impl Tools for ToolsWithWorkers {
    fn catalog(&self) -> Catalog {
        let own = self.own.catalog();
        let of_workers = self.workers.known();
        if of_workers.is_empty() {
            return own;
        }
        let is_own = |tool: &KnownTool| own.iter().any(|known| known.name == tool.name);
        let added: Vec<Arc<KnownTool>> = of_workers
            .into_iter()
            .filter(|tool| !is_own(tool))
            .collect();
        own.iter().cloned().chain(added).collect()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.own.call(call)
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.own.server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.own.serial_writes(server)
    }

    fn instructions(&self) -> Vec<(String, String)> {
        self.own.instructions()
    }

    fn release(&self, top_run: &RunId) {
        self.own.release(top_run);
    }
}
