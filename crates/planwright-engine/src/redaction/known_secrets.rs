//! What this process knows to be secret, shared by everything that keeps or shows what comes from
//! outside.

use crate::port::{ArtifactError, ArtifactFile, ArtifactRef, Artifacts, BoxFuture};
use planwright_core::digest::Digest;
use planwright_core::secret::{Redactor, SecretName, SecretText};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Grows with every secret that is used, and never forgets one: an old value may still come back.
/// Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Redaction(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Vec<(SecretName, SecretText)>>,
    redactor: RwLock<Arc<Redactor>>,
}

/// A process may know this many values of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process has used {} different secrets already, and can look for no more",
    Redaction::MAX_SECRETS
)]
pub struct TooManySecrets;

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.redactor().fmt(f)
    }
}

impl Redaction {
    /// Most secrets that one process looks for.
    pub const MAX_SECRETS: usize = 64;

    /// From here on this text is masked wherever it comes back. A secret that cannot be looked for
    /// must not be sent.
    pub fn learn(&self, name: &SecretName, secret: &SecretText) -> Result<(), TooManySecrets> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known
            .iter()
            .any(|(other, text)| other == name && text.expose() == secret.expose())
        {
            return Ok(());
        }
        if known.len() == Self::MAX_SECRETS {
            return Err(TooManySecrets);
        }
        known.push((name.clone(), secret.clone()));
        let redactor = Arc::new(Redactor::new(
            known.iter().map(|(name, secret)| (name, secret)),
        ));
        *self
            .0
            .redactor
            .write()
            .unwrap_or_else(PoisonError::into_inner) = redactor;
        Ok(())
    }

    /// What masks everything that is known to be secret now.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(
            &self
                .0
                .redactor
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// Artifacts of tools: masked before they are stored, so that their digests are those of what is
/// kept.
#[derive(Debug)]
pub struct RedactedArtifacts {
    inner: Arc<dyn Artifacts>,
    redaction: Redaction,
}

impl RedactedArtifacts {
    /// Masks secrets in what is written to these artifacts.
    pub fn new(inner: Arc<dyn Artifacts>, redaction: Redaction) -> Self {
        Self { inner, redaction }
    }
}

impl Artifacts for RedactedArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        let redactor = self.redaction.redactor();
        if redactor.is_empty() {
            return self.inner.put(bytes);
        }
        Box::pin(async move {
            let masked = tokio::task::spawn_blocking(move || redactor.bytes(bytes)).await;
            // What could not be searched is not kept.
            let masked = masked
                .map_err(|_| ArtifactError::Io("it could not be searched for secrets".into()))?;
            self.inner.put(masked).await
        })
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        self.inner.get(artifact)
    }

    fn get_named(
        &self,
        digest: Digest,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        self.inner.get_named(digest, max_bytes)
    }

    fn as_file(
        &self,
        bytes: Vec<u8>,
        name: String,
    ) -> BoxFuture<'_, Result<ArtifactFile, ArtifactError>> {
        self.inner.as_file(bytes, name)
    }
}
