//! The public events of a plan, for the rest of the world: folded from the journals of the
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

use crate::id::PlanId;
use crate::trace::TraceId;

/// The trace that the events of a plan and its runs belong to, if none came with the order that brought it.
pub fn trace_of_plan(plan: &PlanId) -> TraceId {
    TraceId::of_name(&format!("plan/{plan}"))
}
