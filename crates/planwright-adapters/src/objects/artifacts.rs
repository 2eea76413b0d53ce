//! Values as objects that are named by their digest.

use super::fault::{describe, is_missing};
use super::location::{ObjectsLocation, ObjectsLocationError};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStoreExt as _, PutPayload, RetryConfig,
};
use planwright_core::digest::Digest;
use planwright_engine::port::{ArtifactError, ArtifactFile, ArtifactRef, Artifacts, BoxFuture};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The time a request is made again while the store does not answer. What waits for a value waits so long.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// The time `doctor` waits.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two pieces of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Of one try, with everything that it carries.
const TRY_TIMEOUT: Duration = Duration::from_mins(5);
const MAX_TRIES: usize = 1_000;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// As large as a value in a database may be.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Values that are on their way at once: each is in memory as a whole.
const MAX_TRANSFERS: usize = 16;
/// What `doctor` writes and reads.
const PROBE: &[u8] = b"planwright";

/// Large values in an object store. Values from the time before are still read from the store's own place.
#[derive(Debug)]
pub struct ObjectArtifacts {
    client: AmazonS3,
    prefix: Path,
    place: String,
    transfers: Semaphore,
    own: Arc<dyn Artifacts>,
}

impl ObjectArtifacts {
    /// Keeps new values there. Nothing is asked yet. Files for calls are made where `own` makes them.
    pub fn new(
        location: &ObjectsLocation,
        own: Arc<dyn Artifacts>,
        patience: Duration,
    ) -> Result<Self, ObjectsLocationError> {
        crate::tls::install_provider();
        let retries = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: FIRST_PAUSE,
                max_backoff: LONGEST_PAUSE,
                base: 2.0,
            },
            // The time ends them.
            max_retries: MAX_TRIES,
            retry_timeout: patience,
        };
        let options = ClientOptions::new()
            .with_allow_http(location.allows_http)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_read_timeout(READ_TIMEOUT)
            .with_timeout(TRY_TIMEOUT);
        let builder = location.builder.clone();
        let client = builder
            .with_client_options(options)
            .with_retry(retries)
            .build()
            .map_err(|error| ObjectsLocationError::Invalid(error.to_string()))?;
        Ok(Self {
            client,
            prefix: location.prefix.clone(),
            place: location.to_string(),
            transfers: Semaphore::new(MAX_TRANSFERS),
            own,
        })
    }

    /// The bucket, as people name it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Writes a small value and reads it back. Returns how long that took.
    pub async fn probe(&self) -> Result<Duration, ArtifactError> {
        let started = Instant::now();
        let tried = async {
            let artifact = self.put_bytes(PROBE.to_vec()).await?;
            self.read(artifact.digest, artifact.bytes).await
        };
        match tokio::time::timeout(PROBE_TIMEOUT, tried).await {
            Ok(read) => read.map(|_| started.elapsed()),
            Err(_) => Err(ArtifactError::Io(format!(
                "{}: no answer within {} s",
                self.place,
                PROBE_TIMEOUT.as_secs()
            ))),
        }
    }

    fn path(&self, digest: &Digest) -> Path {
        self.prefix.clone().join(digest.hex())
    }

    fn failed(&self, error: &Error) -> ArtifactError {
        describe(&self.place, error)
    }

    /// Writes what is there already once more: that costs less than to ask first, and repairs what was damaged.
    async fn put_bytes(&self, bytes: Vec<u8>) -> Result<ArtifactRef, ArtifactError> {
        let artifact = ArtifactRef {
            digest: Digest::of_bytes(&bytes),
            bytes: bytes.len() as u64,
        };
        if artifact.bytes > MAX_BYTES {
            return Err(ArtifactError::too_large(&artifact.digest, MAX_BYTES));
        }
        // Never closed, so it is always given.
        let _transfer = self.transfers.acquire().await;
        let path = self.path(&artifact.digest);
        let put = self.client.put(&path, PutPayload::from(bytes)).await;
        put.map_err(|error| self.failed(&error))?;
        Ok(artifact)
    }

    /// Reads an object and checks it; `None` if there is none. One that has more than `most` bytes is not read.
    async fn read(&self, digest: Digest, most: u64) -> Result<Option<Found>, ArtifactError> {
        let _transfer = self.transfers.acquire().await;
        let found = match self.client.get(&self.path(&digest)).await {
            Err(error) if is_missing(&error) => return Ok(None),
            found => found.map_err(|error| self.failed(&error))?,
        };
        if found.meta.size > most {
            return Ok(Some(Found::Larger));
        }
        let bytes = found.bytes().await.map_err(|error| self.failed(&error))?;
        if Digest::of_bytes(&bytes) != digest {
            return Err(ArtifactError::Changed(digest));
        }
        Ok(Some(Found::Bytes(bytes.into())))
    }
}

/// An object that is there.
enum Found {
    Bytes(Vec<u8>),
    /// It has more bytes than were asked for.
    Larger,
}

impl Artifacts for ObjectArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        Box::pin(self.put_bytes(bytes))
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        Box::pin(async move {
            match self.read(artifact.digest, artifact.bytes).await? {
                Some(Found::Bytes(bytes)) => Ok(bytes),
                Some(Found::Larger) => Err(ArtifactError::Changed(artifact.digest)),
                None => self.own.get(artifact).await,
            }
        })
    }

    fn get_named(
        &self,
        digest: Digest,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        Box::pin(async move {
            match self.read(digest, max_bytes.min(MAX_BYTES)).await? {
                Some(Found::Bytes(bytes)) => Ok(bytes),
                Some(Found::Larger) => Err(ArtifactError::too_large(&digest, max_bytes)),
                None => self.own.get_named(digest, max_bytes).await,
            }
        })
    }

    fn as_file(
        &self,
        bytes: Vec<u8>,
        name: String,
    ) -> BoxFuture<'_, Result<ArtifactFile, ArtifactError>> {
        self.own.as_file(bytes, name)
    }
}
