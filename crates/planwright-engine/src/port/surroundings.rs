//! Looking around where plans will work.

use super::BoxFuture;
use planwright_core::planning::WorkspaceSnapshot;
use std::fmt;

/// The place in which plans work, as a planner is told about it.
pub trait Surroundings: Send + Sync + fmt::Debug {
    /// Looks around, within limits of time and size of its own. What cannot be seen is left out.
    fn look(&self) -> BoxFuture<'static, WorkspaceSnapshot>;
}
