//! A worker: a process that carries out single steps of runs which other processes own. It claims an offer in the store,
//! makes the call with its own tools and secrets, and writes the answer there.

mod call_talk;
mod carry_out;
mod claim_tenure;
mod overseer;
mod take;
mod tools;

pub use overseer::{Workers, WorkersError};
pub use take::{Worker, WorkerError, WorkerOptions};
pub(crate) use tools::follow_worker_tools;
