//! Tools and models whose use is counted against one budget, whoever uses them.

use super::spending::Spending;
use crate::port::{
    BoxFuture, Call, CallError, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, Outcome, Tools,
};
use planwright_core::model::ModelRole;
use planwright_core::tool::Catalog;
use std::sync::Arc;

/// Tools that are called as long as the budget lasts.
#[derive(Debug, Clone)]
pub struct CountedTools {
    inner: Arc<dyn Tools>,
    spending: Spending,
}

impl CountedTools {
    pub fn new(inner: Arc<dyn Tools>, spending: Spending) -> Self {
        Self { inner, spending }
    }
}

impl Tools for CountedTools {
    fn catalog(&self) -> Catalog {
        self.inner.catalog()
    }

    /// A call that the budget does not allow never leaves and is not charged.
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match self.spending.call() {
            Ok(()) => self.inner.call(call),
            Err(reason) => {
                let message = format!("Guard blocked: {reason}");
                let blocked = CallError::Failed { code: "guard_blocked".into(), message, retryable: false };
                Box::pin(std::future::ready(Err(blocked)))
            }
        }
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.inner.server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.inner.serial_writes(server)
    }
}

/// Models that are asked as long as the budget lasts.
#[derive(Debug, Clone)]
pub struct CountedModel {
    inner: Arc<dyn Model>,
    spending: Spending,
}

impl CountedModel {
    pub fn new(inner: Arc<dyn Model>, spending: Spending) -> Self {
        Self { inner, spending }
    }
}

impl Model for CountedModel {
    fn models(&self) -> Vec<ModelInfo> {
        self.inner.models()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        self.inner.resolve(role, model)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        if let Err(reason) = self.spending.ask() {
            let asked = self.inner.resolve(request.role, request.model.as_deref());
            let refused = asked.and_then(|model| {
                let (status, message) = (0, format!("Guard blocked: {reason}"));
                Err(ModelError::Refused { model: model.name, status, message })
            });
            return Box::pin(std::future::ready(refused));
        }
        let (asking, spending) = (self.inner.ask(request), self.spending.clone());
        Box::pin(async move {
            let answer = asking.await?;
            spending.used(&answer.used);
            Ok(answer)
        })
    }
}
