//! Values too large for the journal.

use super::BoxFuture;
use planwright_core::digest::Digest;
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use planwright_core::artifact::ArtifactRef;

/// The reason a large value cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No value with this digest is stored.
    #[error("artifact {0} is missing")]
    Missing(Digest),
    /// The stored bytes do not have their digest.
    #[error("artifact {0} does not match its digest: it was changed on disk")]
    Changed(Digest),
    /// There is no space left for a value.
    #[error("the disk is full")]
    Full,
    /// The storage failed, in words.
    #[error("the artifact store failed: {0}")]
    Io(String),
}

/// A content-addressed store of bytes. What was put is durable when `put` returns, and is checked
/// when read.
pub trait Artifacts: Send + Sync + fmt::Debug {
    /// Stores bytes under their digest, durable on return.
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>>;
    /// Reads bytes and checks them against their digest.
    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>>;

    /// Reads bytes of which only the digest is known, up to this many.
    fn get_named(
        &self,
        digest: Digest,
        _max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        Box::pin(async move { Err(ArtifactError::Missing(digest)) })
    }

    /// Writes bytes to a file of their own that other programs can read. It is there for as long as
    /// it is held.
    fn as_file(
        &self,
        _bytes: Vec<u8>,
        _name: String,
    ) -> BoxFuture<'_, Result<ArtifactFile, ArtifactError>> {
        let error = ArtifactError::Io("there are no files here".into());
        Box::pin(async { Err(error) })
    }
}

/// A file with the bytes of an artifact. Dropping the last copy of it removes it.
#[derive(Clone)]
pub struct ArtifactFile {
    /// Where it is.
    pub path: PathBuf,
    _keep: Arc<dyn Any + Send + Sync>,
}

impl ArtifactFile {
    /// A file that is there until `keep` is dropped.
    pub fn new(path: PathBuf, keep: impl Any + Send + Sync) -> Self {
        Self {
            path,
            _keep: Arc::new(keep),
        }
    }
}

impl ArtifactError {
    /// The value has more bytes than are wanted.
    pub fn too_large(digest: &Digest, max_bytes: u64) -> Self {
        Self::Io(format!("{digest} has more than {max_bytes} bytes"))
    }
}

impl fmt::Debug for ArtifactFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArtifactFile").field(&self.path).finish()
    }
}
