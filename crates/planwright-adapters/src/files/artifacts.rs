//! Artifacts as files named by their digest.

use super::atomic::{WriteFileError, atomic_write};
use planwright_core::digest::Digest;
use planwright_engine::port::{ArtifactError, ArtifactRef, Artifacts, BoxFuture};
use std::error::Error as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A directory of artifacts. Content that is there already is not written again.
#[derive(Debug, Clone)]
pub struct FileArtifacts {
    directory: PathBuf,
}

impl FileArtifacts {
    /// Uses `directory`, which is created with the first artifact.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where an artifact is kept.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.hex())
    }

    fn put_now(&self, bytes: &[u8]) -> Result<ArtifactRef, ArtifactError> {
        let artifact = ArtifactRef { digest: Digest::of_bytes(bytes), bytes: bytes.len() as u64 };
        let path = self.path(&artifact.digest);
        // Only whole content counts as present: something damaged is replaced by what it should have been.
        if read_checked(&path, &artifact).is_ok() {
            return Ok(artifact);
        }
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        created.map_err(|error| ArtifactError::Io(format!("{}: {error}", self.directory.display())))?;
        atomic_write(&path, bytes).map_err(|error| ArtifactError::Io(with_source(&error)))?;
        Ok(artifact)
    }
}

fn with_source(error: &WriteFileError) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn read_checked(path: &Path, artifact: &ArtifactRef) -> Result<Vec<u8>, ArtifactError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ArtifactError::Missing(artifact.digest),
        _ => ArtifactError::Io(format!("{}: {error}", path.display())),
    };
    let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("open flags are small");
    let file = OpenOptions::new().read(true).custom_flags(nofollow).open(path).map_err(failed)?;
    // A file that grew is not read to its end: one byte too many is proof enough.
    let mut bytes = Vec::new();
    file.take(artifact.bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 != artifact.bytes || Digest::of_bytes(&bytes) != artifact.digest {
        return Err(ArtifactError::Changed(artifact.digest));
    }
    Ok(bytes)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ArtifactError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ArtifactError::Io(format!("interrupted: {error}"))))
}

impl Artifacts for FileArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        let artifacts = self.clone();
        Box::pin(blocking(move || artifacts.put_now(&bytes)))
    }

    fn get<'a>(&'a self, artifact: &'a ArtifactRef) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        let (path, artifact) = (self.path(&artifact.digest), artifact.clone());
        Box::pin(blocking(move || read_checked(&path, &artifact)))
    }
}
