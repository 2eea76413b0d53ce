//! What an earlier attempt at the same call began.

use super::{PlanTools, Problem};
use crate::journal::load_run;
use planwright_core::id::PlanId;
use planwright_core::journal::{StreamName, decode};
use planwright_core::review::{Review, ReviewEvent};
use planwright_core::run::Run;
use planwright_core::trace::TraceId;

/// A crash is recovered from soon: the plan that was begun is among the latest.
const LOOKED_AT: usize = 200;

impl PlanTools {
    /// The plan that an earlier attempt proposed.
    pub(super) async fn begun_plan(&self, trace: TraceId) -> Result<Option<Review>, Problem> {
        let store = self.engine.store();
        let plans = store.plans().await.map_err(|error| Problem::of(&error))?;
        for info in plans.into_iter().take(LOOKED_AT) {
            let plan = info.status.plan;
            if self.trace_of(&plan).await? == Some(trace) {
                let (review, _) =
                    self.engine.load_review(&plan).await.map_err(|error| Problem::of(&error))?;
                return Ok(Some(review));
            }
        }
        Ok(None)
    }

    /// The trace of the order that brought a plan.
    async fn trace_of(&self, plan: &PlanId) -> Result<Option<TraceId>, Problem> {
        let stream = StreamName::Plan(plan.clone());
        let first = self.engine.store().read(&stream, 0, 1).await.map_err(|error| Problem::of(&error))?;
        // A plan whose journal cannot be read was begun by somebody else, or cannot be gone on with.
        let event =
            first.first().and_then(|record| decode::<ReviewEvent>(record).ok()).map(|entry| entry.event);
        Ok(if let Some(ReviewEvent::PlanProposed { trace, .. }) = event { trace } else { None })
    }

    /// The run of this plan that an earlier attempt began.
    pub(super) async fn begun_run(&self, review: &Review, trace: TraceId) -> Result<Option<Run>, Problem> {
        let env = self.engine.environment();
        for opened in review.runs().iter().rev().take(LOOKED_AT) {
            let loaded = load_run(&*env.store, &opened.run, review, &env.bounds).await;
            let (run, _) = loaded.map_err(|error| Problem::of(&error))?;
            if run.start().trace == Some(trace) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }
}
