//! Keeping what servers log during calls, for those who look later.

use super::{BoxFuture, LoggedLine};
use planwright_core::id::{RunId, StepId};
use planwright_core::time::Timestamp;
use std::fmt;

/// A line that the server of a step's call logged. Untrusted, and no part of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLine {
    /// When it came.
    pub at: Timestamp,
    /// The step whose call it came during.
    pub step: StepId,
    /// The line of the server.
    pub line: LoggedLine,
}

/// The lines that servers logged in each run, the latest of them within a limit.
pub trait StepLogs: Send + Sync + fmt::Debug {
    /// Keeps a line. One that cannot be kept is lost: that never harms the call.
    fn keep(&self, run: &RunId, line: KeptLine);

    /// Reads the lines of a run in their order. What cannot be read is left out.
    fn read(&self, run: &RunId) -> BoxFuture<'static, Vec<KeptLine>>;
}
