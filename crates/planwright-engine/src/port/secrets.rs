//! Where the values of secrets come from.

use super::BoxFuture;
use planwright_core::secret::{SecretName, SecretText, SecretTextError};
use planwright_core::tool::ToolName;
use std::fmt;

/// Why a secret cannot be used. Nothing here repeats its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("the secret `{name}` is not there: {place}")]
    Missing { name: SecretName, place: String },
    #[error("the secret `{name}` cannot be read: {reason}")]
    Unreadable { name: SecretName, reason: String },
    #[error("the secret `{name}` cannot be used: {problem}")]
    Unusable {
        name: SecretName,
        problem: SecretTextError,
    },
}

/// The values of secrets. They are asked for each time a call needs one, so that a change is seen.
pub trait Secrets: Send + Sync + fmt::Debug {
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>>;

    /// Returns whether the operator lets this tool have the secret.
    fn allows(&self, _name: &SecretName, _tool: &ToolName) -> bool {
        true
    }
}
