//! No executors, for those who have none.

use crate::port::{BoxFuture, DelegateError, Delegation, Executors};
use serde_json::Value;

/// No executor is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExecutors;

impl Executors for NoExecutors {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Result<Value, DelegateError>> {
        Box::pin(std::future::ready(Err(DelegateError::Unknown(
            delegation.executor,
        ))))
    }
}
