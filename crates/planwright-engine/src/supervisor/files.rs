//! Bringing the files of plans up to date, out of the way of the runs: neither who decides nor the
//! run that goes on then waits for files.

use crate::port::PlanFiles;
use planwright_core::id::PlanId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What changes within this time is written once, and not while the run that was waited for sets
/// out.
const SOON: Duration = Duration::from_millis(100);

/// The plans whose files are behind the journal. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct DueFiles {
    files: Option<Arc<dyn PlanFiles>>,
    due: Arc<Due>,
}

#[derive(Debug, Default)]
struct Due {
    plans: Mutex<BTreeSet<PlanId>>,
    woken: Notify,
    /// Held while writing: a task that writes what is left waits for what is being written.
    writing: tokio::sync::Mutex<()>,
}

impl DueFiles {
    pub(super) fn new(files: Option<Arc<dyn PlanFiles>>) -> Self {
        Self {
            files,
            due: Arc::default(),
        }
    }

    /// The journal of this plan has grown.
    pub(super) fn note(&self, plan: &PlanId) {
        if self.files.is_some() {
            self.due
                .plans
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(plan.clone());
            self.due.woken.notify_one();
        }
    }

    /// Writes what is due, soon after it became so, until told to stop.
    pub(super) async fn keep(self, stopping: CancellationToken) {
        loop {
            let soon = async {
                self.due.woken.notified().await;
                tokio::time::sleep(SOON).await;
            };
            tokio::select! {
                () = stopping.cancelled() => return,
                () = soon => self.write().await,
            }
        }
    }

    /// Writes what is due now. That a file could not be written is told and changes no outcome.
    pub(super) async fn write(&self) {
        let Some(files) = &self.files else { return };
        let _writing = self.due.writing.lock().await;
        let next = || {
            self.due
                .plans
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_first()
        };
        while let Some(plan) = next() {
            if let Err(problem) = files.write(&plan).await {
                tracing::warn!(%plan, problem, "the files of the plan are not up to date");
            }
        }
    }
}
