//! What the service is made of.

use planwright_core::id::PlanId;
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent};
use planwright_engine::Engine;
use planwright_engine::port::{Answers, PlanFiles, Tokens};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Long enough for a run that was waited for to be on its way.
const SOON: Duration = Duration::from_millis(100);

/// Everything a request may need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    pub engine: Engine,
    pub tokens: Arc<dyn Tokens>,
    pub files: Arc<dyn PlanFiles>,
    /// Answers that are given again.
    pub answers: Arc<dyn Answers>,
}

impl Service {
    /// Brings the files of a plan up to date. That they could not be written is told and changes no outcome.
    pub async fn write_files(&self, plan: &PlanId) {
        if let Err(problem) = self.files.write(plan).await {
            tracing::warn!(%plan, problem, "the files of a plan are not up to date");
        }
    }

    /// Writes the files of a plan in a moment. Whoever decided does not wait for it, and neither does the run that goes
    /// on: both would share the disk with it.
    pub(crate) fn write_files_soon(&self, plan: &PlanId) {
        let (service, plan) = (self.clone(), plan.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SOON).await;
            service.write_files(&plan).await;
        });
    }

    /// Writes the files of plans whose runs end or come to wait, for as long as the runtime lives.
    pub(crate) fn keep_files(&self) {
        let due: Arc<(Mutex<BTreeSet<PlanId>>, Notify)> = Arc::default();
        let told = Arc::clone(&due);
        self.engine.watch(Arc::new(move |run: &Run, _: &Entry<RunEvent>| {
            if run.state().is_terminal() || run.is_parked() {
                let (plans, woken) = &*told;
                plans.lock().unwrap_or_else(PoisonError::into_inner).insert(run.plan().id().clone());
                woken.notify_one();
            }
        }));
        let service = self.clone();
        tokio::spawn(async move {
            let (plans, woken) = &*due;
            loop {
                woken.notified().await;
                tokio::time::sleep(SOON).await;
                let now = std::mem::take(&mut *plans.lock().unwrap_or_else(PoisonError::into_inner));
                for plan in now {
                    service.write_files(&plan).await;
                }
            }
        });
    }
}
