//! Executing runs in the background of a service: what was going on goes on, what a person decided
//! is carried out, and a shutdown loses nothing.
//!
//! A run that waits for a person costs nothing here: it leaves memory, and comes back when the
//! journal says that a person decided.

mod files;
mod follow;
mod handle;
mod keep;
mod requested;
mod scheduler;
mod signed_in;
mod unfinished;

pub use handle::{Stopped, Supervisor, SupervisorOptions, SupervisorStats};
pub use signed_in::CompletedSignIn;
