//! What narrows a plan: gates, constraints, checks, limits, undos. It survives that a step is
//! written anew, and a version that has less of it says so.

mod gate;
mod keep;
mod loss;
mod plan_loss;

pub(crate) use loss::names_safeguards;
pub use loss::{LossKind, SafeguardLoss};
