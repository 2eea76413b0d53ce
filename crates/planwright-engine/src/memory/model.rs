//! Models for those who have none, and for tests.

use crate::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest};
use planwright_core::model::{ModelRole, ModelUse, TokenUsage, WantedCall};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// No model is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

impl Model for NoModel {
    fn models(&self) -> Vec<ModelInfo> {
        Vec::new()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        Err(match model {
            Some(name) => ModelError::Unknown {
                name: name.to_owned(),
                known: Vec::new(),
            },
            None => ModelError::NotConfigured { role },
        })
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let answer = self
            .resolve(request.role, request.model.as_deref())
            .and(Err(ModelError::Cancelled));
        Box::pin(std::future::ready(answer))
    }
}

/// A model that answers from a script, in order, and remembers what it was asked. A script that is
/// used up is a model that is not available.
#[derive(Clone, Default)]
pub struct ScriptedModel {
    script: Arc<Mutex<VecDeque<Result<ModelAnswer, ModelError>>>>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedModel")
    }
}

impl ScriptedModel {
    /// The name it goes by.
    pub const NAME: &'static str = "scripted/model";

    /// Answers with a text next.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        self.then(Ok(answer(text.into(), Vec::new())))
    }

    /// Answers with calls next.
    #[must_use]
    pub fn wants(self, calls: Vec<WantedCall>) -> Self {
        self.then(Ok(answer(String::new(), calls)))
    }

    /// Appends an answer or a failure to the script.
    #[must_use]
    pub fn then(self, next: Result<ModelAnswer, ModelError>) -> Self {
        self.script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(next);
        self
    }

    /// Everything it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn answer(text: String, calls: Vec<WantedCall>) -> ModelAnswer {
    let usage = TokenUsage {
        input: 10,
        output: 5,
        cached: 0,
        estimated: false,
    };
    let used = ModelUse {
        role: ModelRole::Chat,
        model: ScriptedModel::NAME.to_owned(),
        usage,
        cost: None,
    };
    ModelAnswer {
        text,
        calls,
        used,
        cut: false,
    }
}

impl Model for ScriptedModel {
    fn models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo {
            name: Self::NAME.to_owned(),
            roles: ModelRole::ALL.to_vec(),
            endpoint: "memory".to_owned(),
            key: None,
            context_tokens: None,
        }]
    }

    fn resolve(&self, _: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        let mut models = self.models();
        match model.filter(|&name| name != Self::NAME) {
            Some(name) => Err(ModelError::Unknown {
                name: name.to_owned(),
                known: vec![Self::NAME.to_owned()],
            }),
            None => Ok(models.remove(0)),
        }
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let next = self
            .script
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let answered = match next {
            Some(Ok(mut answer)) => {
                answer.used.role = request.role;
                request.told.tell(&answer.text);
                Ok(answer)
            }
            Some(Err(error)) => Err(error),
            None => Err(ModelError::Unavailable {
                model: Self::NAME.to_owned(),
                message: "the script is used up".to_owned(),
            }),
        };
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        Box::pin(std::future::ready(answered))
    }
}
