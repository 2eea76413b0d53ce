//! Reading secrets, so that they are masked from then on.

use crate::port::{SecretError, Secrets};
use crate::redaction::known_secrets::{Redaction, TooManySecrets};
use planwright_core::secret::{SecretName, SecretText};
use std::time::Duration;

/// The time a source may take. A run, or a person who decides, waits for it.
const PATIENCE: Duration = Duration::from_secs(8);

/// Why a secret can neither be used nor masked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadSecretError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    TooMany(#[from] TooManySecrets),
}

/// Reads a secret, which is masked from then on wherever it comes back.
pub(crate) async fn read_secret(
    secrets: &dyn Secrets,
    redaction: &Redaction,
    name: &SecretName,
) -> Result<SecretText, ReadSecretError> {
    let late = || SecretError::Unreadable {
        name: name.clone(),
        reason: format!("no answer within {} s", PATIENCE.as_secs()),
    };
    let read = tokio::time::timeout(PATIENCE, secrets.get(name)).await;
    let secret = read.unwrap_or_else(|_| Err(late()))?;
    redaction.learn(name, &secret)?;
    Ok(secret)
}

/// Reads all of these secrets. One that cannot be read right now cannot be masked either; it stops
/// no run and no person's decision, because refusing those would let a locked keyring freeze every
/// plan that names it.
pub(crate) async fn learn_secrets(
    secrets: &dyn Secrets,
    redaction: &Redaction,
    names: impl IntoIterator<Item = SecretName>,
) {
    // At once: one silent source costs its patience, and not one for each name.
    let reading = names.into_iter().map(|name| async move {
        if let Err(error) = read_secret(secrets, redaction, &name).await {
            tracing::debug!(secret = %name, %error, "a secret is not known yet");
        }
    });
    futures::future::join_all(reading).await;
}
