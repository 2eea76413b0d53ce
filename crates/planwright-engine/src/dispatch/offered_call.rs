//! A call on its way to a worker and its outcome on the way back, as JSON. No value of a secret is in either.

use super::placed::Place;
use crate::context::Pauses;
use crate::journal::stored_value::{keep_value, too_deep};
use crate::port::{ArtifactRef, Artifacts, CallError, Outcome};
use planwright_core::id::{PlanId, RunId};
use planwright_core::principal::Principal;
use planwright_core::run::{Answered, Asked, CallEffect, StepErrorCode, StoredValue};
use planwright_core::secret::SecretName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A larger answer is stored beside the offer, by its content.
const MAX_INLINE_ANSWER: usize = 64 << 10;

/// What a worker needs to make a call, besides what it has itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferedCall {
    pub(crate) plan: PlanId,
    pub(crate) top_run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) acts_for: Option<Principal>,
    /// With a mark in place of each secret.
    pub(crate) args: Map<String, Value>,
    /// The names of the secrets by their marks. A mark is random: no text that a tool returned can be one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) secrets: BTreeMap<String, String>,
    /// Where artifacts are put into the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answered: Vec<Answered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// The owner passes on what the tool asks in the middle of the call, and holds it meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) holds_questions: bool,
}

impl OfferedCall {
    /// The arguments as they were reviewed, with references in place of secrets.
    pub(crate) fn shown_args(&self) -> Map<String, Value> {
        self.args_with(|name| Some(format!("${{secret.{name}}}")))
            .unwrap_or_default()
    }

    /// The arguments with a text in place of each secret; `None` if there is no text for one.
    pub(crate) fn args_with(
        &self,
        text: impl Fn(&str) -> Option<String>,
    ) -> Option<Map<String, Value>> {
        let mut args = Value::Object(self.args.clone());
        for (mark, name) in &self.secrets {
            replace(&mut args, mark, &text(name)?);
        }
        match args {
            Value::Object(args) => Some(args),
            _ => None,
        }
    }

    /// The secrets that the call needs; `None` if a name is none.
    pub(crate) fn secret_names(&self) -> Option<Vec<SecretName>> {
        self.secrets
            .values()
            .map(|name| SecretName::new(name))
            .collect()
    }
}

fn replace(value: &mut Value, mark: &str, text: &str) {
    match value {
        Value::String(string) if string.contains(mark) => *string = string.replace(mark, text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, mark, text)),
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| replace(field, mark, text));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What came of a call, as a worker writes it down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum WorkerAnswer {
    Value {
        value: Value,
    },
    Stored {
        artifact: ArtifactRef,
    },
    Failed {
        code: String,
        message: String,
        retryable: bool,
        effect: CallEffect,
    },
    Unavailable {
        message: String,
    },
    Cancelled,
    Lost {
        reason: String,
    },
    InputRequired {
        asked: Box<Asked>,
    },
    AskedMidway {
        asked: Box<Asked>,
    },
}

/// Writes down a masked outcome. A large value is stored first.
pub(crate) async fn encode_answer(
    artifacts: &dyn Artifacts,
    outcome: Outcome,
    patience: Duration,
    unwanted: &CancellationToken,
) -> Vec<u8> {
    let outcome = match outcome {
        Ok(value) if !StoredValue::can_keep(&value) => {
            Err(CallError::unusable(StepErrorCode::ValueTooDeep, too_deep()))
        }
        outcome => outcome,
    };
    let answer = match outcome {
        Ok(value) => {
            let value = Arc::new(value);
            let pauses = Pauses::within(patience);
            match keep_value(artifacts, &value, MAX_INLINE_ANSWER, pauses, unwanted).await {
                Ok((StoredValue::Inline(_), _)) => WorkerAnswer::Value {
                    value: Arc::unwrap_or_clone(value),
                },
                Ok((StoredValue::Artifact(artifact), _)) => WorkerAnswer::Stored { artifact },
                // The call happened: it must not count as failed.
                Err(error) => WorkerAnswer::Lost {
                    reason: format!("the result could not be stored: {error}"),
                },
            }
        }
        Err(CallError::Failed {
            code,
            message,
            retryable,
            effect,
        }) => WorkerAnswer::Failed {
            code: code.as_str().to_owned(),
            message,
            retryable,
            effect,
        },
        Err(CallError::Unavailable(message)) => WorkerAnswer::Unavailable { message },
        Err(CallError::Cancelled) => WorkerAnswer::Cancelled,
        Err(CallError::Lost(reason)) => WorkerAnswer::Lost { reason },
        Err(CallError::InputRequired(asked)) => WorkerAnswer::InputRequired { asked },
        Err(CallError::AskedMidway(asked)) => WorkerAnswer::AskedMidway { asked },
    };
    serde_json::to_vec(&answer).expect("an answer is JSON")
}

/// Reads what a worker wrote down. What cannot be read is an outcome that is not known.
pub(crate) async fn decode_answer(
    artifacts: &dyn Artifacts,
    bytes: &[u8],
    patience: Duration,
) -> Outcome {
    let unreadable = |error: String| {
        CallError::Lost(format!("the answer of the worker cannot be read: {error}"))
    };
    let answer: WorkerAnswer =
        serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    match answer {
        WorkerAnswer::Value { value } => Ok(value),
        WorkerAnswer::Stored { artifact } => {
            let mut pauses = Pauses::within(patience);
            let bytes = loop {
                match artifacts.get(&artifact).await {
                    Ok(bytes) => break bytes,
                    Err(error) => match pauses.next() {
                        Some(pause) => tokio::time::sleep(pause).await,
                        None => return Err(unreadable(error.to_string())),
                    },
                }
            };
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))
        }
        WorkerAnswer::Failed {
            code,
            message,
            retryable,
            effect,
        } => Err(CallError::Failed {
            code: code.into(),
            message,
            retryable,
            effect,
        }),
        WorkerAnswer::Unavailable { message } => Err(CallError::Unavailable(message)),
        WorkerAnswer::Cancelled => Err(CallError::Cancelled),
        WorkerAnswer::Lost { reason } => Err(CallError::Lost(reason)),
        WorkerAnswer::InputRequired { asked } => Err(CallError::InputRequired(asked)),
        WorkerAnswer::AskedMidway { asked } => Err(CallError::AskedMidway(asked)),
    }
}
