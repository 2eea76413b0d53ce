//! Turning decisions into calls: limits, calls in flight, values, and the loop of one run.

mod agent;
mod call;
mod facts;
mod flow;
mod inline_budget;
mod isolation;
mod run_loop;
mod run_time;
mod schedule;
mod sealed;
mod subplan;
mod think;
mod values;

pub use run_loop::RunError;
pub(crate) use run_loop::{Ended, First, RunLoop, Setup};
pub(crate) use schedule::call_digest;
pub(crate) use sealed::SecretValues;
pub(crate) use values::{LargeValues, LoadValueError, RunValues};
