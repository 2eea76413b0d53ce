//! A place about which nothing is known.

use crate::port::{BoxFuture, Surroundings};
use planwright_core::planning::WorkspaceSnapshot;

/// Nothing to see.
#[derive(Debug, Clone, Default)]
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn look(&self) -> BoxFuture<'static, WorkspaceSnapshot> {
        Box::pin(std::future::ready(WorkspaceSnapshot::default()))
    }
}
