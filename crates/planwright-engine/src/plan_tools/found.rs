//! What an earlier attempt at the same call began.

use super::{PlanTools, Problem};
use crate::journal::load::load_run;
use crate::port::{Journal, Store, StoreError};
use crate::run::child::WANTED_STEP;
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{StreamName, decode};
use planwright_core::review::{Review, ReviewEvent};
use planwright_core::run::{Run, RunEvent, idempotency_key};
use planwright_core::trace::TraceId;
use std::collections::BTreeMap;

/// A crash is recovered from soon: the plan that was begun is among the latest.
const LOOKED_AT: usize = 200;

impl PlanTools {
    /// The plan that an earlier attempt proposed.
    pub(super) async fn begun_plan(&self, trace: TraceId) -> Result<Option<Review>, Problem> {
        let store = &self.engine.context.ports.store;
        let plans = store.plans().await.map_err(|error| Problem::of(&error))?;
        for info in plans.into_iter().take(LOOKED_AT) {
            let plan = info.status.plan;
            if trace_of_plan(&**store, &plan)
                .await
                .map_err(|error| Problem::of(&error))?
                == Some(trace)
            {
                let (review, _) = self
                    .engine
                    .plans()
                    .load_review(&plan)
                    .await
                    .map_err(|error| Problem::of(&error))?;
                return Ok(Some(review));
            }
        }
        Ok(None)
    }

    /// The run of this plan that an earlier attempt began.
    pub(super) async fn begun_run(
        &self,
        review: &Review,
        trace: TraceId,
    ) -> Result<Option<Run>, Problem> {
        let context = &self.engine.context;
        for opened in review.runs().iter().rev().take(LOOKED_AT) {
            let loaded = load_run(
                &*context.ports.store,
                &opened.run,
                review,
                &context.settings.bounds,
            )
            .await;
            let (run, _) = loaded.map_err(|error| Problem::of(&error))?;
            if run.start().trace == Some(trace) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }
}

/// The latest plans that were brought with a trace.
pub(crate) async fn plans_by_trace(
    store: &dyn Store,
) -> Result<BTreeMap<TraceId, PlanId>, StoreError> {
    let mut found = BTreeMap::new();
    for info in store.plans().await?.into_iter().take(LOOKED_AT) {
        let plan = info.status.plan;
        if let Some(trace) = trace_of_plan(store, &plan).await? {
            found.insert(trace, plan);
        }
    }
    Ok(found)
}

/// The trace of the order that brought a plan.
async fn trace_of_plan(store: &dyn Journal, plan: &PlanId) -> Result<Option<TraceId>, StoreError> {
    let first = store.read(&StreamName::Plan(plan.clone()), 0, 1).await?;
    // A plan whose journal cannot be read was begun by another caller, or cannot be gone on with.
    let event = first
        .first()
        .and_then(|record| decode::<ReviewEvent>(record).ok())
        .map(|entry| entry.event);
    Ok(
        if let Some(ReviewEvent::PlanProposed { trace, .. }) = event {
            trace
        } else {
            None
        },
    )
}

/// The trace of the order that started a run.
pub(crate) async fn trace_of_run(
    store: &dyn Journal,
    run: &RunId,
) -> Result<Option<TraceId>, StoreError> {
    let first = store.read(&StreamName::Run(run.clone()), 0, 1).await?;
    let event = first
        .first()
        .and_then(|record| decode::<RunEvent>(record).ok())
        .map(|entry| entry.event);
    Ok(if let Some(RunEvent::RunStarted { trace, .. }) = event {
        trace.map(|trace| *trace)
    } else {
        None
    })
}

/// The trace of what a call begins that an executor wanted, from the run that makes the call.
pub(crate) fn trace_of_call(run: &RunId, digest: &Digest) -> Option<TraceId> {
    let step = WANTED_STEP.parse().ok()?;
    Some(TraceId::of_name(&idempotency_key(run, digest, &step)))
}
