//! What people are told when no model answers, the same wherever one is asked.

use crate::exit::{Exit, Failure};
use planwright_core::text::nearest_names;
use planwright_engine::port::ModelError;

/// What to do when no model is configured.
pub(crate) const CONFIGURE_MODEL: &str =
    "set PLANWRIGHT_MODEL=provider/name, or [models] default in planwright.toml (docs/models.md)";

/// What can be done about it.
pub(crate) fn model_hint(error: &ModelError) -> Option<String> {
    match error {
        ModelError::NotConfigured { .. } => Some(CONFIGURE_MODEL.to_owned()),
        ModelError::Unknown { name, known } => {
            let close = nearest_names(name, known.iter().cloned());
            let close = if close.is_empty() {
                known.clone()
            } else {
                close
            };
            Some(match close.as_slice() {
                [] => CONFIGURE_MODEL.to_owned(),
                names => format!(
                    "configured: {}; planwright models lists all",
                    names.join(", ")
                ),
            })
        }
        ModelError::Refused { .. }
        | ModelError::Unavailable { .. }
        | ModelError::TimedOut { .. }
        | ModelError::Unreadable { .. } => {
            Some("planwright models check says which models answer, and how".to_owned())
        }
        // It says itself what is missing.
        ModelError::NoKey { .. } | ModelError::Cancelled => None,
    }
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        let failure = Self::new(Exit::Model, error.to_string());
        match model_hint(error) {
            Some(advice) => failure.hint(advice),
            None => failure,
        }
    }
}
