//! Artifacts that are not needed any more, and those that move between stores.
//!
//! Several processes may put artifacts while one removes some. A process that puts one holds a lock together
//! with others while it looks whether the content is there and marks it as asked for; the process that
//! removes holds it alone while it looks at the mark and removes. The mark is the time at which the
//! file was last changed.

use super::artifacts::{FileArtifacts, is_hex, place, read_file};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::port::{ArtifactError, Removed};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Who may hold the lock of the directory at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Those that put.
    Shared,
    /// The one that removes.
    Alone,
}

/// The time at which a file was last written or asked for; `None` if it is not there.
fn asked_for_at(path: &Path) -> io::Result<Option<Timestamp>> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let since_epoch = found.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    Ok(Some(
        Timestamp::from_millis(0).plus(since_epoch.unwrap_or_default()),
    ))
}

impl FileArtifacts {
    pub(super) fn hold(&self, hold: Hold) -> Result<File, ArtifactError> {
        let open = || -> io::Result<File> {
            let file = File::open(&self.directory)?;
            match hold {
                Hold::Shared => file.lock_shared()?,
                Hold::Alone => file.lock()?,
            }
            Ok(file)
        };
        crate::scarcity::wait_for_room_blocking(open).map_err(|error| self.failed(&error))
    }

    /// Marks an artifact as asked for now. Returns whether it is there.
    pub(crate) fn touch(&self, digest: &Digest) -> bool {
        let file = File::open(self.path(digest));
        file.and_then(|file| file.set_modified(SystemTime::now()))
            .is_ok()
    }

    /// The names of our files that were neither written nor asked for since then, and of drafts
    /// that old.
    pub(crate) fn older_than(&self, before: Timestamp) -> Result<Vec<String>, ArtifactError> {
        let mut old = Vec::new();
        for name in self.names()? {
            let is_ours = self.is_own(&name) || name.starts_with(".tmp-");
            let at = asked_for_at(&self.directory.join(&name));
            let at = at.map_err(|error| self.failed(&error))?;
            if is_ours && at.is_some_and(|at| at < before) {
                old.push(name);
            }
        }
        Ok(old)
    }

    /// Removes those of these files that none of the digests names, unless one was asked for in
    /// between.
    pub(crate) fn remove_unused(
        &self,
        names: &[String],
        used: &HashSet<Digest>,
        before: Timestamp,
        dry_run: bool,
    ) -> Result<Removed, ArtifactError> {
        let used: HashSet<String> = used.iter().map(|digest| self.name(digest)).collect();
        let mut removed = Removed::default();
        for name in names.iter().filter(|name| !used.contains(*name)) {
            let path = self.directory.join(name);
            let _alone = self.hold(Hold::Alone)?;
            let at = asked_for_at(&path).map_err(|error| self.failed(&error))?;
            if at.is_none_or(|at| at >= before) {
                continue;
            }
            let bytes = std::fs::symlink_metadata(&path).map_or(0, |file| file.len());
            if !dry_run {
                std::fs::remove_file(&path).map_err(|error| self.failed(&error))?;
            }
            removed.files += 1;
            removed.bytes += bytes;
        }
        Ok(removed)
    }

    /// Reads an artifact as it is kept, with the name of its file; `None` if there is none.
    pub(crate) fn read_kept(
        &self,
        digest: &Digest,
    ) -> Result<Option<(String, Vec<u8>)>, ArtifactError> {
        let name = self.name(digest);
        let path = self.directory.join(&name);
        match asked_for_at(&path).map_err(|error| self.failed(&error))? {
            None => Ok(None),
            Some(_) => {
                self.read_named(&name)?;
                let kept = read_file(&path, *digest, u64::MAX - 1)?;
                Ok(Some((name, kept)))
            }
        }
    }

    /// Puts an artifact that was kept under this name: here, or where nothing was encrypted.
    pub(crate) fn put_kept(&self, name: &str, kept: Vec<u8>) -> Result<(), ArtifactError> {
        let wrong = || ArtifactError::Io(format!("the large value {name} was changed"));
        let bytes = if is_hex(name) {
            kept
        } else if self.is_own(name) {
            let opened = self.cipher.open(place(&[name.as_bytes()]), kept);
            opened.map_err(|_| wrong())?
        } else {
            return Err(wrong());
        };
        let digest = Digest::of_bytes(&bytes);
        if name != digest.hex() && name != self.name(&digest) {
            return Err(wrong());
        }
        self.put_now(&bytes).map(drop)
    }
}
