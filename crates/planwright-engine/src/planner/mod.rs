//! Plans that models write: prompt, answer, validation, and rounds of repair until the plan is
//! valid or the rounds are over. The rules of it all are pure and in `planwright_core::planning`.
//!
//! A plan that a model wrote is a proposal like any other. Nothing here approves or runs anything,
//! and a model that fails leaves nothing behind.

mod check;
mod create;
mod error;
mod explore;
mod looking;
mod options;
mod regenerate;
mod replan;
mod rounds;

pub use create::{CreateOrder, Planner, WrittenPlan};
pub use error::{CreateError, FailedPlanning};
pub(crate) use looking::{LookError, Looking};
pub use options::{PlannerEvent, PlannerOptions, PlannerSink};
pub use regenerate::{RegenerateOrder, Regenerated};
pub use replan::Replanned;
