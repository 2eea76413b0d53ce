//! Runs plans: command → decide → append → effects. Async, but knows no vendor.

mod command;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod crash;
mod dispatch;
mod engine;
mod history;
mod journal;
pub mod memory;
mod observer;
mod plans;
pub mod port;
mod remote;
mod start;

pub use command::CommandError;
pub use dispatch::{Limits, RunError, read_value, store_value};
pub use engine::{Engine, EngineBuilder, Environment};
pub use journal::{LoadError, load_review, load_run, plan_of_run, read_entries};
pub use observer::Observer;
pub use plans::{Candidate, ReviewError};
pub use remote::{RunCommand, ShownText};
pub use start::{GivenApproval, RunHandle, RunOptions, StartRunError};
