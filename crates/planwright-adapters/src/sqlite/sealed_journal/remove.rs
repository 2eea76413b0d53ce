//! Sealed journals are removed for good.

use super::file::{SealedFile, is_sealed_name};
use super::port::Turn;
use super::restore::remove_file;
use super::rows::{self, SealedRow, is_removed};
use super::seal::of_io;
use crate::files::FileArtifacts;
use crate::sqlite::brought;
use crate::sqlite::fault::{Stop, failed};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::transaction::{entry_hash, stream_id};
use crate::sqlite::writer::Writer;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::{Removed, RetainError, StoreError};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;

/// Names of removed journals that are remembered: the file of heads is cut long before there are
/// this many.
const MAX_REMEMBERED: u64 = 10_000;

impl SqliteStore {
    pub(super) async fn remove_journals(
        &self,
        streams: &[StreamName],
        now: Timestamp,
    ) -> Result<Removed, RetainError> {
        let mut rows = Vec::new();
        for stream in streams {
            let not_sealed = || RetainError::NotSealed(stream.clone());
            let row = self.sealed_row(stream).await?.ok_or_else(not_sealed)?;
            self.clear_sealed(row.id).await?;
            rows.push((stream.clone(), row));
        }
        // A run that was forked from one of them may be about to name the same large values: they
        // get their time of grace anew.
        self.touch_artifacts(&rows).await?;
        let forgotten = rows.clone();
        self.write_indexed(move |writer| forget(writer, &forgotten, now))
            .await?;
        crash::point("remove: rows forgotten");
        let mut removed = Removed::default();
        for (_, row) in &rows {
            let path = self.sealed_directory().join(&row.file);
            remove_file(&path).map_err(|error| of_io(&error))?;
            removed.files += 1;
            removed.bytes += row.bytes;
        }
        Ok(removed)
    }

    async fn touch_artifacts(&self, rows: &[(StreamName, SealedRow)]) -> Result<(), StoreError> {
        let files: Vec<String> = rows.iter().map(|(_, row)| row.file.clone()).collect();
        let artifacts = FileArtifacts::with_cipher(
            self.options().beside("-artifacts"),
            Arc::clone(self.cipher()),
        );
        self.look(move |reader| {
            for file in files {
                let path = reader.sealed_files().directory().join(&file);
                let mut named = std::collections::HashSet::new();
                // A file that is missing or damaged names nothing any more.
                drop(super::seal::check_file_with(
                    &path,
                    reader.cipher(),
                    |record| {
                        super::artifacts::collect_digests(&record.body, &mut named);
                        Ok(())
                    },
                ));
                for digest in named {
                    artifacts.touch(&digest);
                }
            }
            Ok(())
        })
        .await
    }

    /// Removes sealed files that a process which was killed left behind: no row names them, and the
    /// database holds every entry of theirs, or the journal was removed for good. A file that holds
    /// anything else stays: it may be the only copy. Returns what was removed.
    pub async fn remove_unnamed_sealed_files(&self) -> Result<Removed, StoreError> {
        // A process that seals has files that no row names yet.
        let Some(_turn) = self.lock_retention(Turn::Exclusive)? else {
            return Ok(Removed::default());
        };
        self.clear_leftovers().await?;
        self.look(|reader| {
            let directory = reader.sealed_files().directory();
            let entries = match std::fs::read_dir(directory) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Removed::default());
                }
                entries => entries.map_err(|error| of_io(&error))?,
            };
            let named: std::collections::HashSet<String> = reader
                .with(|connection| rows::all(connection).map_err(|error| failed(&error)))?
                .into_iter()
                .map(|(_, row)| row.file)
                .collect();
            let mut removed = Removed::default();
            for entry in entries {
                let entry = entry.map_err(|error| of_io(&error))?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = entry.path();
                let is_left_over = name.starts_with(".tmp-")
                    || is_sealed_name(&name)
                        && !named.contains(&name)
                        && reader
                            .with(|db| is_left_over(db, &path).map_err(|error| failed(&error)))?;
                if !is_left_over {
                    continue;
                }
                removed.files += 1;
                removed.bytes += entry.metadata().map_or(0, |file| file.len());
                remove_file(&entry.path()).map_err(|error| of_io(&error))?;
            }
            Ok(removed)
        })
        .await
    }
}

/// Returns whether nothing is lost with a sealed file that no row names.
fn is_left_over(connection: &Connection, path: &Path) -> Result<bool, rusqlite::Error> {
    // As the file has it: the same key, or none, made the hashes of the database.
    let Ok(file) = SealedFile::read(path, |_| Ok(()), |_| Ok(())) else {
        return Ok(false);
    };
    let name = file.stream.to_string();
    if is_removed(connection, &name, file.head.seq)? {
        return Ok(true);
    }
    let Some(id) = stream_id(connection, &name)? else {
        return Ok(false);
    };
    match rows::find_row(connection, id)? {
        Some(row) => Ok(row.head == file.head),
        None => Ok(entry_hash(connection, id, file.head.seq)? == Some(file.head.hash)),
    }
}

fn forget(
    writer: &mut Writer,
    rows: &[(StreamName, SealedRow)],
    now: Timestamp,
) -> Result<(), Stop<StoreError>> {
    let connection = writer.connection();
    for (stream, row) in rows {
        let name = stream.to_string();
        if rows::find_row(connection, row.id)?.is_none() {
            continue;
        }
        let sql = "INSERT INTO removed_journals (name, seq, removed_at) VALUES (?1, ?2, ?3)
                   ON CONFLICT (name) DO UPDATE SET seq = max(seq, ?2), removed_at = ?3";
        connection.execute(sql, params![name, row.head.seq, now.as_millis()])?;
        rows::raise_floor(connection, row.last_ordinal, row.head.seq)?;
        rows::delete(connection, row.id)?;
        connection.execute("DELETE FROM streams WHERE id = ?1", [row.id])?;
        connection.execute("DELETE FROM losses WHERE stream = ?1", [&name])?;
        brought::give_back(connection, stream)?;
        if let StreamName::Run(run) = stream {
            connection.execute("DELETE FROM leases WHERE run = ?1", [run.as_str()])?;
            connection.execute("DELETE FROM messages WHERE run = ?1", [run.as_str()])?;
        }
    }
    let sql = "DELETE FROM removed_journals WHERE name IN
               (SELECT name FROM removed_journals ORDER BY removed_at DESC, name LIMIT -1 OFFSET ?1)";
    connection.execute(sql, [MAX_REMEMBERED])?;
    Ok(())
}
