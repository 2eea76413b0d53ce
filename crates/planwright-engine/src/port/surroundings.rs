//! Looking around where plans will work.

use super::BoxFuture;
use planwright_core::briefing::CurrentFile;
use planwright_core::planning::WorkspaceSnapshot;
use std::collections::BTreeMap;
use std::fmt;

/// The place in which plans work, as a planner is told about it.
pub trait Surroundings: Send + Sync + fmt::Debug {
    /// Looks around, within limits of time and size of its own. What cannot be seen is left out.
    fn look(&self) -> BoxFuture<'static, WorkspaceSnapshot>;

    /// Reads the files that calls would write, as they are now, so that an approver can compare
    /// them. A path about which nothing can be said is left out.
    fn current_files(
        &self,
        _paths: Vec<String>,
    ) -> BoxFuture<'static, BTreeMap<String, CurrentFile>> {
        Box::pin(std::future::ready(BTreeMap::new()))
    }
}
