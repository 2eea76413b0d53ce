//! Opening the database file: who may see it, which SQLite may touch it, and how connections are
//! set up.

use super::fault::describe;
use super::identity::{ForeignStore, StoreOwner};
use super::{schema, vault};
use crate::vault::{Cipher, Passphrase, ReadPassphraseError, StretchCost, UnlockError};
use planwright_core::journal::Head;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first version without the bug that can lose a write when the log is reset.
const OLDEST_SQLITE: i32 = 3_051_003;
/// Withdrawn by its authors.
const WITHDRAWN_SQLITE: i32 = 3_052_000;

#[derive(Debug, Clone)]
pub struct Options {
    pub path: PathBuf,
    /// The time a write waits for another process before it fails.
    pub busy_timeout: Duration,
    /// The number of requests that may wait for the writer before senders wait themselves.
    pub queue: usize,
    /// At this size the heads file is emptied, after everything it promises is safe in the main
    /// file.
    pub max_heads_bytes: u64,
    /// Opens an encrypted store, or makes a new one encrypted. Forgotten as soon as that is done.
    pub passphrase: Option<Passphrase>,
    /// The cost of trying a passphrase, for a store that is created.
    pub cost: StretchCost,
    /// Whose store it has to be for anything to be written.
    pub owner: StoreOwner,
    /// `true` to make a store the owner's that is not: no other process may have it open.
    pub adopt: bool,
}

impl Options {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: Duration::from_secs(10),
            queue: 1024,
            max_heads_bytes: 4 * 1024 * 1024,
            passphrase: None,
            cost: StretchCost::DEFAULT,
            owner: StoreOwner::Unchecked,
            adopt: false,
        }
    }

    /// The path of a file that belongs to the database: its own name with a suffix.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    #[error(
        "SQLite {0} must not be used: it can lose data (3.51.3 or later is needed, and not 3.52.0)"
    )]
    UnsafeSqlite(&'static str),
    #[error("cannot create the directory {path}")]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot open {path}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    #[error(
        "the database was made by a newer version of planwright (schema {found}, this one knows {known})"
    )]
    NewerSchema { found: i64, known: usize },
    #[error("the file is not a database")]
    NotADatabase,
    #[error("{}", describe_missing(.0))]
    Missing(Vec<String>),
    #[error("the database is locked by another process")]
    Locked,
    #[error("the database is read-only")]
    ReadOnly,
    #[error("the disk is full")]
    Full,
    #[error("the store is encrypted: its passphrase is needed")]
    Encrypted,
    #[error("a passphrase was given, but the store is not encrypted")]
    NotEncrypted,
    #[error(transparent)]
    Unlock(#[from] UnlockError),
    #[error(transparent)]
    Passphrase(#[from] ReadPassphraseError),
    #[error("another process is rewriting the store")]
    Rewriting,
    #[error("the store was not adopted: {0}")]
    Foreign(ForeignStore),
    #[error("{}", describe(.0))]
    Sqlite(rusqlite::Error),
    #[error("cannot start the writer thread")]
    Thread(#[source] io::Error),
}

impl From<rusqlite::Error> for OpenStoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Sqlite(error),
        }
    }
}

/// Streams of a database that is gone which are named one by one.
const NAMED: usize = 10;

fn describe_missing(streams: &[String]) -> String {
    let count = streams.len();
    if count == 0 {
        return "the database is gone, but its log is there".to_owned();
    }
    let named = streams[..count.min(NAMED)].join(", ");
    let more = if count > NAMED { ", …" } else { "" };
    format!(
        "the database is gone; the heads file beside it names {count} stream(s) that it held: {named}{more}"
    )
}

/// Returns whether files beside the path show that there was a database. A command that only reads
/// must not take that for an empty place.
pub fn is_missing(path: &Path) -> bool {
    let options = Options::new(path);
    let is_there =
        |suffix| std::fs::metadata(options.beside(suffix)).is_ok_and(|file| file.len() > 0);
    !path.exists() && (is_there("-heads") || is_there("-wal"))
}

/// Refuses to begin afresh where a database was: what was acknowledged would be forgotten.
pub(super) fn refuse_missing(
    options: &Options,
    promises: &HashMap<String, Head>,
) -> Result<(), OpenStoreError> {
    let log = std::fs::metadata(options.beside("-wal")).is_ok_and(|log| log.len() > 0);
    if options.path.exists() || promises.is_empty() && !log {
        return Ok(());
    }
    let mut streams: Vec<String> = promises.keys().cloned().collect();
    streams.sort();
    Err(OpenStoreError::Missing(streams))
}

/// Opens the connection that writes, creating the file and bringing its schema up to date. Nothing
/// is changed before the passphrase is known to be right.
pub(super) fn writer(options: &Options) -> Result<(Connection, Cipher), OpenStoreError> {
    check_version()?;
    create_file(&options.path)?;
    let deadline = Instant::now() + options.busy_timeout;
    loop {
        match prepare_writer(options) {
            // Switching a fresh file to the log needs it alone for a moment, and SQLite does not
            // wait for that.
            Err(OpenStoreError::Locked) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            result => return result,
        }
    }
}

fn prepare_writer(options: &Options) -> Result<(Connection, Cipher), OpenStoreError> {
    let mut connection = connect(options)?;
    let passphrase = options.passphrase.as_ref();
    let cipher = vault::unlock(&connection, passphrase)?;
    if schema::migrate(&mut connection)? {
        // The schema goes to the main file at once, so that losing the log does not lose it. If
        // another connection reads at this moment a later checkpoint does it.
        checkpoint(&connection, "PASSIVE")?;
    }
    let cipher = match (cipher, passphrase) {
        (Some(cipher), _) => cipher,
        (None, Some(passphrase)) => vault::create(&mut connection, passphrase, options.cost)?,
        (None, None) => Cipher::Plain,
    };
    Ok((connection, cipher))
}

/// A connection that writes, set up and nothing more.
pub(super) fn connect(options: &Options) -> Result<Connection, OpenStoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&options.path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenStoreError::ReadOnly);
    }
    configure(&connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    // Checkpoints are made by hand after a commit: SQLite's own ignores a failed fsync and tries it
    // again later.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Opens a connection that can only read.
pub(super) fn reader(options: &Options) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&options.path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    configure(&connection)?;
    Ok(connection)
}

pub(super) fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "foreign_keys", "on")?;
    connection.pragma_update(None, "trusted_schema", "off")?;
    connection.pragma_update(None, "cell_size_check", "on")?;
    // The last one to leave would copy the log and remove it, with several fsyncs: too slow for a
    // short command.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // SQLite would otherwise compile a statement anew whenever a value is bound that its plan could depend on, such as a
    // limit: with each use of most of them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Moves the log into the main file. Returns whether all of it was moved.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> Result<bool, rusqlite::Error> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let (busy, logged, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && logged == moved)
    })
}

fn check_version() -> Result<(), OpenStoreError> {
    let version = rusqlite::version_number();
    if version < OLDEST_SQLITE || version == WITHDRAWN_SQLITE {
        return Err(OpenStoreError::UnsafeSqlite(rusqlite::version()));
    }
    Ok(())
}

/// Returns whether the store at `path` is encrypted; `None` if there is none. Needs no passphrase
/// and changes nothing.
pub fn is_encrypted(path: &Path) -> Result<Option<bool>, OpenStoreError> {
    check_version()?;
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.len() == 0 => return Ok(Some(false)),
        Ok(_) | Err(_) => {}
    }
    let connection = reader(&Options::new(path))?;
    Ok(Some(vault::read(&connection)?.is_some()))
}

/// Creates the directory and the file for their owner only. SQLite gives its other files the mode
/// of the first.
fn create_file(path: &Path) -> Result<(), OpenStoreError> {
    create_directory(path)?;
    create_database(path)
}

pub(super) fn create_directory(path: &Path) -> Result<(), OpenStoreError> {
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        created.map_err(|source| OpenStoreError::Directory {
            path: directory.into(),
            source,
        })?;
    }
    Ok(())
}

fn create_database(path: &Path) -> Result<(), OpenStoreError> {
    let failed = |source| OpenStoreError::File {
        path: path.into(),
        source,
    };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(_) => return Err(OpenStoreError::NotAFile(path.into())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Err(_) => {}
    }
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}
