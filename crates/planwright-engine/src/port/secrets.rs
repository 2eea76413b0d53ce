//! Where the values of secrets come from.

use super::BoxFuture;
use planwright_core::secret::{SecretName, SecretText, SecretTextError};
use planwright_core::tool::ToolName;
use std::fmt;

/// Why a secret cannot be used. Nothing here repeats its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The place that is configured for it holds no value.
    #[error("secret `{name}` not found: {place}")]
    Missing {
        /// Name of the secret.
        name: SecretName,
        /// The place that was looked at.
        place: String,
    },
    /// The place exists and cannot be read.
    #[error("the secret `{name}` cannot be read: {reason}")]
    Unreadable {
        /// Name of the secret.
        name: SecretName,
        /// The failure.
        reason: String,
    },
    /// The value is not one that could be masked.
    #[error("the secret `{name}` cannot be used: {problem}")]
    Unusable {
        /// Name of the secret.
        name: SecretName,
        /// The rule that the value breaks.
        problem: SecretTextError,
    },
}

/// The values of secrets. They are asked for each time a call needs one, so that a change is seen.
pub trait Secrets: Send + Sync + fmt::Debug {
    /// Reads the value of a secret.
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>>;

    /// Returns whether the operator lets this tool have the secret.
    fn allows(&self, _name: &SecretName, _tool: &ToolName) -> bool {
        true
    }

    /// Lists the names that are known, for a planner to use.
    fn names(&self) -> Vec<SecretName> {
        Vec::new()
    }

    /// Returns the hosts to which the operator lets the secret go; `None` for every host.
    fn hosts(&self, _name: &SecretName) -> Option<Vec<String>> {
        None
    }
}
