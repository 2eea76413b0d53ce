//! No executors, for those who have none.

use crate::port::{BoxFuture, DelegateError, Delegated, Delegation, Executors};

/// No executor is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExecutors;

impl Executors for NoExecutors {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Delegated> {
        let unknown = Err(DelegateError::Unknown(delegation.executor));
        Box::pin(std::future::ready(unknown.into()))
    }
}
