//! Plans that an agent wanted to run before a person had agreed: once one has, they run by
//! themselves.
//!
//! What is wanted is an entry of the plan's journal, so that it outlives this process: the service, or
//! the next server of this store, starts what was approved in between. Of several, one does.

use crate::server::Host;
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::review::{RequestedRun, RunRequest};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most plans that one process waits for.
const MAX_AWAITED: usize = 64;

/// The plans that run as soon as a person has agreed to them.
#[derive(Debug, Default)]
pub(crate) struct AwaitedPlans(Mutex<BTreeSet<PlanId>>);

impl AwaitedPlans {
    /// Has the plan run once it is approved. Returns whether it will: not if that cannot be recorded.
    pub(crate) async fn run_once_approved(
        self: &Arc<Self>,
        host: &Arc<Host>,
        plan: &PlanId,
        request: RunRequest,
    ) -> bool {
        let requested = host.engine.plans().request_run(plan, request).await;
        if let Err(error) = requested {
            tracing::warn!(%plan, %error, "a run could not be requested");
            return false;
        }
        // Beyond the limit, the service or the next process starts it.
        self.watch(host, plan);
        true
    }

    /// Waits for the plans that earlier processes left, and starts those that are approved already.
    pub(crate) async fn take_up(self: &Arc<Self>, host: &Arc<Host>) {
        match host.engine.inbox().plans_with_requested_runs().await {
            Ok(plans) => plans.iter().for_each(|plan| self.watch(host, plan)),
            Err(error) => tracing::warn!(%error, "requested runs cannot be found"),
        }
    }

    fn watch(self: &Arc<Self>, host: &Arc<Host>, plan: &PlanId) {
        {
            let mut plans = self.plans();
            if plans.len() >= MAX_AWAITED || !plans.insert(plan.clone()) {
                return;
            }
        }
        let waiting = Arc::clone(self);
        let host = Arc::clone(host);
        let plan = plan.clone();
        tokio::spawn(async move {
            let waited = host.start_once_approved(&plan);
            // A request that is as old as this has no effect any more.
            let waited = tokio::time::timeout(RequestedRun::VALID_FOR, waited).await;
            waiting.plans().remove(&plan);
            if waited == Ok(true) {
                host.write_files(&plan).await;
            }
        });
    }

    fn plans(&self) -> MutexGuard<'_, BTreeSet<PlanId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// Waits until the plan is approved or not wanted any more. Returns whether it ran here.
    async fn start_once_approved(&self, plan: &PlanId) -> bool {
        let mut changes = self.engine.journals().changes();
        let mut seen = None;
        loop {
            changes.borrow_and_update();
            match self.start_if_approved(plan, &mut seen).await {
                Some(ran) => return ran,
                None if changes.changed().await.is_err() => return false,
                None => {}
            }
        }
    }

    /// Looks at the plan if it changed since it was last looked at. `None`: it still waits.
    async fn start_if_approved(&self, plan: &PlanId, seen: &mut Option<Head>) -> Option<bool> {
        // A store that cannot be read now is read again when it changes.
        let (review, head) = self.engine.plans().load_review(plan).await.ok()?;
        if seen.as_ref() == Some(&head) {
            return None;
        }
        *seen = Some(head);
        let now = self.engine.now();
        if review.requested_run(now).is_none() {
            return Some(false);
        }
        review.startable_run(now)?;
        let runs = self.engine.runs();
        let mut handle = match Box::pin(runs.start_requested(plan, None)).await {
            Ok(Some(handle)) => handle,
            // Other tools would be called than were approved, or another process started it.
            Ok(None) => return None,
            Err(error) => {
                tracing::warn!(%plan, %error, "a plan did not run although it was approved");
                return None;
            }
        };
        match handle.wait().await {
            Ok(run) => {
                tracing::info!(%plan, status = %run.status(), "a plan ran once it was approved");
            }
            Err(error) => tracing::warn!(%plan, %error, "a plan that was approved did not end"),
        }
        Some(true)
    }
}
