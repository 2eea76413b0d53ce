//! Failures of commands that no model answers, the same wherever one is asked.

use crate::exit::Failure;
use crate::terminal::next_step::format_next_step;
use planwright_core::error::ClassifiedError as _;
use planwright_engine::port::ModelError;

/// The next step when no model is configured.
pub(crate) const CONFIGURE_MODEL: &str = "set PLANWRIGHT_MODEL=provider/name, or [models] default in planwright.toml (planwright explain models)";

/// Formats the next step for a model that gave no answer.
pub(crate) fn model_hint(error: &ModelError) -> Option<String> {
    error.hint().as_ref().and_then(format_next_step)
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        Self::from_classified(error)
    }
}
