//! A write that means nothing: it fails where any other write would.

use super::open::Options;
use crate::files::nofollow;
use planwright_engine::port::StoreError;
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

/// More than one page of every file system, so that it needs space of its own.
const PROBE_BYTES: usize = 16 * 1024;

/// Writes the database's first page again as it is, inside a transaction. The commit that follows
/// appends the page to the log and syncs it, as with every other change.
pub(super) fn rewrite_page(connection: &Connection) -> Result<(), rusqlite::Error> {
    let version: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", version)
}

/// Writes and syncs a new file beside the database, and removes it. The log overwrites itself from
/// the start now and then, and needs no space then; values in files, and a log that grows, do.
pub(super) fn take_space(options: &Options) -> Result<(), StoreError> {
    let path = options.beside("-probe");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(&path)
        .and_then(|mut file| {
            file.write_all(&[0; PROBE_BYTES])?;
            file.sync_all()
        });
    let removed = std::fs::remove_file(&path);
    // Another process that probes at this moment may have removed it.
    let removed = removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    written.and(removed).map_err(|error| of_io(&error))
}

/// The error of writing beside the database. It names no path: everybody may ask for it.
fn of_io(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        _ => StoreError::Failed(format!("a file cannot be written: {error}")),
    }
}
