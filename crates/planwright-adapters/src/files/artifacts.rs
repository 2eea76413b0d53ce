//! Artifacts as files named by their digest, or, where they are sealed, by a name that does not
//! tell it.

use super::artifact_retention::Hold;
use super::atomic::nofollow;
use super::atomic::{WriteFileError, atomic_write};
use crate::scarcity::wait_for_room_blocking;
use crate::sqlite::{RewriteProgress, Tell};
use crate::vault::{Cipher, SealedPlace};
use planwright_core::digest::Digest;
use planwright_engine::port::{ArtifactError, ArtifactFile, ArtifactRef, Artifacts, BoxFuture};
use std::error::Error as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A digest in a file's name.
const HEX: usize = 64;

/// A directory of artifacts. Content that is there already is not written again.
#[derive(Debug, Clone)]
pub struct FileArtifacts {
    pub(super) directory: PathBuf,
    pub(super) cipher: Arc<Cipher>,
}

impl FileArtifacts {
    /// Uses `directory`, which is created with the first artifact.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::with_cipher(directory, Arc::new(Cipher::Plain))
    }

    /// As [`FileArtifacts::new`], with everything sealed by `cipher`.
    pub fn with_cipher(directory: impl Into<PathBuf>, cipher: Arc<Cipher>) -> Self {
        Self {
            directory: directory.into(),
            cipher,
        }
    }

    pub(crate) fn cipher(&self) -> &Arc<Cipher> {
        &self.cipher
    }

    /// The same directory under another key.
    pub(crate) fn under(&self, cipher: Arc<Cipher>) -> Self {
        Self {
            directory: self.directory.clone(),
            cipher,
        }
    }

    /// Returns the path of an artifact.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(self.name(digest))
    }

    /// The name of the file. A digest would confirm a guess of the content, so a sealed one is
    /// named by the key.
    pub(super) fn name(&self, digest: &Digest) -> String {
        match (
            self.cipher.key_id(),
            self.cipher.name(&[b"artifact", digest.as_bytes()]),
        ) {
            (Some(key), Some(name)) => format!("{key}-{name}"),
            _ => digest.hex(),
        }
    }

    /// Returns whether a file of this name is one of ours.
    pub(super) fn is_own(&self, name: &str) -> bool {
        match self.cipher.key_id() {
            Some(key) => name
                .strip_prefix(key)
                .and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(is_hex),
            None => is_hex(name),
        }
    }

    pub(super) fn put_now(&self, bytes: &[u8]) -> Result<ArtifactRef, ArtifactError> {
        let artifact = ArtifactRef {
            digest: Digest::of_bytes(bytes),
            bytes: bytes.len() as u64,
        };
        let path = self.path(&artifact.digest);
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory);
        created
            .map_err(|error| ArtifactError::Io(format!("{}: {error}", self.directory.display())))?;
        let _held = self.hold(Hold::Shared)?;
        // Only whole content counts as present: something damaged is replaced by what it should
        // have been. What is present was asked for now, and is not removed for a while.
        if self.read_checked(&artifact).is_ok() && self.touch(&artifact.digest) {
            return Ok(artifact);
        }
        let name = self.name(&artifact.digest);
        let sealed = self.cipher.seal(place(&[name.as_bytes()]), bytes);
        let sealed = sealed.map_err(|error| ArtifactError::Io(error.to_string()))?;
        atomic_write(&path, &sealed).map_err(|error| of_write(&error))?;
        Ok(artifact)
    }

    fn read_checked(&self, artifact: &ArtifactRef) -> Result<Vec<u8>, ArtifactError> {
        let name = self.name(&artifact.digest);
        let overhead = if self.cipher.is_sealed() {
            Cipher::OVERHEAD as u64
        } else {
            0
        };
        let most = artifact.bytes.saturating_add(overhead);
        let kept = read_file(&self.directory.join(&name), artifact.digest, most)?;
        let changed = || ArtifactError::Changed(artifact.digest);
        let bytes = self
            .cipher
            .open(place(&[name.as_bytes()]), kept)
            .map_err(|_| changed())?;
        if bytes.len() as u64 != artifact.bytes || Digest::of_bytes(&bytes) != artifact.digest {
            return Err(changed());
        }
        Ok(bytes)
    }

    /// Reads an artifact of which only the digest is known.
    fn read_digest(&self, digest: Digest, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let path = self.path(&digest);
        let overhead = Cipher::OVERHEAD as u64;
        let length = std::fs::metadata(&path).map(|metadata| metadata.len());
        if length.is_ok_and(|length| length > max_bytes.saturating_add(overhead)) {
            return Err(ArtifactError::too_large(&digest, max_bytes));
        }
        let kept = read_file(&path, digest, max_bytes.saturating_add(overhead))?;
        let name = self.name(&digest);
        let changed = || ArtifactError::Changed(digest);
        let bytes = self.cipher.open(place(&[name.as_bytes()]), kept);
        let bytes = bytes.map_err(|_| changed())?;
        if bytes.len() as u64 > max_bytes {
            return Err(ArtifactError::too_large(&digest, max_bytes));
        }
        if Digest::of_bytes(&bytes) != digest {
            return Err(changed());
        }
        Ok(bytes)
    }

    /// The names of the files that look like artifacts.
    pub(super) fn names(&self) -> Result<Vec<String>, ArtifactError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.failed(&error))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| self.failed(&error))?.file_name();
            names.extend(name.into_string().ok().filter(|name| is_artifact(name)));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The names of the files that are ours.
    pub(crate) fn own_names(&self) -> Result<Vec<String>, ArtifactError> {
        Ok(self
            .names()?
            .into_iter()
            .filter(|name| self.is_own(name))
            .collect())
    }

    /// Returns whether an artifact under any key could have this name.
    pub(crate) fn is_name(name: &str) -> bool {
        is_artifact(name) && !name.starts_with('.')
    }

    /// Puts everything that is here into `other` as well. A file that does not hold what its name
    /// says stops it.
    pub fn copy_to(&self, other: &Self, tell: Tell<'_>) -> Result<u64, ArtifactError> {
        let names = self.own_names()?;
        let total = names.len() as u64;
        for (name, done) in names.iter().zip(1..) {
            other.put_now(&self.read_named(name)?)?;
            tell(RewriteProgress {
                what: "large values",
                done,
                total,
            });
        }
        Ok(total)
    }

    /// Reads the file of this name, if it holds what its name says.
    pub(super) fn read_named(&self, name: &str) -> Result<Vec<u8>, ArtifactError> {
        let wrong = || {
            ArtifactError::Io(format!(
                "{} was changed on disk",
                self.directory.join(name).display()
            ))
        };
        let kept = read_file(&self.directory.join(name), Digest::ZERO, u64::MAX - 1)?;
        let bytes = self
            .cipher
            .open(place(&[name.as_bytes()]), kept)
            .map_err(|_| wrong())?;
        if self.name(&Digest::of_bytes(&bytes)) != name {
            return Err(wrong());
        }
        Ok(bytes)
    }

    /// Checks all files: returns the faults and the number of files.
    pub fn check(&self, tell: Tell<'_>) -> Result<(u64, Vec<String>), ArtifactError> {
        let names = self.own_names()?;
        let total = names.len() as u64;
        let mut problems = Vec::new();
        for (name, done) in names.iter().zip(1..) {
            problems.extend(self.read_named(name).err().map(|error| error.to_string()));
            tell(RewriteProgress {
                what: "large values",
                done,
                total,
            });
        }
        Ok((total, problems))
    }

    /// The artifacts of other keys, or of none, and what was never finished.
    pub fn foreign(&self) -> Result<Vec<PathBuf>, ArtifactError> {
        let names = self.names()?.into_iter().filter(|name| !self.is_own(name));
        Ok(names.map(|name| self.directory.join(name)).collect())
    }

    /// Removes the artifacts of other keys, or of none, and what was never finished.
    pub fn remove_foreign(&self) -> Result<u64, ArtifactError> {
        self.remove(|name| !self.is_own(name))
    }

    /// Removes our own.
    pub(crate) fn remove_all(&self) -> Result<u64, ArtifactError> {
        self.remove(|name| self.is_own(name))
    }

    fn remove(&self, unwanted: impl Fn(&str) -> bool) -> Result<u64, ArtifactError> {
        let mut removed = 0;
        for name in self.names()?.iter().filter(|name| unwanted(name)) {
            std::fs::remove_file(self.directory.join(name)).map_err(|error| self.failed(&error))?;
            removed += 1;
        }
        Ok(removed)
    }

    pub(super) fn failed(&self, error: &io::Error) -> ArtifactError {
        ArtifactError::Io(format!("{}: {error}", self.directory.display()))
    }
}

pub(super) fn place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "artifacts",
        column: "content",
        row,
    }
}

pub(super) fn is_hex(text: &str) -> bool {
    text.len() == HEX
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// An artifact under any key, or one that was being written when its process died.
fn is_artifact(name: &str) -> bool {
    let sealed = name.split_once('-').is_some_and(|(key, name)| {
        key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()) && is_hex(name)
    });
    is_hex(name) || sealed || name.starts_with(".tmp-")
}

fn of_write(error: &WriteFileError) -> ArtifactError {
    match error {
        WriteFileError::Io { source, .. }
            if matches!(
                source.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ) =>
        {
            ArtifactError::Full
        }
        error => ArtifactError::Io(with_source(error)),
    }
}

fn with_source(error: &WriteFileError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// The content of a file, unless it has more than `most` bytes.
pub(super) fn read_file(path: &Path, digest: Digest, most: u64) -> Result<Vec<u8>, ArtifactError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ArtifactError::Missing(digest),
        _ => ArtifactError::Io(format!("{}: {error}", path.display())),
    };
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(nofollow());
    let file = wait_for_room_blocking(|| open.open(path)).map_err(failed)?;
    // A file that grew is not read to its end: one byte too many is proof enough.
    // Its length is only a hint for the room it needs.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let room = usize::try_from(length.min(most).saturating_add(1)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(room);
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(ArtifactError::Changed(digest));
    }
    Ok(bytes)
}

/// Files that are read at once. Each read has the whole file in memory, and the threads that did one keep some of it for
/// their next: many viewers of large values would otherwise each cost many times what they see.
static READS: Semaphore = Semaphore::const_new(4);

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

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        let artifacts = self.clone();
        let artifact = artifact.clone();
        Box::pin(async move {
            // Never closed, so it is always given.
            let _reading = READS.acquire().await;
            blocking(move || artifacts.read_checked(&artifact)).await
        })
    }

    fn get_named(
        &self,
        digest: Digest,
        max_bytes: u64,
    ) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        let artifacts = self.clone();
        Box::pin(async move {
            let _reading = READS.acquire().await;
            blocking(move || artifacts.read_digest(digest, max_bytes)).await
        })
    }

    fn as_file(
        &self,
        bytes: Vec<u8>,
        name: String,
    ) -> BoxFuture<'_, Result<ArtifactFile, ArtifactError>> {
        let directory = self.directory.join(IN_USE);
        Box::pin(blocking(move || write_in_use(&directory, &bytes, &name)))
    }
}

/// The folder of the files that calls in flight were given. They are not sealed: other programs read
/// them.
const IN_USE: &str = "in-use";
/// What a process that was killed left there is removed after this time.
const IN_USE_LIFE: Duration = Duration::from_hours(24);

fn write_in_use(directory: &Path, bytes: &[u8], name: &str) -> Result<ArtifactFile, ArtifactError> {
    let failed = |error: io::Error| ArtifactError::Io(format!("{}: {error}", directory.display()));
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed)?;
    let directory = directory.canonicalize().map_err(failed)?;
    remove_old(&directory);
    let own = tempfile::Builder::new()
        .prefix("call-")
        .tempdir_in(&directory)
        .map_err(failed)?;
    let path = own.path().join(name);
    atomic_write(&path, bytes).map_err(|error| of_write(&error))?;
    Ok(ArtifactFile::new(path, own))
}

fn remove_old(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > IN_USE_LIFE)
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::debug!(%error, "a file of an earlier call could not be removed");
        }
    }
}
