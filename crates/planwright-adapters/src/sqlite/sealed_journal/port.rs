//! What bounds the store, as the engine sees it.

use super::rows::{COLUMNS, SealedRow, row};
use super::seal::turn_path;
use crate::sealing::mask_head;
use crate::sqlite::fault::failed;
use crate::sqlite::reader::Reader;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::transaction::{head_of, position, stream_id};
use planwright_core::journal::{Head, StreamName};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, Position, Removed, RetainError, RetentionStore, RetentionTurn, SealCursor,
    SealedJournal, StoreError, StreamInfo,
};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, params};
use std::fs::{OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;

/// Who may have the lock on what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Turn {
    /// The one that seals and removes.
    Exclusive,
    /// Those that copy the files of the store.
    Shared,
}

impl SqliteStore {
    /// Takes the lock; `None` if another process has it.
    pub(in crate::sqlite) fn lock_retention(
        &self,
        turn: Turn,
    ) -> Result<Option<std::fs::File>, StoreError> {
        let path = turn_path(self.options());
        let cannot = |error: std::io::Error| {
            StoreError::Failed(format!("{} cannot be locked: {error}", path.display()))
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let file = match file {
            // Where nothing may be written, nothing is sealed or removed either.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Ok(None);
            }
            opened => opened.map_err(cannot)?,
        };
        let locked = match turn {
            Turn::Exclusive => file.try_lock(),
            Turn::Shared => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}

impl Reader {
    fn describe(&self, name: &str, sealed: SealedRow) -> Result<SealedJournal, StoreError> {
        let wrong = |what: &str| StoreError::Failed(format!("{what:?} cannot be a stream"));
        Ok(SealedJournal {
            stream: name.parse().map_err(|_| wrong(name))?,
            head: mask_head(self.cipher(), name, sealed.head),
            file: sealed.file,
            bytes: sealed.bytes,
            sealed_at: Timestamp::from_millis(sealed.sealed_at),
        })
    }

    fn sealed_journal(&self, stream: &StreamName) -> Result<Option<SealedJournal>, StoreError> {
        let name = stream.to_string();
        let found = self.with(|connection| {
            let found = || -> Result<Option<SealedRow>, rusqlite::Error> {
                match stream_id(connection, &name)? {
                    Some(id) => super::find_row(connection, id),
                    None => Ok(None),
                }
            };
            found().map_err(|error| failed(&error))
        })?;
        found.map(|sealed| self.describe(&name, sealed)).transpose()
    }

    fn sealed_plans(
        &self,
        until: Timestamp,
        after: Option<(Timestamp, StreamName)>,
        limit: usize,
    ) -> Result<Vec<SealedJournal>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.with(|connection| {
            let found = || -> Result<Vec<(SealedRow, String)>, rusqlite::Error> {
                let (time, id) = match after {
                    Some((time, stream)) => {
                        let id = stream_id(connection, &stream.to_string())?;
                        (time.as_millis(), id.unwrap_or(0))
                    }
                    None => (i64::MIN, 0),
                };
                let columns = COLUMNS.replace("stream,", "j.stream,");
                let sql = format!(
                    "SELECT {columns}, name FROM sealed_journals AS j
                     JOIN streams ON streams.id = j.stream
                     WHERE j.kind = 'plan' AND sealed_at <= ?1 AND (sealed_at, j.stream) > (?2, ?3)
                     ORDER BY sealed_at, j.stream LIMIT ?4"
                );
                connection
                    .prepare_cached(&sql)?
                    .query_map(params![until.as_millis(), time, id, limit], |found| {
                        Ok((row(found)?, found.get(11)?))
                    })?
                    .collect()
            };
            found().map_err(|error| failed(&error))
        })?;
        let describe = |(sealed, name): (SealedRow, String)| self.describe(&name, sealed);
        found.into_iter().map(describe).collect()
    }

    fn last_position(&self, stream: &StreamName) -> Result<Option<Position>, StoreError> {
        let name = stream.to_string();
        let sql = "SELECT ordinal FROM entries WHERE position = ?1";
        let ordinal: Option<i64> = self.with(|connection| {
            let found = || -> Result<Option<i64>, rusqlite::Error> {
                let Some(id) = stream_id(connection, &name)? else {
                    return Ok(None);
                };
                if let Some(sealed) = super::find_row(connection, id)? {
                    return Ok(Some(sealed.last_ordinal));
                }
                let last = position(id, head_of(connection, id)?.seq);
                connection
                    .prepare_cached(sql)?
                    .query_row([last], |row| row.get(0))
                    .optional()
            };
            found().map_err(|error| failed(&error))
        })?;
        Ok(ordinal.map(|ordinal| Position(ordinal.unsigned_abs())))
    }
}

/// The streams that may be sealed. Each status has its own range of the index.
pub(in crate::sqlite) fn unsealed_sql(columns: &str) -> String {
    format!(
        "SELECT {columns} FROM streams
         WHERE sealed = 0 AND status = ?1 AND updated_at <= ?2 AND (updated_at, name) > (?3, ?4)
           AND kind = ?5 AND plan IS NOT NULL
         ORDER BY updated_at, name LIMIT ?6"
    )
}

impl RetentionStore for SqliteStore {
    fn take_turn(&self) -> Result<Option<RetentionTurn>, StoreError> {
        let turn = self.lock_retention(Turn::Exclusive)?;
        Ok(turn.map(|turn| Box::new(turn) as RetentionTurn))
    }

    fn unsealed<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words: Vec<(String, &'static str)> = statuses
            .iter()
            .map(|status| {
                let kind = match status {
                    CachedStatus::Run(_) => "run",
                    _ => "plan",
                };
                (status.to_string(), kind)
            })
            .collect();
        Box::pin(async move {
            self.look(move |reader| {
                let (time, name) = match after {
                    Some((time, stream)) => (time.as_millis(), stream.to_string()),
                    None => (i64::MIN, String::new()),
                };
                let limit_value = i64::try_from(limit).unwrap_or(i64::MAX);
                let mut found = Vec::new();
                for (word, kind) in words {
                    let values = [
                        Value::Text(word),
                        Value::Integer(until.as_millis()),
                        Value::Integer(time),
                        Value::Text(name.clone()),
                        Value::Text(kind.to_owned()),
                        Value::Integer(limit_value),
                    ];
                    found.extend(reader.infos_to_seal(&values)?);
                }
                found.sort_by_cached_key(|info| (info.updated_at, info.stream.to_string()));
                found.truncate(limit);
                Ok(found)
            })
            .await
        })
    }

    fn last_position<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<Position>, StoreError>> {
        Box::pin(async { self.reader().last_position(stream) })
    }

    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        expected: Head,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<SealedJournal, RetainError>> {
        Box::pin(async move {
            self.seal_journal(stream, expected, now).await?;
            let sealed = self.reader().sealed_journal(stream)?;
            sealed.ok_or_else(|| RetainError::Changed(stream.clone()))
        })
    }

    fn sealed<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<SealedJournal>, StoreError>> {
        Box::pin(async { self.reader().sealed_journal(stream) })
    }

    fn sealed_plans<'a>(
        &'a self,
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SealedJournal>, StoreError>> {
        Box::pin(self.look(move |reader| reader.sealed_plans(until, after, limit)))
    }

    fn restore<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<(), RetainError>> {
        Box::pin(self.restore_journal(stream))
    }

    fn remove<'a>(
        &'a self,
        streams: &'a [StreamName],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Removed, RetainError>> {
        Box::pin(self.remove_journals(streams, now))
    }

    fn remove_unused_artifacts(
        &self,
        before: Timestamp,
        dry_run: bool,
    ) -> BoxFuture<'_, Result<Removed, StoreError>> {
        Box::pin(self.remove_unused(before, dry_run))
    }
}
