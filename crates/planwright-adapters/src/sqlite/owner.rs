//! The owners that are alive: each owner of a lease holds an exclusive lock on a file with its
//! name.
//!
//! The operating system drops the lock when the process dies, however it dies. A process that finds
//! the file unlocked, or missing, knows that the owner is gone and need not wait for its lease to
//! run out. Files are made and removed only inside a write transaction (or by their owner), so that
//! no two processes do it at the same time.

use crate::files::nofollow;
use planwright_engine::port::OwnerId;
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_NAME_BYTES: usize = 64;
/// A lock that another process is only trying is free again after a moment.
const LOCK_TRIES: u32 = 50;
/// The number of files of dead owners that are looked for at once.
const SWEEP: usize = 256;

#[derive(Debug)]
pub(super) struct Owners {
    directory: PathBuf,
    held: HashMap<OwnerId, File>,
}

impl Owners {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            held: HashMap::new(),
        }
    }

    /// Shows that `owner` is alive for as long as this value lives.
    pub(super) fn hold(&mut self, owner: &OwnerId) -> Result<(), String> {
        if self.held.contains_key(owner) {
            return Ok(());
        }
        let path = self.path(owner)?;
        let cannot =
            |error: io::Error| format!("cannot lock the owner file {}: {error}", path.display());
        if self.held.is_empty() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.directory)
                .map_err(cannot)?;
            self.sweep();
        }
        for _ in 0..LOCK_TRIES {
            let file = open_own(&path).map_err(cannot)?;
            match file.try_lock() {
                Ok(()) if same_file(&file, &path) => {
                    self.held.insert(owner.clone(), file);
                    return Ok(());
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
        }
        Err(format!(
            "the owner id {} is in use by another store",
            owner.0
        ))
    }

    /// Removes the file of an owner that was found dead.
    pub(super) fn bury(&self, owner: &OwnerId) {
        if let Ok(path) = self.path(owner)
            && is_dead(&path)
        {
            // A file that stays is found dead again by the next sweep.
            drop(std::fs::remove_file(path));
        }
    }

    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()).take(SWEEP) {
            if is_dead(&path) {
                drop(std::fs::remove_file(path));
            }
        }
    }

    fn path(&self, owner: &OwnerId) -> Result<PathBuf, String> {
        owner_path(&self.directory, owner)
            .ok_or_else(|| format!("{:?} cannot be an owner id", owner.0))
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        for owner in self.held.keys() {
            if let Some(path) = owner_path(&self.directory, owner) {
                drop(std::fs::remove_file(path));
            }
        }
        // The directory stays: a process that comes at this moment is about to put a file into it.
    }
}

/// Returns whether the owner's process still runs. In doubt it does: then the lease has to run out.
pub(super) fn is_alive(directory: &Path, owner: &OwnerId) -> bool {
    owner_path(directory, owner).is_none_or(|path| !is_dead(&path))
}

/// Returns whether the owner's process is known to run. In doubt it is not known: then the lease
/// decides alone.
pub(super) fn holds_lock(directory: &Path, owner: &OwnerId) -> bool {
    owner_path(directory, owner)
        .and_then(|path| open_shown(&path).ok())
        .is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Tries a shared lock: two that ask at the same time must not take each other for the owner.
fn is_dead(path: &Path) -> bool {
    match open_shown(path) {
        Ok(file) => file.try_lock_shared().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn open_shown(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(nofollow())
        .open(path)
}

fn open_own(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)
}

/// Returns whether the file that was locked is still the one with that name.
fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// The file of an owner; `None` if the id cannot be a file name.
fn owner_path(directory: &Path, owner: &OwnerId) -> Option<PathBuf> {
    let name = &owner.0;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let usable = (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.starts_with('.')
        && name.chars().all(plain);
    usable.then(|| directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> OwnerId {
        OwnerId(name.to_owned())
    }

    #[test]
    fn an_owner_is_alive_while_it_holds_its_file_and_dead_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owners");
        let mut owners = Owners::new(path.clone());
        assert!(!is_alive(&path, &owner("a")));
        owners.hold(&owner("a")).unwrap();
        assert!(is_alive(&path, &owner("a")));
        drop(owners);
        assert!(!is_alive(&path, &owner("a")));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn two_stores_cannot_share_an_owner_id() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owners");
        let mut one = Owners::new(path.clone());
        let mut two = Owners::new(path);
        one.hold(&owner("a")).unwrap();
        one.hold(&owner("a")).unwrap();
        assert!(
            two.hold(&owner("a"))
                .unwrap_err()
                .contains("in use by another store")
        );
    }

    #[test]
    fn files_of_dead_owners_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owners");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("dead"), "").unwrap();
        let mut owners = Owners::new(path.clone());
        owners.hold(&owner("alive")).unwrap();
        assert!(!path.join("dead").exists());
        assert!(path.join("alive").exists());
    }

    #[test]
    fn the_last_to_leave_does_not_disturb_whoever_comes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owners");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        Owners::new(path.clone()).hold(&owner(name)).unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn ids_that_are_not_plain_file_names_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut owners = Owners::new(directory.path().join("owners"));
        for bad in ["", "../up", "a/b", ".hidden", "a\0", "ü", &"x".repeat(65)] {
            assert!(owners.hold(&owner(bad)).is_err(), "{bad:?} was accepted");
        }
    }
}
