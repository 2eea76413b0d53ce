//! The tokens of an answer that did not come to its end: the provider sent no count, and wants to
//! be paid for them all the same. So they are estimated, and a person who interrupts an answer has
//! still spent something.

use crate::port::{Model, ModelError, ModelRequest};
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use std::sync::Arc;

/// A question whose answer has not ended.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    model: Arc<dyn Model>,
    role: ModelRole,
    chosen: Option<String>,
    asked: TokenUsage,
}

impl Unfinished {
    pub(super) fn new(model: &Arc<dyn Model>, request: &ModelRequest) -> Self {
        let role = request.role;
        let chosen = request.model.clone();
        Self {
            model: Arc::clone(model),
            role,
            chosen,
            asked: request.estimate(0),
        }
    }

    /// What it took, if it ends after so many bytes. Nothing if there is no such model.
    pub(super) fn estimate_use(&self, said: usize) -> Option<ModelUse> {
        let usage = TokenUsage {
            output: TokenUsage::estimate(said),
            ..self.asked
        };
        self.model
            .price_use(self.role, self.chosen.as_deref(), usage)
            .ok()
    }

    /// What it took, if it ends with an error after so many bytes. A provider that refused, or was
    /// not there, did nothing.
    pub(super) fn used_until(&self, error: &ModelError, said: usize) -> Option<ModelUse> {
        let at_work = match error {
            ModelError::TimedOut { .. } | ModelError::Unreadable { .. } | ModelError::Cancelled => {
                true
            }
            ModelError::NotConfigured { .. }
            | ModelError::Unknown { .. }
            | ModelError::NoKey { .. }
            | ModelError::Refused { .. }
            | ModelError::Unavailable { .. } => said > 0,
        };
        if at_work {
            self.estimate_use(said)
        } else {
            None
        }
    }
}
