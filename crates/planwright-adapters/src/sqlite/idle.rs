//! A store that no other process has open, for the work that replaces all of it: encrypting,
//! decrypting, a new key.
//!
//! The new database is written beside the old one, compared with it record by record, and renamed
//! over it. That rename is the one moment of change: a process killed before it leaves the old
//! store, one killed after it the new one, and both are whole.

use super::anchor::Anchor;
use super::heads::{Heads, Share};
use super::identity;
use super::open::{self, OpenStoreError, Options, checkpoint};
use super::recode::{self, Recoded};
use super::{schema, vault};
use crate::files::{FileArtifacts, SealedFolder, SealedFolderError};
use crate::vault::{Cipher, DataKey, LockedKey, Passphrase, StretchCost, UnlockError};
use planwright_engine::crash;
use planwright_engine::port::{ArtifactError, StoreError};
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The end of the name of the folder of sign-ins.
pub const SIGN_INS: &str = "-sign-ins";
/// That of the folder with what results looked like.
pub const SHAPES: &str = "-shapes";

/// The progress of long work.
#[derive(Debug, Clone, Copy)]
pub struct RewriteProgress {
    pub what: &'static str,
    pub done: u64,
    pub total: u64,
}

/// The callback that receives progress.
pub type Tell<'a> = &'a mut dyn FnMut(RewriteProgress);

/// The protection that a store gets.
#[derive(Debug, Clone)]
pub enum Protection {
    Plain,
    Sealed {
        passphrase: Passphrase,
        cost: StretchCost,
    },
}

/// The counts of a rewrite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    pub streams: u64,
    pub entries: u64,
    pub artifacts: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum RewriteStoreError {
    #[error("there is no store at {0}")]
    NoStore(PathBuf),
    #[error("{0} already exists and is not replaced")]
    Exists(PathBuf),
    #[error("{0} is no backup")]
    NoBackup(PathBuf),
    #[error("the backup cannot be used: {0}")]
    BadBackup(String),
    #[error("another process has the store open")]
    InUse,
    #[error("the store is damaged ({0}): it is left as it is")]
    Damaged(String),
    #[error(
        "{0} journal(s) are in sealed files, which hold what they hold: the store is left as it is"
    )]
    SealedJournals(u64),
    #[error("what was written is not what was read ({0}): the store is left as it is")]
    Differs(String),
    #[error("cannot read or write {path}")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Open(#[from] OpenStoreError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Folder(#[from] SealedFolderError),
}

impl From<rusqlite::Error> for RewriteStoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Open(error.into())
    }
}

impl From<UnlockError> for RewriteStoreError {
    fn from(error: UnlockError) -> Self {
        Self::Open(error.into())
    }
}

/// A store that no other process has open, nor can open while this lives.
#[derive(Debug)]
pub struct IdleStore {
    options: Options,
    connection: Connection,
    cipher: Arc<Cipher>,
    heads: Heads,
}

impl IdleStore {
    /// Opens a store that exists, alone.
    pub fn open(options: Options) -> Result<Self, RewriteStoreError> {
        let mut options = options;
        if !options.path.exists() {
            return Err(RewriteStoreError::NoStore(options.path));
        }
        let (heads, promises) = lock_alone(&options)?;
        let (mut connection, cipher) = open::writer(&options)?;
        identity::refuse_foreign(&mut connection, &options)?;
        options.passphrase = None;
        let anchor = Anchor::new(promises, &connection)?;
        if let Some(loss) = anchor.losses(&connection)?.first() {
            let reason = format!("{} lost entries up to {}", loss.stream, loss.promised);
            return Err(RewriteStoreError::Damaged(reason));
        }
        Ok(Self {
            options,
            connection,
            cipher: Arc::new(cipher),
            heads,
        })
    }

    pub fn cipher(&self) -> &Arc<Cipher> {
        &self.cipher
    }

    /// Returns whether an earlier rewrite was broken off, so that its files, or those from before
    /// it, may still lie around.
    pub fn is_unfinished(&self, artifacts: &Path) -> Result<bool, RewriteStoreError> {
        let left = leftovers(&self.options, artifacts, &self.cipher)?;
        Ok(vault::is_unfinished(&self.connection)? || !left.is_empty())
    }

    /// Locks the same key under another passphrase. Nothing else changes.
    pub fn relock(
        self,
        old: &Passphrase,
        new: &Passphrase,
        cost: StretchCost,
    ) -> Result<(), RewriteStoreError> {
        let locked = vault::read(&self.connection)?.ok_or(OpenStoreError::NotEncrypted)?;
        let key = locked.unlock(old)?;
        new.check_strength().map_err(OpenStoreError::from)?;
        let relocked = LockedKey::lock(&key, new, cost)?;
        relocked.unlock(new)?;
        let unfinished = vault::is_unfinished(&self.connection)?;
        vault::write(&self.connection, &relocked, unfinished)?;
        // The old lock must not stay behind in the log, where the old passphrase would still open
        // it.
        checkpoint(&self.connection, "TRUNCATE")?;
        crash::point("rewrite: relocked");
        Ok(())
    }

    /// Writes the store anew, under another protection. `artifacts` is the directory of its large
    /// values. Old files of large values stay until [`IdleStore::finish`].
    pub fn rewrite(
        self,
        protection: &Protection,
        artifacts: &Path,
        tell: Tell<'_>,
    ) -> Result<(Self, Rewritten), RewriteStoreError> {
        // What is sealed was written under the old protection, and would stay under it.
        let sealed: u64 =
            self.connection
                .query_row("SELECT count(*) FROM sealed_journals", [], |row| row.get(0))?;
        if sealed > 0 {
            return Err(RewriteStoreError::SealedJournals(sealed));
        }
        let integrity: String =
            self.connection
                .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if integrity != "ok" {
            return Err(RewriteStoreError::Damaged(integrity));
        }
        let (locked, cipher) = prepare(protection)?;
        let cipher = Arc::new(cipher);
        let new_values = FileArtifacts::with_cipher(artifacts, Arc::clone(&cipher));
        // Everything that a broken-off rewrite left behind was sealed with a key that is lost, or
        // with none.
        new_values.remove_all()?;
        let new_folders = folders(&self.options, &cipher);
        new_folders.iter().try_for_each(SealedFolder::remove_own)?;
        let new_path = self.options.beside("-new");
        match self.write_beside(&new_path, (protection, locked.as_ref()), &new_values, tell) {
            Ok(written) => Ok((self.swap(&new_path, cipher)?, written)),
            Err(error) => {
                // Nothing of it is of use, and it may be plain text. What cannot be removed is
                // found by `check`.
                drop(new_values.remove_all());
                drop(new_folders.iter().try_for_each(SealedFolder::remove_own));
                drop(std::fs::remove_file(&new_path));
                Err(error)
            }
        }
    }

    /// Everything up to the moment of change: the new database and the new files of large values.
    fn write_beside(
        &self,
        new_path: &Path,
        (protection, locked): (&Protection, Option<&LockedKey>),
        new_values: &FileArtifacts,
        tell: Tell<'_>,
    ) -> Result<Rewritten, RewriteStoreError> {
        let new = create_new(new_path)?;
        crash::point("rewrite: begun");
        let Recoded { streams, entries } =
            self.write_new(new, locked, new_values.cipher(), tell)?;
        crash::point("rewrite: written");
        self.verify_new(new_path, protection, tell)?;
        crash::point("rewrite: verified");
        let old_values = new_values.under(Arc::clone(&self.cipher));
        let artifacts = old_values.copy_to(new_values, tell)?;
        let old_folders = folders(&self.options, &self.cipher);
        let new_folders = folders(&self.options, new_values.cipher());
        for (old, new) in old_folders.iter().zip(&new_folders) {
            old.copy_to(new)?;
        }
        crash::point("rewrite: values written");
        Ok(Rewritten {
            streams,
            entries,
            artifacts,
        })
    }

    fn write_new(
        &self,
        mut new: Connection,
        locked: Option<&LockedKey>,
        cipher: &Cipher,
        tell: Tell<'_>,
    ) -> Result<Recoded, RewriteStoreError> {
        schema::migrate(&mut new)?;
        let transaction = new.unchecked_transaction()?;
        if let Some(locked) = locked {
            vault::write(&transaction, locked, true)?;
        }
        let recoded = recode::copy(&self.connection, &transaction, &self.cipher, cipher, tell)?;
        transaction.commit()?;
        Ok(recoded)
    }

    /// Opens what was written as anybody would, and compares all of it.
    fn verify_new(
        &self,
        path: &Path,
        protection: &Protection,
        tell: Tell<'_>,
    ) -> Result<(), RewriteStoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let new = Connection::open_with_flags(path, flags)?;
        let integrity: String = new.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if integrity != "ok" {
            return Err(RewriteStoreError::Differs(integrity));
        }
        let passphrase = match protection {
            Protection::Plain => None,
            Protection::Sealed { passphrase, .. } => Some(passphrase),
        };
        let cipher = vault::unlock(&new, passphrase)?.unwrap_or(Cipher::Plain);
        recode::compare(&self.connection, &new, &self.cipher, &cipher, tell)?;
        File::open(path)
            .and_then(|file| file.sync_all())
            .map_err(|source| RewriteStoreError::File {
                path: path.into(),
                source,
            })
    }

    /// Puts the new database in the place of the old one.
    fn swap(self, new: &Path, cipher: Arc<Cipher>) -> Result<Self, RewriteStoreError> {
        let Self {
            options,
            connection,
            heads,
            cipher: _,
        } = self;
        if !checkpoint(&connection, "TRUNCATE")? {
            return Err(RewriteStoreError::InUse);
        }
        drop(connection);
        replace(&options, &heads, new)?;
        let connection = open::connect(&options)?;
        Ok(Self {
            options,
            connection,
            cipher,
            heads,
        })
    }

    /// Removes the files of large values and the like that belong to another key, or to none, and
    /// notes that it is done.
    pub fn finish(self, artifacts: &Path) -> Result<u64, RewriteStoreError> {
        let removed =
            FileArtifacts::with_cipher(artifacts, Arc::clone(&self.cipher)).remove_foreign()?;
        let folders = folders(&self.options, &self.cipher);
        folders.iter().try_for_each(SealedFolder::remove_foreign)?;
        let new = self.options.beside("-new");
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RewriteStoreError::File {
                    path: new,
                    source: error,
                });
            }
            Ok(()) | Err(_) => {}
        }
        crash::point("rewrite: old values removed");
        vault::finish(&self.connection)?;
        checkpoint(&self.connection, "TRUNCATE")?;
        Ok(removed)
    }
}

/// The folders beside the store that are sealed like it.
fn folders(options: &Options, cipher: &Arc<Cipher>) -> [SealedFolder; 2] {
    [SIGN_INS, SHAPES].map(|suffix| SealedFolder::new(options.beside(suffix), Arc::clone(cipher)))
}

/// Files that a rewrite which was broken off left behind.
pub(super) fn leftovers(
    options: &Options,
    artifacts: &Path,
    cipher: &Arc<Cipher>,
) -> Result<Vec<PathBuf>, ArtifactError> {
    let new = options.beside("-new");
    let mut left = FileArtifacts::with_cipher(artifacts, Arc::clone(cipher)).foreign()?;
    for folder in folders(options, cipher) {
        let foreign = folder.foreign();
        left.extend(foreign.map_err(|error| ArtifactError::Io(error.to_string()))?);
    }
    left.extend(Some(new).filter(|new| new.exists()));
    Ok(left)
}

fn prepare(protection: &Protection) -> Result<(Option<LockedKey>, Cipher), RewriteStoreError> {
    match protection {
        Protection::Plain => Ok((None, Cipher::Plain)),
        Protection::Sealed { passphrase, cost } => {
            passphrase.check_strength().map_err(OpenStoreError::from)?;
            let key = DataKey::random()?;
            Ok((
                Some(LockedKey::lock(&key, passphrase, *cost)?),
                Cipher::sealed(&key),
            ))
        }
    }
}

/// The wait for a process that is about to let go of the store: one that ends, or one that was
/// forked and has not become another program yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes the lock that everybody who opens the store shares.
pub(super) fn lock_alone(
    options: &Options,
) -> Result<
    (
        Heads,
        std::collections::HashMap<String, planwright_core::journal::Head>,
    ),
    RewriteStoreError,
> {
    let path = options.beside("-heads");
    let until = Instant::now() + PATIENCE;
    loop {
        match Heads::open(&path, Share::Alone) {
            Ok(opened) => return Ok(opened),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(RewriteStoreError::File {
                    path,
                    source: error,
                });
            }
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return Err(RewriteStoreError::InUse),
        }
    }
}

/// Renames a synced database over the store's own. The caller holds the lock, and the log of the
/// old one is empty.
pub(super) fn replace(
    options: &Options,
    heads: &Heads,
    new: &Path,
) -> Result<(), RewriteStoreError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RewriteStoreError::File { path, source }
    };
    // A log that is found beside another database would be taken for its own.
    for suffix in ["-wal", "-shm"] {
        let path = options.beside(suffix);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    crash::point("rewrite: log removed");
    // Everything that was promised is in the main file by now, and the new one's hashes may be
    // masked differently.
    heads.clear().map_err(failed(&options.beside("-heads")))?;
    crash::point("rewrite: heads cleared");
    std::fs::rename(new, &options.path).map_err(failed(&options.path))?;
    crash::point("rewrite: renamed");
    let directory = options
        .path
        .parent()
        .filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed(directory))?;
    crash::point("rewrite: synced");
    Ok(())
}

/// An empty database for its owner only. It needs no journal: until it is whole no process looks at
/// it.
fn create_new(path: &Path) -> Result<Connection, RewriteStoreError> {
    let failed = |source| RewriteStoreError::File {
        path: path.into(),
        source,
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let new = Connection::open_with_flags(path, flags)?;
    new.pragma_update(None, "journal_mode", "off")?;
    new.pragma_update(None, "synchronous", "off")?;
    new.pragma_update(None, "temp_store", "memory")?;
    Ok(new)
}
