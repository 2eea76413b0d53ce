//! A model whose answers come to no end, for tests of what is counted then.

use crate::memory::ScriptedModel;
use crate::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest};
use planwright_core::model::ModelRole;

/// Says half of something and goes on for ever, or gives up.
#[derive(Debug)]
pub(super) struct Endless {
    pub(super) says: &'static str,
    pub(super) gives_up: Option<ModelError>,
}

impl Model for Endless {
    fn models(&self) -> Vec<ModelInfo> {
        ScriptedModel::default().models()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        ScriptedModel::default().resolve(role, model)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        request.told.tell(self.says);
        match self.gives_up.clone() {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => Box::pin(std::future::pending()),
        }
    }
}
