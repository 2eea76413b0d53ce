//! Plans that an agent wanted to run before a person had agreed: once one has, they run by
//! themselves.

use crate::server::Host;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::principal::Principal;
use planwright_core::review::ReviewStage;
use planwright_engine::{PlanTool, PlanToolCall, PlanTools};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most plans that wait at once.
const MAX_AWAITED: usize = 64;
/// A person who takes longer runs the plan themselves.
const PATIENCE: Duration = Duration::from_hours(24);

/// The plans that run as soon as a person has agreed to them.
#[derive(Debug, Default)]
pub(crate) struct AwaitedPlans(Mutex<BTreeSet<PlanId>>);

/// An order to run that waits for an approval.
#[derive(Debug, Clone)]
pub(crate) struct Awaited {
    pub(crate) plan: PlanId,
    /// What the order was about: another version is another order.
    pub(crate) digest: Digest,
    pub(crate) variables: Map<String, Value>,
    /// The agent that gave the order.
    pub(crate) agent: Principal,
    /// The same for every attempt at the order.
    pub(crate) key: String,
}

/// Where the approval of a plan stands.
enum Standing {
    Open,
    Approved,
    /// It was rejected, changed or run by another order.
    Over,
}

impl AwaitedPlans {
    /// Runs the plan once it is approved, as long as this process lives. Returns whether it does:
    /// not if too many wait already.
    pub(crate) fn run_once_approved(self: &Arc<Self>, host: &Arc<Host>, awaited: Awaited) -> bool {
        {
            let mut plans = self.plans();
            if plans.contains(&awaited.plan) {
                return true;
            }
            if plans.len() >= MAX_AWAITED {
                return false;
            }
            plans.insert(awaited.plan.clone());
        }
        let waiting = Arc::clone(self);
        let host = Arc::clone(host);
        tokio::spawn(async move {
            let approved = tokio::time::timeout(PATIENCE, host.wait_for_approval(&awaited)).await;
            waiting.plans().remove(&awaited.plan);
            if approved == Ok(true) {
                host.run_awaited(&awaited).await;
            }
        });
        true
    }

    fn plans(&self) -> MutexGuard<'_, BTreeSet<PlanId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// Returns whether a person agreed to exactly what was ordered.
    async fn wait_for_approval(&self, awaited: &Awaited) -> bool {
        let mut changes = self.engine.journals().changes();
        let mut seen = None;
        loop {
            changes.borrow_and_update();
            match self.approval_of(awaited, &mut seen).await {
                Standing::Approved => return true,
                Standing::Over => return false,
                Standing::Open => {}
            }
            if changes.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Looks at the plan if it changed since it was last looked at.
    async fn approval_of(&self, awaited: &Awaited, seen: &mut Option<Head>) -> Standing {
        let plans = self.engine.plans();
        // A store that cannot be read now is read again when it changes.
        let Ok((review, head)) = plans.load_review(&awaited.plan).await else {
            return Standing::Open;
        };
        if seen.as_ref() == Some(&head) {
            return Standing::Open;
        }
        let Ok(candidate) = plans.candidate(&review, &awaited.variables).await else {
            return Standing::Open;
        };
        *seen = Some(head);
        let undecided = matches!(
            review.stage(),
            Some(ReviewStage::Proposed | ReviewStage::Approved | ReviewStage::NeedsReview)
        );
        if !undecided || candidate.digest != awaited.digest {
            return Standing::Over;
        }
        match review.usable_approvals(&candidate.digest, self.engine.now()) {
            Some(_) => Standing::Approved,
            None => Standing::Open,
        }
    }

    async fn run_awaited(&self, awaited: &Awaited) {
        let tools = PlanTools::new(self.engine.clone(), Arc::clone(&self.maker), &awaited.agent);
        let args = json!({ "planId": awaited.plan, "variables": awaited.variables });
        let args = args.as_object().cloned().unwrap_or_default();
        let order = PlanToolCall::new(PlanTool::Execute, args, awaited.key.clone());
        let came = Box::pin(tools.call(&order)).await;
        tracing::info!(plan = %awaited.plan, status = %came["status"], "a plan ran once it was approved");
        self.write_files(&awaited.plan).await;
    }
}
