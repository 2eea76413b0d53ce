//! Which plans are worth reading: the store knows where each plan and run stands, and what cannot
//! matter is not read.

use crate::context::Context;
use crate::port::{StoreError, StreamInfo};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::status::{CachedStatus, PlanStatus, RunStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The plans of which something may wait for a person, in no order, and their runs that may, oldest
/// first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwaitingPeople {
    /// Plans that may wait for a person.
    pub plans: Vec<StreamInfo>,
    /// Runs of those plans that may wait for a person.
    pub runs: BTreeMap<PlanId, Vec<RunId>>,
}

/// Finds the plans that people have to look at.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// assert!(engine.inbox().plans_awaiting_people().await?.plans.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Inbox {
    pub(crate) context: Arc<Context>,
}

impl Inbox {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// Everything that may wait for a person. Whether it does, its journal says.
    pub async fn plans_awaiting_people(&self) -> Result<AwaitingPeople, StoreError> {
        let store = &self.context.ports.store;
        let mut found = AwaitingPeople::default();
        // What was adjusted without a new version waits for consent like a plan that was proposed.
        let mut adjusted = BTreeSet::new();
        let mut of_runs = BTreeSet::new();
        for info in store
            .runs_in(&[
                RunStatus::Waiting.into(),
                RunStatus::Executing.into(),
                RunStatus::Paused.into(),
                RunStatus::Adjusted.into(),
            ])
            .await?
        {
            let StreamName::Run(run) = info.stream else {
                continue;
            };
            if info.status.status == CachedStatus::Run(RunStatus::Adjusted) {
                adjusted.insert(info.status.plan);
            } else {
                of_runs.insert(info.status.plan.clone());
                found.runs.entry(info.status.plan).or_default().push(run);
            }
        }
        found.plans = store
            .plans_in(&[CachedStatus::Proposed, CachedStatus::NeedsReview], None)
            .await?;
        for info in &found.plans {
            of_runs.remove(&info.status.plan);
            adjusted.remove(&info.status.plan);
        }
        for plan in of_runs.union(&adjusted) {
            let Some(info) = store.info(&StreamName::Plan(plan.clone())).await? else {
                continue;
            };
            let waits = match &info.status.status {
                CachedStatus::Deleted | CachedStatus::Archived | CachedStatus::Draft => false,
                status => of_runs.contains(plan) || *status == CachedStatus::Opened,
            };
            if waits {
                found.plans.push(info);
            }
        }
        Ok(found)
    }

    /// Plans of which calls may be left to make: those that were approved and those whose run has not
    /// ended, most recently updated first, without those that `is_known` to have none. May contain false
    /// positives, which the journals rule out.
    pub(crate) async fn plans_with_calls_left(
        &self,
        is_known: impl Fn(&PlanId) -> bool,
    ) -> Result<Vec<PlanId>, StoreError> {
        let store = &self.context.ports.store;
        let of_runs = [
            RunStatus::Executing,
            RunStatus::Waiting,
            RunStatus::Paused,
            RunStatus::Stalled,
        ];
        let runs = store.runs_in(&of_runs.map(CachedStatus::from)).await?;
        let with_run: BTreeSet<PlanId> = runs.into_iter().map(|info| info.status.plan).collect();
        let mut plans = store
            .plans_in(&[CachedStatus::from(PlanStatus::Approved)], None)
            .await?;
        for plan in with_run {
            if !is_known(&plan) && !plans.iter().any(|info| info.status.plan == plan) {
                plans.extend(store.info(&StreamName::Plan(plan)).await?);
            }
        }
        plans.sort_by_key(|info| std::cmp::Reverse(info.updated_at));
        Ok(plans.into_iter().map(|info| info.status.plan).collect())
    }

    /// Plans whose status may be `status`; unordered, may contain false positives, which the
    /// journals rule out.
    pub async fn plans_with_status(
        &self,
        status: PlanStatus,
    ) -> Result<Vec<StreamInfo>, StoreError> {
        let store = &self.context.ports.store;
        let of_run = match status {
            PlanStatus::Proposed => Some(RunStatus::Adjusted),
            other => other.run_status(),
        };
        let mut with_run = BTreeSet::new();
        if let Some(of_run) = of_run {
            let runs = store.runs_in(&[of_run.into()]).await?;
            with_run.extend(runs.into_iter().map(|info| info.status.plan));
        }
        if status.is_executing() {
            // A run that has not ended is shown regardless of later decisions about its plan.
            let mut plans = Vec::new();
            for plan in with_run {
                plans.extend(store.info(&StreamName::Plan(plan)).await?);
            }
            return Ok(plans);
        }
        let wanted = CachedStatus::from(status);
        // Earlier releases kept what was opened as `proposed`.
        let mut statuses = vec![wanted.clone(), CachedStatus::Opened, CachedStatus::Proposed];
        // Only what is over is in the archive, and there the word no longer tells how it ended.
        if status.is_over() {
            statuses.push(CachedStatus::Archived);
        }
        let mut plans = store.plans_in(&statuses, None).await?;
        plans.retain(|info| {
            let found = &info.status.status;
            let says_its_run = matches!(found, CachedStatus::Opened | CachedStatus::Proposed);
            *found == wanted || !says_its_run || with_run.contains(&info.status.plan)
        });
        Ok(plans)
    }
}
