//! Calls that leave nothing behind.

use crate::port::{BoxFuture, Leftovers, StillRunning};
use planwright_core::id::RunId;

/// Nothing outlives this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLeftovers;

impl Leftovers for NoLeftovers {
    fn end_leftovers(&self, _run: &RunId) -> BoxFuture<'static, Result<(), StillRunning>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
