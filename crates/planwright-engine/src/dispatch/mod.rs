//! Turning decisions into calls: limits, calls in flight, values, and the loop of one run.

mod agent;
pub(crate) mod call;
mod commit;
mod facts;
mod flight;
mod flow;
mod held;
mod inline_budget;
mod isolation;
mod joint;
mod offered;
pub(crate) mod offered_call;
pub(crate) mod placed;
mod quick_read;
mod run_loop;
mod run_time;
pub(crate) mod schedule;
mod subplan;
mod think;

pub(crate) use commit::Opening;
pub(crate) use joint::is_free;
pub use placed::kind_of;
pub(crate) use quick_read::ReadRun;
pub use run_loop::RunError;
pub(crate) use run_loop::{Ended, First, RunLoop, Setup};
