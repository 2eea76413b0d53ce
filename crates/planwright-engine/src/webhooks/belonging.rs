//! Child runs: the runs of sub-plans, and the calls of executors. They are the work of a step of a
//! run that people started, and what is told of them is only what a person has to decide or
//! decided.

use crate::port::{Journal, Store, StoreError};
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::journal::{StreamName, decode};
use planwright_core::run::{Parent, RunEvent};
use serde::Serialize;
use std::collections::BTreeMap;

/// No chain of child runs is longer than this: sub-plans nest less deep. A longer one is not
/// followed to its end.
const MAX_DEPTH: usize = 64;

/// The run that people started, and the step of it that a child run is the work of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Belongs {
    /// The plan of that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    /// The run that people started.
    pub run_id: RunId,
    /// The step of it that the child run works on.
    pub step_id: StepId,
}

/// Returns whether a notice of this kind is told also of a child run.
pub(super) fn told_of_children(kind: &str) -> bool {
    matches!(
        kind,
        "approval.requested" | "approval.decided" | "input.requested" | "outcome.unknown"
    )
}

/// Which runs are children, looked up once each.
#[derive(Debug, Default)]
pub(super) struct Children(BTreeMap<RunId, bool>);

impl Children {
    /// Returns whether a notice of this kind is told of this stream.
    pub(super) async fn are_told(
        &mut self,
        store: &dyn Journal,
        stream: &StreamName,
        kind: &str,
    ) -> Result<bool, StoreError> {
        let StreamName::Run(run) = stream else {
            return Ok(true);
        };
        if told_of_children(kind) {
            return Ok(true);
        }
        if let Some(child) = self.0.get(run) {
            return Ok(!child);
        }
        let child = parent(store, run).await?.is_some();
        self.0.insert(run.clone(), child);
        Ok(!child)
    }
}

/// Finds the run that a run belongs to, if people did not start it themselves.
pub(super) async fn belongs(store: &dyn Store, run: &RunId) -> Result<Option<Belongs>, StoreError> {
    let Some(mut found) = parent(store, run).await? else {
        return Ok(None);
    };
    for _ in 0..MAX_DEPTH {
        match parent(store, &found.run).await? {
            Some(above) => found = above,
            None => break,
        }
    }
    let plan_id = store
        .info(&StreamName::Run(found.run.clone()))
        .await?
        .map(|info| info.status.plan);
    Ok(Some(Belongs {
        plan_id,
        run_id: found.run,
        step_id: found.step,
    }))
}

/// The step that a run is the work of, as its first entry says. A run that cannot be read is taken
/// for one that people started: a notice too many is better than one that is missing.
async fn parent(store: &dyn Journal, run: &RunId) -> Result<Option<Parent>, StoreError> {
    let first = store.read(&StreamName::Run(run.clone()), 0, 1).await?;
    let event = first
        .first()
        .and_then(|record| decode::<RunEvent>(record).ok())
        .map(|entry| entry.event);
    Ok(match event {
        Some(RunEvent::RunStarted { parent, .. }) => parent.map(|parent| *parent),
        Some(_) | None => None,
    })
}
