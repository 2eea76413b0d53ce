//! A sealed journal comes back into the database, at its old places in the order of commits.

use super::file::{ReadSealedError, SealedEntry, SealedFile};
use super::rows::{self, SealedRow};
use super::seal::check_file;
use crate::sqlite::fault::{Stop, failed};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::transaction::{EntryRow, insert_row, position, stream_id};
use crate::sqlite::writer::Writer;
use planwright_core::journal::StreamName;
use planwright_engine::crash;
use planwright_engine::port::{RetainError, StoreError};
use rusqlite::{Connection, params};
use std::path::Path;

impl SqliteStore {
    /// The row of a sealed journal.
    pub(super) async fn sealed_row(
        &self,
        stream: &StreamName,
    ) -> Result<Option<SealedRow>, StoreError> {
        let name = stream.to_string();
        self.look(move |reader| {
            reader.with(|connection| {
                let found = stream_id(connection, &name).and_then(|id| match id {
                    Some(id) => rows::find_row(connection, id),
                    None => Ok(None),
                });
                found.map_err(|error| failed(&error))
            })
        })
        .await
    }

    pub(super) async fn restore_journal(&self, stream: &StreamName) -> Result<(), RetainError> {
        let not_sealed = || RetainError::NotSealed(stream.clone());
        let row = self.sealed_row(stream).await?.ok_or_else(not_sealed)?;
        // What is left of it in the table would be in the way.
        self.clear_sealed(row.id).await?;
        let path = self.sealed_directory().join(&row.file);
        let bad = |reason: String| RetainError::BadFile {
            file: row.file.clone(),
            reason,
        };
        let checked_path = path.clone();
        let cipher = std::sync::Arc::clone(self.cipher());
        let checked = tokio::task::spawn_blocking(move || check_file(&checked_path, &cipher)).await;
        let checked = checked.map_err(|error| bad(error.to_string()))?;
        let checked = checked.map_err(|error| bad(error.to_string()))?;
        if checked.head != row.head || checked.digest != row.digest {
            return Err(bad(ReadSealedError::Changed.to_string()));
        }
        let back = row.clone();
        let named = path.clone();
        let restored = self
            .write_indexed(move |writer| put_back(writer, &back, &named))
            .await?;
        if !restored {
            return Err(RetainError::Changed(stream.clone()));
        }
        crash::point("restore: journal in the database");
        remove_file(&path).map_err(|error| super::seal::of_io(&error))?;
        Ok(())
    }
}

pub(super) fn remove_file(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn put_back(writer: &mut Writer, row: &SealedRow, path: &Path) -> Result<bool, Stop<StoreError>> {
    if rows::find_row(writer.connection(), row.id)?
        .as_ref()
        .map(|found| &found.digest)
        != Some(&row.digest)
    {
        return Ok(false);
    }
    writer.flush_index()?;
    let connection = writer.connection();
    let mut stop = None;
    let read = SealedFile::read(
        path,
        |entry| {
            let inserted = insert_entry(connection, row, &entry);
            inserted.map_err(|error| {
                stop = Some(error);
                ReadSealedError::Changed
            })
        },
        |_| Ok(()),
    );
    if let Some(error) = stop {
        return Err(error.into());
    }
    let read = read.map_err(|error| Stop::failed(error.to_string()))?;
    if read.digest != row.digest {
        return Err(Stop::failed(ReadSealedError::Changed.to_string()));
    }
    rows::delete(connection, row.id)?;
    writer.note_pages(row.bytes / 4096 + 4);
    Ok(true)
}

/// Writes an entry at its old place, with its place in the order of commits and its key.
fn insert_entry(
    connection: &Connection,
    sealed: &SealedRow,
    entry: &SealedEntry,
) -> Result<(), rusqlite::Error> {
    let SealedEntry { ordinal, kept } = entry;
    let id = sealed.id;
    let at = position(id, kept.seq);
    // The mark comes back to where it was.
    let mark = sealed.mark.as_deref();
    let row = EntryRow {
        position: at,
        ordinal: *ordinal,
        at: kept.at,
        epoch: kept.epoch,
        hash: &kept.hash,
        key: kept.key.as_deref(),
        body: &kept.body,
        mark: mark.filter(|_| kept.seq == sealed.head.seq),
    };
    insert_row(connection, &row)?;
    connection
        .prepare_cached("INSERT INTO entry_places (ordinal, position) VALUES (?1, ?2)")?
        .execute([*ordinal, at])?;
    if let Some(key) = &kept.key {
        connection
            .prepare_cached("INSERT INTO entry_keys (stream, key) VALUES (?1, ?2)")?
            .execute(params![id, key])?;
    }
    Ok(())
}
