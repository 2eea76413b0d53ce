//! Artifacts in a map.

use crate::port::{ArtifactError, ArtifactRef, Artifacts, BoxFuture};
use planwright_core::digest::Digest;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Keeps artifacts until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryArtifacts(Mutex<BTreeMap<Digest, Vec<u8>>>);

impl MemoryArtifacts {
    /// Begins without artifacts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes what is kept under `digest` behind the store's back, so that tests can see it
    /// noticed.
    pub fn tamper(&self, digest: Digest, bytes: Vec<u8>) {
        self.map().insert(digest, bytes);
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<Digest, Vec<u8>>> {
        self.0
            .lock()
            .expect("nothing panics while it holds the map")
    }
}

impl Artifacts for MemoryArtifacts {
    fn get_named(
        &self,
        digest: Digest,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        let found = self.map().get(&digest).cloned();
        Box::pin(async move {
            let bytes = found.ok_or(ArtifactError::Missing(digest))?;
            if bytes.len() as u64 > max_bytes {
                return Err(ArtifactError::too_large(&digest, max_bytes));
            }
            Ok(bytes)
        })
    }

    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        let digest = Digest::of_bytes(&bytes);
        let artifact = ArtifactRef {
            digest,
            bytes: bytes.len() as u64,
        };
        self.map().entry(digest).or_insert(bytes);
        Box::pin(async move { Ok(artifact) })
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        let found = self.map().get(&artifact.digest).cloned();
        Box::pin(async move {
            let bytes = found.ok_or(ArtifactError::Missing(artifact.digest))?;
            if Digest::of_bytes(&bytes) != artifact.digest {
                return Err(ArtifactError::Changed(artifact.digest));
            }
            Ok(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn make() -> (Arc<dyn Artifacts>, ()) {
        (Arc::new(MemoryArtifacts::new()), ())
    }

    crate::artifact_laws!(make);

    #[tokio::test]
    async fn what_was_put_comes_back_and_a_change_is_noticed() {
        let artifacts = MemoryArtifacts::new();
        let artifact = artifacts.put(b"one\0two\xff".to_vec()).await.unwrap();
        assert_eq!(artifacts.get(&artifact).await.unwrap(), b"one\0two\xff");
        artifacts.tamper(artifact.digest, b"other".to_vec());
        assert!(matches!(
            artifacts.get(&artifact).await,
            Err(ArtifactError::Changed(_))
        ));
        let absent = ArtifactRef {
            digest: Digest::of_bytes(b"never put"),
            bytes: 9,
        };
        assert!(matches!(
            artifacts.get(&absent).await,
            Err(ArtifactError::Missing(_))
        ));
    }
}
