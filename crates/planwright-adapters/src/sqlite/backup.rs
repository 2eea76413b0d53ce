//! A copy of the store that can be taken away, made while runs go on.
//!
//! A backup is a directory: the database as SQLite copies it at one moment, the large values, and a
//! list of all files with their digests, written last. What is encrypted stays encrypted. The
//! database is copied first: everything it refers to was there before it, and nothing that is
//! referred to is removed while the copy is made. Sealed journals are copied as the files they are.
//!
//! A damaged store is not copied as if it were whole: a store made from the copy would have
//! forgotten what was lost. Only on demand it is, and then the copy holds the heads that were
//! promised, and the list names the damage.

use super::idle::{RewriteProgress, RewriteStoreError, Tell};
use super::open;
use super::recode::{check_rows, verify_journal};
use super::sealed_journal::{self, Turn};
use super::store::SqliteStore;
use super::writer::note_losses;
use crate::files::FileArtifacts;
use crate::files::nofollow;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The format of backups this program makes.
pub(super) const FORMAT: u32 = 1;
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const DATABASE: &str = "planwright.db";
pub(super) const ARTIFACTS: &str = "artifacts";
pub(super) const SEALED: &str = "sealed";
/// Pages copied between two words about progress.
const PAGES: i32 = 512;
const CHUNK: usize = 256 * 1024;

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub format: u32,
    pub created_at: Timestamp,
    /// `true` if it needs the passphrase of the store it was made of.
    pub encrypted: bool,
    pub streams: u64,
    pub entries: u64,
    pub files: Vec<BackedFile>,
    /// What was lost or changed in the store it was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedFile {
    pub path: String,
    pub bytes: u64,
    pub digest: Digest,
}

impl SqliteStore {
    /// Copies the store and its large values, in the directory `artifacts`, to the new directory
    /// `to`. A store that lost anything is refused. Blocks.
    pub fn backup(
        &self,
        artifacts: &Path,
        to: &Path,
        now: Timestamp,
        tell: Tell<'_>,
    ) -> Result<Manifest, RewriteStoreError> {
        self.copy_to(artifacts, to, (now, &[]), tell)
    }

    /// Copies a damaged store together with what is known of its damage. Blocks.
    pub fn backup_damaged(
        &self,
        artifacts: &Path,
        to: &Path,
        (now, damage): (Timestamp, &[String]),
        tell: Tell<'_>,
    ) -> Result<Manifest, RewriteStoreError> {
        self.copy_to(artifacts, to, (now, damage), tell)
    }

    fn copy_to(
        &self,
        artifacts: &Path,
        to: &Path,
        (now, damage): (Timestamp, &[String]),
        tell: Tell<'_>,
    ) -> Result<Manifest, RewriteStoreError> {
        match std::fs::symlink_metadata(to) {
            Ok(_) => return Err(RewriteStoreError::Exists(to.into())),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(to)(error)),
            Err(_) => {}
        }
        // Nothing that the copy names is sealed, restored or removed while it is made.
        let _turn = self.wait_for_turn()?;
        let partial = Partial::create(to)?;
        let is_damaged = !damage.is_empty();
        let (streams, entries) = self.copy_database(&partial.0.join(DATABASE), is_damaged, tell)?;
        crash::point("backup: database copied");
        let values = FileArtifacts::with_cipher(artifacts, Arc::clone(self.cipher()));
        let mut files = vec![describe(&partial.0, DATABASE)?];
        files.extend(copy_values(&values, artifacts, &partial.0, tell)?);
        files.extend(self.copy_sealed(&partial.0, is_damaged)?);
        let encrypted = self.cipher().is_sealed();
        let manifest = Manifest {
            format: FORMAT,
            created_at: now,
            encrypted,
            streams,
            entries,
            files,
            damage: damage.to_vec(),
        };
        write_manifest(&partial.0, &manifest)?;
        crash::point("backup: written");
        std::fs::rename(&partial.0, to).map_err(failed(to))?;
        sync_directory(&parent(to))?;
        Ok(manifest)
    }

    /// Copies the database as it is at one moment, and reads the copy to its end.
    fn copy_database(
        &self,
        to: &Path,
        is_damaged: bool,
        tell: Tell<'_>,
    ) -> Result<(u64, u64), RewriteStoreError> {
        let source = open::reader(self.options())?;
        // The snapshot stays the same over all steps, so commits in between do not start the copy
        // again.
        let snapshot = source.unchecked_transaction()?;
        snapshot.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .map_err(failed(to))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut copy = Connection::open_with_flags(to, flags)?;
        {
            let backup = Backup::new(&snapshot, &mut copy)?;
            loop {
                let step = backup.step(PAGES)?;
                let progress = backup.progress();
                let left = progress.remaining.unsigned_abs();
                let total = progress.pagecount.unsigned_abs();
                let done = total.saturating_sub(left);
                tell(RewriteProgress {
                    what: "copying",
                    done: done.into(),
                    total: total.into(),
                });
                match step {
                    StepResult::Done => break,
                    StepResult::More => {}
                    _ => std::thread::sleep(std::time::Duration::from_millis(5)),
                }
            }
        }
        self.carry_losses(&copy, is_damaged)?;
        // The copy is one file, without a log beside it.
        copy.pragma_update(None, "journal_mode", "delete")?;
        match check_copy(&copy, self.cipher(), tell) {
            Err(RewriteStoreError::Damaged(_)) if is_damaged => Ok(count_remains(&copy)),
            checked => checked,
        }
    }

    fn wait_for_turn(&self) -> Result<File, RewriteStoreError> {
        let until = Instant::now() + self.options().busy_timeout;
        loop {
            match self.lock_retention(Turn::Shared)? {
                Some(turn) => return Ok(turn),
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                None => return Err(RewriteStoreError::InUse),
            }
        }
    }

    /// Copies the sealed files that the copied database names.
    fn copy_sealed(
        &self,
        to: &Path,
        is_damaged: bool,
    ) -> Result<Vec<BackedFile>, RewriteStoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let copy = Connection::open_with_flags(to.join(DATABASE), flags)?;
        let named = sealed_journal::named_files(&copy)?;
        let directory = to.join(SEALED);
        let mut files = Vec::new();
        if !named.is_empty() {
            create_directory(&directory)?;
        }
        for (name, digest) in named {
            let copied = copy_file(&self.sealed_directory().join(&name), &directory.join(&name));
            let (bytes, found) = match copied {
                // It was told to be damaged, and is missing in the copy too.
                Err(_) if is_damaged => continue,
                copied => copied?,
            };
            if found != digest && !is_damaged {
                return Err(RewriteStoreError::Damaged(format!(
                    "the sealed file {name} was changed"
                )));
            }
            files.push(BackedFile {
                path: format!("{SEALED}/{name}"),
                bytes,
                digest: found,
            });
        }
        if directory.exists() {
            sync_directory(&directory)?;
        }
        Ok(files)
    }

    /// Writes into the copy what was promised and is missing: the file of heads stays behind.
    fn carry_losses(&self, copy: &Connection, is_damaged: bool) -> Result<(), RewriteStoreError> {
        let anchor = self.reader().anchor();
        let losses = self.reader().with(|connection| {
            anchor
                .lost_heads(connection)
                .map_err(|error| super::fault::failed(&error))
        })?;
        match losses.first() {
            None => Ok(()),
            Some((stream, head)) if !is_damaged => Err(RewriteStoreError::Damaged(format!(
                "{stream} lost entries up to {}",
                head.seq
            ))),
            Some(_) => Ok(note_losses(copy, &losses)?),
        }
    }
}

/// Returns how many streams and entries can be counted in what is left.
fn count_remains(copy: &Connection) -> (u64, u64) {
    let count = |table| {
        copy.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get(0)
        })
        .unwrap_or_default()
    };
    (count("streams"), count("entries"))
}

/// That a copy is whole: the file, every chain, and every row that must open.
pub(super) fn check_copy(
    copy: &Connection,
    cipher: &crate::vault::Cipher,
    tell: Tell<'_>,
) -> Result<(u64, u64), RewriteStoreError> {
    let integrity: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if integrity != "ok" {
        return Err(RewriteStoreError::Damaged(integrity));
    }
    let counted = verify_journal(copy, cipher, tell)?;
    match check_rows(copy, cipher)?.into_iter().next() {
        Some(problem) => Err(RewriteStoreError::Damaged(problem)),
        None => Ok(counted),
    }
}

fn copy_values(
    values: &FileArtifacts,
    from: &Path,
    to: &Path,
    tell: Tell<'_>,
) -> Result<Vec<BackedFile>, RewriteStoreError> {
    let names = values.own_names()?;
    let directory = to.join(ARTIFACTS);
    create_directory(&directory)?;
    let total = names.len() as u64;
    let mut files = Vec::new();
    for (name, done) in names.iter().zip(1..) {
        let target = directory.join(name);
        let (bytes, digest) = copy_file(&from.join(name), &target)?;
        files.push(BackedFile {
            path: format!("{ARTIFACTS}/{name}"),
            bytes,
            digest,
        });
        tell(RewriteProgress {
            what: "large values",
            done,
            total,
        });
    }
    sync_directory(&directory)?;
    Ok(files)
}

/// Copies a file to a new one, synced, and says what was copied.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(u64, Digest), RewriteStoreError> {
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(failed(to))?;
    let copied = hash_file(from, |chunk| target.write_all(chunk)).map_err(failed(from))?;
    target.sync_all().map_err(failed(to))?;
    Ok(copied)
}

/// Reads a file, which must not be a link, and says how long it is and what its digest is.
pub(super) fn hash_file(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, Digest)> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(nofollow())
        .open(path)?;
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((bytes, Digest::from_bytes(hash.finalize().into())));
        }
        hash.update(&chunk[..read]);
        each(&chunk[..read])?;
        bytes += read as u64;
    }
}

fn describe(directory: &Path, name: &str) -> Result<BackedFile, RewriteStoreError> {
    let path = directory.join(name);
    File::open(&path)
        .and_then(|file| file.sync_all())
        .map_err(failed(&path))?;
    let (bytes, digest) = hash_file(&path, |_| Ok(())).map_err(failed(&path))?;
    Ok(BackedFile {
        path: name.to_owned(),
        bytes,
        digest,
    })
}

fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(), RewriteStoreError> {
    let path = directory.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest).expect("a manifest has only string keys");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(failed(&path))?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(failed(&path))?;
    sync_directory(directory)
}

pub(super) fn create_directory(path: &Path) -> Result<(), RewriteStoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed(path))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), RewriteStoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(failed(path))
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> RewriteStoreError {
    let path = path.to_owned();
    move |source| RewriteStoreError::File { path, source }
}

fn parent(path: &Path) -> PathBuf {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new(".")).to_owned()
}

/// A directory that is removed unless it was renamed.
struct Partial(PathBuf);

impl Partial {
    fn create(to: &Path) -> Result<Self, RewriteStoreError> {
        let random =
            getrandom::u64().map_err(|error| failed(to)(io::Error::other(error.to_string())))?;
        let mut name = to.as_os_str().to_owned();
        name.push(format!(".partial-{random:016x}"));
        let path = PathBuf::from(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is nothing under this name, and that is fine.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
