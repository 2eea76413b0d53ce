//! Runs that go on while nobody waits for them.

use crate::Service;
use planwright_core::id::PlanId;
use planwright_engine::RunHandle;
use tokio_util::task::TaskTracker;

/// The runs this service executes.
#[derive(Debug)]
pub struct Background {
    service: Service,
    tasks: TaskTracker,
}

impl Background {
    pub fn new(service: Service) -> Self {
        Self { service, tasks: TaskTracker::new() }
    }

    /// Lets a run go on, and brings the files of its plan up to date when it stops.
    pub fn run(&self, plan: PlanId, mut handle: RunHandle) {
        let service = self.service.clone();
        self.tasks.spawn(async move {
            let run = handle.run_id().clone();
            if let Err(error) = handle.wait().await {
                tracing::error!(%run, %error, "a run cannot go on");
            }
            service.write_files(&plan).await;
        });
    }

    /// Waits until every run has stopped.
    pub async fn stopped(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}
