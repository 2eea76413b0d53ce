//! Starting the runs that were requested before their plans were approved.

use super::scheduler::SchedulerCommand;
use crate::engine::Engine;
use planwright_core::id::PlanId;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Starts requested runs of approved plans, as far as there are slots.
#[derive(Debug, Clone)]
pub(super) struct RequestedRuns {
    pub(super) engine: Engine,
    pub(super) commands: mpsc::Sender<SchedulerCommand>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) max_runs: u32,
}

impl RequestedRuns {
    /// Starts what was approved while no process followed the journal.
    pub(super) async fn start_left(self) {
        match self.engine.inbox().plans_with_requested_runs().await {
            Ok(plans) => {
                for plan in plans {
                    self.start(&plan).await;
                }
            }
            Err(error) => tracing::warn!(%error, "requested runs cannot be found"),
        }
    }

    /// Starts the run that was requested of a plan, if its approval is there.
    pub(super) async fn start(&self, plan: &PlanId) {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let queued = slot.is_none().then_some(self.max_runs);
        let handle = match self.engine.runs().start_requested(plan, queued).await {
            Ok(Some(handle)) => handle,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%plan, %error, "the run that was requested of this plan did not start");
                return;
            }
        };
        tracing::info!(%plan, run = %handle.run_id(), "a requested run starts: its plan is approved");
        let command = match slot {
            Some(slot) => SchedulerCommand::Watch(handle, Some(slot)),
            None => SchedulerCommand::Queue(handle.run_id().clone()),
        };
        // If this fails, the supervisor is stopping, and the run is found at the next start.
        drop(self.commands.send(command).await);
    }
}
