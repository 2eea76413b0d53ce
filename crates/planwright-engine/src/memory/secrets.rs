//! Secrets in a map.

use crate::port::{BoxFuture, SecretError, Secrets};
use planwright_core::secret::{SecretName, SecretText};
use std::collections::BTreeMap;

/// Secrets that a program gives by itself. Empty, it has none.
#[derive(Debug, Default)]
pub struct MemorySecrets(BTreeMap<SecretName, SecretText>);

impl MemorySecrets {
    /// Holds these secrets.
    pub fn new(secrets: impl IntoIterator<Item = (SecretName, SecretText)>) -> Self {
        Self(secrets.into_iter().collect())
    }
}

impl Secrets for MemorySecrets {
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>> {
        let missing = || SecretError::Missing {
            name: name.clone(),
            place: "this program has none of this name".into(),
        };
        Box::pin(std::future::ready(
            self.0.get(name).cloned().ok_or_else(missing),
        ))
    }

    fn names(&self) -> Vec<SecretName> {
        self.0.keys().cloned().collect()
    }
}
