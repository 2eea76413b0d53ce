//! What `verify` needs to look at everything, also at what is damaged.

use super::anchor::Loss;
use super::fault::failed;
use super::store::SqliteStore;
use super::{entry_index, idle, recode, vault};
use planwright_core::journal::{Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{ArtifactError, StoreError};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

impl SqliteStore {
    /// The version of SQLite that is built in.
    pub fn sqlite_version() -> &'static str {
        rusqlite::version()
    }

    /// Every stream there is, oldest first.
    pub async fn streams(&self) -> Result<Vec<StreamName>, StoreError> {
        let names = self
            .look(|reader| reader.with(|db| texts(db, "SELECT name FROM streams ORDER BY id")))
            .await?;
        let parse = |name: String| {
            name.parse().map_err(|error| {
                StoreError::Failed(format!("{name:?} cannot be a stream: {error}"))
            })
        };
        names.into_iter().map(parse).collect()
    }

    /// The streams that lost acknowledged entries, found by comparing the heads file with the
    /// database.
    pub async fn damage(&self) -> Result<Vec<Loss>, StoreError> {
        self.look(|reader| {
            reader.with(|connection| {
                reader
                    .anchor()
                    .losses(connection)
                    .map_err(|error| failed(&error))
            })
        })
        .await
    }

    /// The streams of which entries were acknowledged and nothing is left, in order. Streams that
    /// are there are not looked at: reading them says whether they are whole.
    pub async fn missing_streams(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| {
            let present = reader.with(|db| texts(db, "SELECT name FROM streams"))?;
            let missing = reader
                .anchor()
                .promised_beside(&present.into_iter().collect());
            let removed = reader.with(|db| texts(db, "SELECT name FROM removed_journals"))?;
            Ok(missing
                .into_iter()
                .filter(|name| !removed.contains(name))
                .collect())
        })
        .await
    }

    /// The time of the latest change, by the clock of the process that made it; `None` if there is none.
    pub async fn last_change(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT max(updated_at) FROM streams";
        let at: Option<i64> = self
            .look(|reader| {
                reader.with(|db| {
                    db.query_row(sql, [], |row| row.get(0))
                        .map_err(|error| failed(&error))
                })
            })
            .await?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// Lists the faults of the file, as SQLite finds them, and of the journal's indexes; empty if
    /// it is sound. Reads all of it.
    pub async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| {
            reader.with(|db| {
                let mut faults = texts(db, "PRAGMA integrity_check")?;
                faults.retain(|line| line != "ok");
                // A damaged file gives no second opinion worth having.
                if faults.is_empty() {
                    faults = entry_index::find_differences(db).map_err(|error| failed(&error))?;
                }
                Ok(faults)
            })
        })
        .await
    }

    /// Lists the faults of the rows beside the journal. In an encrypted store everything that does
    /// not open is found.
    pub async fn odd_rows(&self) -> Result<Vec<String>, StoreError> {
        self.look(|reader| {
            reader
                .with(|db| recode::check_rows(db, reader.cipher()).map_err(|error| failed(&error)))
        })
        .await
    }

    /// Returns whether files from before the store was encrypted, or from an earlier key, may still
    /// lie around.
    pub async fn is_unfinished(&self) -> Result<bool, StoreError> {
        self.look(|reader| {
            reader.with(|db| vault::is_unfinished(db).map_err(|error| failed(&error)))
        })
        .await
    }

    /// Files that a rewrite of the store, broken off, left behind. `artifacts` is the directory of
    /// the large values.
    pub fn leftovers(&self, artifacts: &Path) -> Result<Vec<PathBuf>, ArtifactError> {
        idle::leftovers(self.options(), artifacts, self.cipher())
    }

    /// Reads what is left of a stream, even if its tail is lost.
    pub async fn read_remains(
        &self,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let stream = stream.clone();
        self.look(move |reader| {
            let read =
                reader.with(|connection| reader.read_remains(connection, &stream, after, limit));
            read.map(|(records, _)| records)
        })
        .await
    }
}

/// The first column of every row.
fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(sql).map_err(|error| failed(&error))?;
    let rows = statement
        .query_map([], |row| row.get(0))
        .map_err(|error| failed(&error))?;
    rows.collect::<Result<_, _>>()
        .map_err(|error| failed(&error))
}
