//! Ending what interrupted calls left running.

use super::BoxFuture;
use planwright_core::id::RunId;
use std::fmt;

/// The processes and the like that calls of a run started, and that outlived the process that made
/// the calls.
pub trait Leftovers: Send + Sync + fmt::Debug {
    /// Ends what earlier calls of a run left running, and returns once it is gone. Asked by the
    /// owner of the run before it settles what was in flight: a call must not be made again, or
    /// offered to be, while the first one goes on.
    fn end_leftovers(&self, run: &RunId) -> BoxFuture<'static, Result<(), StillRunning>>;
}

/// Something of an interrupted call goes on, or may, and could not be ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StillRunning {
    /// What goes on, and why it was not ended.
    pub message: String,
    /// What a person can do about it.
    pub advice: String,
}

impl StillRunning {
    /// A problem that may be gone with the next try.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            advice: "repeat the command".to_owned(),
        }
    }
}
