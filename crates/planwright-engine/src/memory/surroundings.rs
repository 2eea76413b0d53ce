//! A place about which nothing is known.

use crate::port::{BoxFuture, Surroundings};
use planwright_core::planning::Snapshot;

/// Nothing to see.
#[derive(Debug, Clone, Default)]
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn look(&self) -> BoxFuture<'static, Snapshot> {
        Box::pin(std::future::ready(Snapshot::default()))
    }
}
