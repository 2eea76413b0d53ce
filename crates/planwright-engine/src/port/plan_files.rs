//! The files of a plan, for people and other programs.

use super::BoxFuture;
use planwright_core::id::PlanId;
use std::fmt;

/// Keeps the files of plans in step with the journal. They are never read back as the truth, so a
/// failure is told and never changes an outcome.
pub trait PlanFiles: Send + Sync + fmt::Debug {
    /// Writes the files of this plan as the journal has them now, or removes them if the plan was
    /// deleted.
    fn write<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<(), String>>;
}
