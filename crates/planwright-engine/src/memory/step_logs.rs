//! Logs of steps that nothing keeps.

use crate::port::{BoxFuture, KeptLine, StepLogs};
use planwright_core::id::RunId;

/// Lines of logs are told live and forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStepLogs;

impl StepLogs for NoStepLogs {
    fn keep(&self, _run: &RunId, _line: KeptLine) {}

    fn read(&self, _run: &RunId) -> BoxFuture<'static, Vec<KeptLine>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}
