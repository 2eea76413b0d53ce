//! What the rest of the world is told about a plan: public events, folded from the journals of the
//! plan and its runs.
//!
//! The events of a plan are numbered from 1 without gaps. The numbers follow from the journal
//! alone, so a client that has seen event n can ask any server for the events after n.

mod cloud;
mod details;
mod fold;
mod name;
mod plan_event;
mod reviews;
mod runs;
mod story;

pub use cloud::CloudEvent;
pub use details::{ErrorSummary, ResultSummary, StepDetails};
pub use fold::{FoldEventsError, PlanEvents};
pub use name::EventName;
pub use plan_event::PlanEvent;

use crate::id::{PlanId, RunId};
use crate::trace::TraceId;

/// The trace that the events of a plan belong to, as far as they are not those of a run.
pub fn trace_of_plan(plan: &PlanId) -> TraceId {
    TraceId::of_name(&format!("plan/{plan}"))
}

/// The trace of a run whose start names none.
pub fn trace_of_run(run: &RunId) -> TraceId {
    TraceId::of_name(&format!("run/{run}"))
}
