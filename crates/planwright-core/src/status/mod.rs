//! The words in which plans, runs and steps are reported, as types.
//!
//! The words are contracts: they stand in JSON documents, in the store and on the command line.
//! Each is spelled once, here; everything else compares variants.

mod cached;
mod plan;
mod run;
mod step;
mod step_error_code;
mod words;

pub use cached::CachedStatus;
pub use plan::PlanStatus;
pub use run::RunStatus;
pub use step::StepStatus;
pub use step_error_code::StepErrorCode;
pub use words::UnknownStatus;
