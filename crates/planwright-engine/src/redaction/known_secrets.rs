//! What this process knows to be secret, shared by everything that keeps or shows what comes from
//! outside.

use crate::port::{ArtifactError, ArtifactFile, ArtifactRef, Artifacts, BoxFuture};
use planwright_core::digest::Digest;
use planwright_core::secret::{Redactor, SecretName, SecretText};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Grows with every secret that is used, and never forgets one: an old value may still come back.
/// Only of the tokens of sign-ins, which are renewed again and again, the oldest are forgotten. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Redaction(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// What looks for all of them; none if another one was learnt since it was made. Taken after
    /// `known` by those who need both.
    redactor: RwLock<Option<Arc<Redactor>>>,
}

type NamedSecret = (SecretName, SecretText);

#[derive(Default)]
struct Known {
    secrets: Vec<NamedSecret>,
    /// The one that was used last is the last one.
    tokens: VecDeque<NamedSecret>,
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

    /// Most tokens of sign-ins that one process looks for.
    pub const MAX_TOKENS: usize = 256;

    /// From here on this text is masked wherever it comes back. A secret that cannot be looked for
    /// must not be sent.
    pub fn learn(&self, name: &SecretName, secret: &SecretText) -> Result<(), TooManySecrets> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known
            .secrets
            .iter()
            .any(|known| is_same(known, name, secret))
        {
            return Ok(());
        }
        if known.secrets.len() == Self::MAX_SECRETS {
            return Err(TooManySecrets);
        }
        known.secrets.push((name.clone(), secret.clone()));
        self.outdate();
        Ok(())
    }

    /// From here on this token is masked wherever it comes back. It has to be learnt each time before
    /// it is sent: if there are more than [`Self::MAX_TOKENS`], those that were not sent for the
    /// longest time are forgotten.
    pub fn learn_token(&self, name: &SecretName, token: &SecretText) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = known.tokens.iter();
        if let Some(place) = tokens.position(|known| is_same(known, name, token)) {
            let used = known.tokens.remove(place);
            known.tokens.extend(used);
            return;
        }
        if known.tokens.len() == Self::MAX_TOKENS {
            known.tokens.pop_front();
        }
        known.tokens.push_back((name.clone(), token.clone()));
        self.outdate();
    }

    /// Has what looks for secrets made anew, by the one who needs it next.
    fn outdate(&self) {
        let mut redactor = self
            .0
            .redactor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *redactor = None;
    }

    /// Returns the redactor of everything that is known to be secret now.
    pub fn redactor(&self) -> Arc<Redactor> {
        let made = self
            .0
            .redactor
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(redactor) = &*made {
            return Arc::clone(redactor);
        }
        drop(made);
        // Nothing more is learnt until it is there.
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let all = known.secrets.iter().chain(&known.tokens);
        let redactor = Arc::new(Redactor::new(all.map(|(name, secret)| (name, secret))));
        let mut made = self
            .0
            .redactor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *made = Some(Arc::clone(&redactor));
        redactor
    }
}

fn is_same(known: &NamedSecret, name: &SecretName, secret: &SecretText) -> bool {
    known.0 == *name && known.1.expose() == secret.expose()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, text: String) -> NamedSecret {
        let name = SecretName::new(name).unwrap();
        (name, SecretText::new(text).unwrap())
    }

    fn is_masked(redaction: &Redaction, (_, text): &NamedSecret) -> bool {
        let said = text.expose().as_bytes().to_vec();
        redaction.redactor().bytes(said.clone()) != said
    }

    #[test]
    fn renewed_tokens_take_no_place_from_secrets_and_the_one_in_use_is_not_forgotten() {
        let redaction = Redaction::default();
        let password = named("PASSWORD", "correct-horse-battery".to_owned());
        redaction.learn(&password.0, &password.1).unwrap();
        let token = |n: usize| named("example-Authorization", format!("token-of-a-person-{n}"));
        let in_use = token(0);
        for n in 0..Redaction::MAX_TOKENS + 10 {
            let token = token(n);
            redaction.learn_token(&token.0, &token.1);
            redaction.learn_token(&in_use.0, &in_use.1);
        }
        assert!(is_masked(&redaction, &password));
        assert!(is_masked(&redaction, &in_use));
        assert!(is_masked(&redaction, &token(Redaction::MAX_TOKENS + 9)));
        assert!(!is_masked(&redaction, &token(1)));
        // Secrets still have all their places.
        for n in 1..Redaction::MAX_SECRETS {
            let secret = named("OTHER", format!("another-secret-{n}"));
            redaction.learn(&secret.0, &secret.1).unwrap();
        }
        let more = named("OTHER", "one-secret-too-many".to_owned());
        assert_eq!(redaction.learn(&more.0, &more.1), Err(TooManySecrets));
    }
}
