//! Large values in the database, by their content.

use super::commit::Value;
use super::rows::now;
use super::store::{PostgresStore, Shared};
use crate::files::FileArtifacts;
use crate::vault::{Cipher, SealedPlace};
use planwright_core::digest::Digest;
use planwright_engine::port::{
    ArtifactError, ArtifactFile, ArtifactRef, Artifacts, BoxFuture, StoreError,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;

/// Large values in Postgres. Files for other programs are made in a folder of this machine.
#[derive(Debug)]
pub struct PostgresArtifacts {
    store: Arc<PostgresStore>,
    files: FileArtifacts,
}

impl PostgresArtifacts {
    /// Keeps values in `store`, and files that calls are given where `files` makes them.
    pub fn new(store: Arc<PostgresStore>, files: FileArtifacts) -> Self {
        Self { store, files }
    }
}

fn failed(error: &StoreError) -> ArtifactError {
    match error {
        StoreError::Full => ArtifactError::Full,
        error => ArtifactError::Io(error.to_string()),
    }
}

/// For so long a value that was put is not put again. It was then asked for later than the database says by so much, and
/// is removed so much later.
pub(super) const RECENT: Duration = Duration::from_secs(1);
/// After so many, those that are not recent are forgotten.
const MANY: usize = 1_024;

/// The values that this process put a moment ago, and the database confirmed: plans that are approved at once use the same tools,
/// whose definitions are values.
#[derive(Debug, Default)]
pub(super) struct RecentArtifacts(Mutex<HashMap<Digest, Instant>>);

impl RecentArtifacts {
    fn has(&self, digest: &Digest) -> bool {
        self.put().get(digest).is_some_and(is_recent)
    }

    fn note(&self, digest: Digest, begun: Instant) {
        let mut put = self.put();
        if put.len() >= MANY {
            put.retain(|_, begun| is_recent(begun));
        }
        put.insert(digest, begun);
    }

    /// Forgets them, because values are being removed.
    pub(super) fn clear(&self) {
        self.put().clear();
    }

    fn put(&self) -> MutexGuard<'_, HashMap<Digest, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_recent(begun: &Instant) -> bool {
    begun.elapsed() < RECENT
}

/// Binds a value to its name, as in a folder of files.
pub(super) fn place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "artifacts",
        column: "content",
        row,
    }
}

/// The name of a value in the table. A digest would confirm a guess of the content, so a sealed one is named by the key.
pub(super) fn artifact_name(cipher: &Cipher, digest: &Digest) -> Digest {
    cipher.hidden_digest(b"artifact", digest)
}

impl Shared {
    pub(super) fn artifact_name(&self, digest: &Digest) -> Digest {
        artifact_name(&self.cipher, digest)
    }

    async fn put_artifact(&self, bytes: &[u8]) -> Result<ArtifactRef, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let artifact = ArtifactRef {
            digest,
            bytes: bytes.len() as u64,
        };
        if self.recent_artifacts.has(&digest) {
            return Ok(artifact);
        }
        let begun = Instant::now();
        let name = self.artifact_name(&digest);
        let sealed = self.cipher.seal(place(&[name.hex().as_bytes()]), bytes)?;
        let sealed = &*sealed;
        let name = &name.as_bytes()[..];
        let now = now().as_millis();
        let values: [(Value<'_>, Type); 3] = [
            (&name, Type::BYTEA),
            (&now, Type::INT8),
            (&sealed, Type::BYTEA),
        ];
        // A value that is there already is not sent.
        let sql = "UPDATE planwright.artifacts SET asked_at = greatest(asked_at, $2) WHERE digest = $1 RETURNING 1";
        if self.change(sql, &values[..2]).await?.is_empty() {
            let sql = "INSERT INTO planwright.artifacts AS a (digest, asked_at, bytes) VALUES ($1, $2, $3) \
                       ON CONFLICT (digest) DO UPDATE SET asked_at = greatest(a.asked_at, $2)";
            self.change(sql, &values).await?;
        }
        self.recent_artifacts.note(digest, begun);
        Ok(artifact)
    }

    async fn get_artifact(&self, digest: Digest, most: u64) -> Result<Vec<u8>, ArtifactError> {
        let kept_as = self.artifact_name(&digest);
        let name = &kept_as.as_bytes()[..];
        let overhead = match self.cipher.is_sealed() {
            true => Cipher::OVERHEAD as u64,
            false => 0,
        };
        let values: [(Value<'_>, Type); 1] = [(&name, Type::BYTEA)];
        let sql = "SELECT octet_length(bytes)::bigint FROM planwright.artifacts WHERE digest = $1";
        let row = self
            .row(sql, &values)
            .await
            .map_err(|error| failed(&error))?;
        let row = row.ok_or(ArtifactError::Missing(digest))?;
        if super::rows::unsigned(row.get(0)) > most.saturating_add(overhead) {
            return Err(ArtifactError::too_large(&digest, most));
        }
        let sql = "SELECT bytes FROM planwright.artifacts WHERE digest = $1";
        let row = self
            .row(sql, &values)
            .await
            .map_err(|error| failed(&error))?;
        let row = row.ok_or(ArtifactError::Missing(digest))?;
        let bytes = self
            .cipher
            .open(place(&[kept_as.hex().as_bytes()]), row.get(0))
            .map_err(|_| ArtifactError::Changed(digest))?;
        if Digest::of_bytes(&bytes) != digest {
            return Err(ArtifactError::Changed(digest));
        }
        Ok(bytes)
    }
}

impl PostgresStore {
    async fn get_bytes(&self, digest: Digest, most: u64) -> Result<Vec<u8>, ArtifactError> {
        let got = self.on(move |shared| async move {
            Ok::<_, StoreError>(shared.get_artifact(digest, most).await)
        });
        got.await.map_err(|error| failed(&error))?
    }
}

impl Artifacts for PostgresArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        Box::pin(async move {
            let put = self
                .store
                .on(move |shared| async move { shared.put_artifact(&bytes).await });
            put.await.map_err(|error| failed(&error))
        })
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        Box::pin(self.store.get_bytes(artifact.digest, u64::MAX))
    }

    fn get_named(
        &self,
        digest: Digest,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        Box::pin(self.store.get_bytes(digest, max_bytes))
    }

    fn as_file(
        &self,
        bytes: Vec<u8>,
        name: String,
    ) -> BoxFuture<'_, Result<ArtifactFile, ArtifactError>> {
        self.files.as_file(bytes, name)
    }
}
