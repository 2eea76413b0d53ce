//! Reading, on connections that cannot write and never wait for the writer.

use super::anchor::Anchor;
use super::brought;
use super::fault::{failed, of_stream, unopened_value};
use super::feed;
use super::identity::Belonging;
use super::lease;
use super::open::{self, Options};
use super::owner::is_alive;
use super::sealed_journal::{
    After, ReadSealedError, SealedEntry, SealedFiles, SealedRow, find_row, unsealed_sql,
};
use super::transaction::{entry_mark, head_of, records_of, stream_id};
use crate::sealing::{self, LabelRow, open_entry};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    FeedOf, Lease, MAX_PAGE_BYTES, MailboxMessage, MessageId, OwnerId, Placed, Position,
    StoreError, StreamCounts, StreamInfo, StreamStatus,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, ToSql, params, params_from_iter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The time a reader waits for a free file descriptor: it may hold up the thread it is on.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_secs(1);
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(10);

/// Connections kept for the next reader. More are opened when more read at once.
const MAX_IDLE: usize = 4;

const INFO_COLUMNS: &str = "name, plan, status, label, created_at, updated_at";

#[derive(Debug)]
pub(super) struct Reader {
    options: Arc<Options>,
    owners_directory: PathBuf,
    anchor: Arc<Anchor>,
    belonging: Arc<Belonging>,
    cipher: Arc<Cipher>,
    sealed: SealedFiles,
    idle: Mutex<Vec<Connection>>,
}

impl Reader {
    pub(super) fn new(
        options: Arc<Options>,
        (anchor, belonging): (Arc<Anchor>, Arc<Belonging>),
        cipher: Arc<Cipher>,
    ) -> Self {
        let owners_directory = options.beside(".owners");
        Self {
            sealed: SealedFiles::new(options.beside("-sealed")),
            options,
            owners_directory,
            anchor,
            belonging,
            cipher,
            idle: Mutex::default(),
        }
    }

    /// Lends a connection to `work`.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let result = work(&connection);
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        result
    }

    /// Opens a connection, or takes one that comes back meanwhile: that no descriptor is free often
    /// passes within a moment.
    fn open(&self) -> Result<Connection, StoreError> {
        let until = Instant::now() + DESCRIPTOR_PATIENCE;
        loop {
            let error = match open::reader(&self.options) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed(&error),
            };
            if !error.may_pass() || Instant::now() >= until {
                return Err(error);
            }
            std::thread::sleep(DESCRIPTOR_PAUSE);
            if let Some(connection) = self.idle().pop() {
                return Ok(connection);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle
            .lock()
            .expect("nothing panics while it holds the connections")
    }

    fn with_rows<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        self.with(|connection| work(connection).map_err(|error| failed(&error)))
    }

    pub(super) fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    pub(super) fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    pub(super) fn read(
        &self,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.with(|connection| {
            self.anchor.check(connection, stream, &stream.to_string())?;
            self.patiently(|| {
                // One snapshot for both looks, or a commit in between would pass for damage.
                let snapshot = connection
                    .unchecked_transaction()
                    .map_err(|error| failed(&error))?;
                let (records, is_cut) = self.read_remains(&snapshot, stream, after, limit)?;
                if records.len() < limit && !is_cut {
                    self.check_end(
                        &snapshot,
                        stream,
                        records.last().map_or(after, |record| record.seq),
                    )?;
                }
                Ok(records)
            })
        })
    }

    /// Reads once more if it failed: a sealed file that is named at one moment can be back in the
    /// database, and removed, at the next.
    fn patiently<T>(&self, read: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match read() {
            Err(StoreError::Damaged { .. }) => read(),
            done => done,
        }
    }

    pub(super) fn sealed_files(&self) -> &SealedFiles {
        &self.sealed
    }

    /// The place of each record in the order of commits.
    pub(super) fn feed(
        &self,
        of: &FeedOf,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Placed>, StoreError> {
        self.with(|connection| self.patiently(|| feed::read((connection, self), of, after, limit)))
    }

    /// Up to `limit` entries of a sealed journal, as they are kept.
    pub(super) fn sealed_page(
        &self,
        stream: &StreamName,
        sealed: &SealedRow,
        after: After,
        (limit, max_bytes): (usize, usize),
    ) -> Result<Vec<SealedEntry>, StoreError> {
        let damaged = |reason: String| StoreError::Damaged {
            stream: stream.clone(),
            reason: format!("its sealed file {}: {reason}", sealed.file),
        };
        let page = self.sealed.page(&sealed.file, after, (limit, max_bytes));
        let page = page.map_err(|error| damaged(error.to_string()))?;
        // The chain shows changes of everything but the end.
        let last = page.last().filter(|last| last.kept.seq >= sealed.head.seq);
        if last.is_some_and(|last| last.kept.head() != sealed.head) {
            return Err(damaged(ReadSealedError::Changed.to_string()));
        }
        Ok(page)
    }

    /// Reads all that is left of a stream, even if its tail is lost. Returns whether the page ended early
    /// because it is large.
    pub(super) fn read_remains(
        &self,
        connection: &Connection,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Record>, bool), StoreError> {
        let most = (limit, MAX_PAGE_BYTES);
        let name = stream.to_string();
        let lost = |error: rusqlite::Error| of_stream(stream, &error);
        let Some(id) = stream_id(connection, &name).map_err(lost)? else {
            return Ok((Vec::new(), false));
        };
        let Some(sealed) = find_row(connection, id).map_err(lost)? else {
            let records = records_of(connection, &self.cipher, &name, id, after, most);
            let records = records.map_err(lost)?;
            let bytes: usize = records.iter().map(|record| record.body.len()).sum();
            return Ok((records, bytes >= MAX_PAGE_BYTES));
        };
        // A body is shorter than it is when sealed, so that a page may have to be filled up.
        let mut bytes = 0;
        let mut records: Vec<Record> = Vec::new();
        while records.len() < limit && bytes < MAX_PAGE_BYTES {
            let after = records.last().map_or(after, |record| record.seq);
            let most = (limit - records.len(), MAX_PAGE_BYTES - bytes);
            let page = self.sealed_page(stream, &sealed, After::Seq(after), most)?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                let record = open_entry(&self.cipher, &name, entry.kept)
                    .map_err(|error| of_stream(stream, &unopened_value(4)(error)))?;
                bytes += record.body.len();
                records.push(record);
            }
        }
        Ok((records, bytes >= MAX_PAGE_BYTES))
    }

    /// Checks that a read which stopped at `last` stopped at the end, and that the owner of the store
    /// wrote that end: in a damaged tree a walk can end too early, and who has only the file can
    /// make up a chain of hashes.
    fn check_end(
        &self,
        connection: &Connection,
        stream: &StreamName,
        last: u64,
    ) -> Result<(), StoreError> {
        let (end, mark) = find_marked_head(connection, &self.cipher, stream)?;
        let damaged = |reason: String| StoreError::Damaged {
            stream: stream.clone(),
            reason,
        };
        if last < end.seq {
            let end = end.seq;
            return Err(damaged(format!(
                "entry {end} is there, but reading ends at {last}"
            )));
        }
        if let Some(marker) = self.belonging.expects()
            && !marker.is_marked(&stream.to_string(), end, mark.as_deref())
        {
            return Err(damaged(format!(
                "entry {} was not written with the key of this store: the journal was changed",
                end.seq
            )));
        }
        Ok(())
    }

    pub(super) fn head(&self, stream: &StreamName) -> Result<Head, StoreError> {
        self.with(|connection| {
            self.anchor.check(connection, stream, &stream.to_string())?;
            find_head(connection, &self.cipher, stream)
        })
    }

    pub(super) fn plans(&self) -> Result<Vec<StreamInfo>, StoreError> {
        let sql = format!(
            "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'plan' AND plan IS NOT NULL
             ORDER BY updated_at DESC, id DESC"
        );
        let info = |row: &Row<'_>| info(row, &self.cipher);
        self.with_rows(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_map([], info)?
                .collect()
        })
    }

    pub(super) fn plans_by_age(
        &self,
        after: Option<(Timestamp, PlanId)>,
        limit: usize,
    ) -> Result<Vec<StreamInfo>, StoreError> {
        let sql = by_age();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match after {
            Some((at, id)) => self.infos(&sql, params![at.as_millis(), id.as_str(), limit]),
            // Nothing is made after the end of time, and every id comes after the empty one.
            None => self.infos(&sql, params![i64::MAX, "", limit]),
        }
    }

    pub(super) fn runs(&self, plan: &PlanId) -> Result<Vec<StreamInfo>, StoreError> {
        let sql = format!(
            "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'run' AND plan = ?1 ORDER BY id"
        );
        let info = |row: &Row<'_>| info(row, &self.cipher);
        self.with_rows(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_map([plan.as_str()], info)?
                .collect()
        })
    }

    pub(super) fn plans_in(
        &self,
        words: &[String],
        until: Option<Timestamp>,
    ) -> Result<Vec<StreamInfo>, StoreError> {
        let until = until
            .unwrap_or(Timestamp::from_millis(i64::MAX))
            .as_millis();
        let sql = plans_in(words.len());
        let words_first = words.iter().map(|word| word as &dyn ToSql);
        let values = words_first.chain([&until as &dyn ToSql]);
        self.infos(&sql, params_from_iter(values))
    }

    pub(super) fn plans_with_runs(&self, word: &str) -> Result<Vec<StreamInfo>, StoreError> {
        self.infos(&plans_with_runs(), [word])
    }

    pub(super) fn runs_in(&self, words: &[String]) -> Result<Vec<StreamInfo>, StoreError> {
        let sql = runs_in(words.len());
        self.infos(&sql, params_from_iter(words))
    }

    /// Streams that may be sealed.
    pub(super) fn infos_to_seal(&self, values: &[Value]) -> Result<Vec<StreamInfo>, StoreError> {
        self.infos(&unsealed_sql(INFO_COLUMNS), params_from_iter(values))
    }

    /// Rows of streams that have nothing to do with each other: one that was tampered with does not
    /// hide the others.
    fn infos(&self, sql: &str, values: impl Params) -> Result<Vec<StreamInfo>, StoreError> {
        self.with_rows(|connection| {
            let mut infos = Vec::new();
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(values)?;
            while let Some(row) = rows.next()? {
                match info(row, &self.cipher) {
                    Err(
                        error @ (rusqlite::Error::FromSqlConversionFailure(..)
                        | rusqlite::Error::InvalidColumnType(..)),
                    ) => {
                        let stream: String = row.get(0).unwrap_or_default();
                        tracing::error!(%stream, %error, "a stream is left out: its row cannot be trusted");
                    }
                    info => infos.push(info?),
                }
            }
            Ok(infos)
        })
    }

    pub(super) fn counts(&self) -> Result<StreamCounts, StoreError> {
        self.with_rows(|connection| {
            let mut counts = StreamCounts::default();
            let mut statement = connection.prepare_cached(COUNTS)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let of_plans = row.get_ref(0)?.as_str()? == "plan";
                let words = if of_plans {
                    &mut counts.plans
                } else {
                    &mut counts.runs
                };
                words.insert(row.get::<_, String>(1)?.into(), row.get(2)?);
            }
            Ok(counts)
        })
    }

    pub(super) fn brought_bytes(&self, by: &Principal) -> Result<u64, StoreError> {
        self.with_rows(|connection| brought::sum(connection, by))
    }

    pub(super) fn info(&self, stream: &StreamName) -> Result<Option<StreamInfo>, StoreError> {
        let sql =
            format!("SELECT {INFO_COLUMNS} FROM streams WHERE name = ?1 AND plan IS NOT NULL");
        let info = |row: &Row<'_>| info(row, &self.cipher);
        self.with_rows(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_row([stream.to_string()], info)
                .optional()
        })
    }

    pub(super) fn lease(&self, run: &RunId) -> Result<Option<Lease>, StoreError> {
        self.with_rows(|connection| lease::current(connection, &self.owners_directory, run))
    }

    pub(super) fn living_owner(&self, run: &RunId) -> Result<Option<OwnerId>, StoreError> {
        self.with_rows(|connection| lease::living_owner(connection, &self.owners_directory, run))
    }

    pub(super) fn is_dead(&self, owner: &OwnerId) -> bool {
        !is_alive(&self.owners_directory, owner)
    }

    /// The unanswered messages of one run, or of all.
    pub(super) fn messages(&self, run: Option<&RunId>) -> Result<Vec<MailboxMessage>, StoreError> {
        let sql = "SELECT id, run, body, hash FROM messages \
                   WHERE answered = 0 AND (?1 IS NULL OR run = ?1) ORDER BY id";
        let rows: Vec<(i64, String, Vec<u8>, [u8; 32])> = self.with_rows(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let columns =
                |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            statement
                .query_map([run.map(RunId::as_str)], columns)?
                .collect()
        })?;
        let message = |(id, run, body, hash): (i64, String, Vec<u8>, [u8; 32])| {
            let changed =
                || StoreError::Failed(format!("message {id} for run {run} was changed on disk"));
            let opened =
                sealing::open_message(&self.cipher, (id, &run), body, Digest::from_bytes(hash));
            let (body, hash) = opened.map_err(|_| changed())?;
            if sealing::message_hash(&run, &body) != hash {
                return Err(changed());
            }
            let run = run.parse().map_err(|_| changed())?;
            Ok(MailboxMessage {
                id: MessageId(id),
                run,
                body,
            })
        };
        rows.into_iter().map(message).collect()
    }

    pub(super) fn answer(
        &self,
        message: MessageId,
    ) -> Result<Option<Result<(), String>>, StoreError> {
        let sql = "SELECT refusal FROM messages WHERE id = ?1 AND answered = 1";
        self.with_rows(|connection| {
            let answer = connection
                .prepare_cached(sql)?
                .query_row([message.0], |row| row.get(0))
                .optional()?;
            let Some(refusal) = answer else {
                return Ok(None);
            };
            let opened = |refusal| sealing::open_refusal(&self.cipher, message.0, refusal);
            let refusal: Option<String> = refusal;
            Ok(Some(
                refusal
                    .map(opened)
                    .transpose()
                    .map_err(unopened_value(0))?
                    .map_or(Ok(()), Err),
            ))
        })
    }
}

fn find_head(
    connection: &Connection,
    cipher: &Cipher,
    stream: &StreamName,
) -> Result<Head, StoreError> {
    let (head, _) = find_kept_head(connection, stream, false)?;
    Ok(sealing::mask_head(cipher, &stream.to_string(), head))
}

/// The last entry of a stream, with its mark.
pub(super) fn find_marked_head(
    connection: &Connection,
    cipher: &Cipher,
    stream: &StreamName,
) -> Result<(Head, Option<Vec<u8>>), StoreError> {
    let (head, mark) = find_kept_head(connection, stream, true)?;
    Ok((sealing::mask_head(cipher, &stream.to_string(), head), mark))
}

/// The last entry as the database has it. A mark stands behind the body, so it is read on demand.
fn find_kept_head(
    connection: &Connection,
    stream: &StreamName,
    with_mark: bool,
) -> Result<(Head, Option<Vec<u8>>), StoreError> {
    let head = || -> Result<(Head, Option<Vec<u8>>), rusqlite::Error> {
        let Some(id) = stream_id(connection, &stream.to_string())? else {
            return Ok((Head::EMPTY, None));
        };
        if let Some(sealed) = find_row(connection, id)? {
            return Ok((sealed.head, sealed.mark));
        }
        let head = head_of(connection, id)?;
        let mark = match with_mark {
            true => entry_mark(connection, id, head.seq)?,
            false => None,
        };
        Ok((head, mark))
    };
    head().map_err(|error| of_stream(stream, &error))
}

const COUNTS: &str =
    "SELECT kind, status, count(*) FROM streams WHERE status IS NOT NULL GROUP BY kind, status";

fn plans_in(words: usize) -> String {
    let places = places(words);
    format!(
        "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'plan' AND status IN ({places}) AND updated_at <= ?
         ORDER BY updated_at DESC, id DESC"
    )
}

fn plans_with_runs() -> String {
    format!(
        "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'plan' AND status = ?1
         AND EXISTS (SELECT 1 FROM streams AS run WHERE run.kind = 'run' AND run.plan = streams.plan)
         ORDER BY updated_at DESC, id DESC"
    )
}

fn runs_in(words: usize) -> String {
    let places = places(words);
    format!(
        "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'run' AND status IN ({places}) ORDER BY id"
    )
}

fn by_age() -> String {
    format!(
        "SELECT {INFO_COLUMNS} FROM streams WHERE kind = 'plan' AND plan IS NOT NULL
         AND created_at <= ?1 AND (created_at < ?1 OR plan > ?2) ORDER BY created_at DESC, plan LIMIT ?3"
    )
}

/// So many question marks.
fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn info(row: &Row<'_>, cipher: &Cipher) -> Result<StreamInfo, rusqlite::Error> {
    let name: String = row.get(0)?;
    let plan: String = row.get(1)?;
    let unreadable = |column, error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    };
    let (status, label): (String, String) = (row.get(2)?, row.get(3)?);
    let (created_at, updated_at): (i64, i64) = (row.get(4)?, row.get(5)?);
    let bound = LabelRow {
        stream: &name,
        plan: &plan,
        status: &status,
        created_at,
        updated_at,
    };
    let label = bound.open(cipher, label).map_err(unopened_value(3))?;
    Ok(StreamInfo {
        stream: name.parse().map_err(|error| unreadable(0, error))?,
        status: StreamStatus {
            plan: plan.parse().map_err(|error| unreadable(1, error))?,
            status: status.into(),
            label,
        },
        created_at: Timestamp::from_millis(created_at),
        updated_at: Timestamp::from_millis(updated_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// Returns the way SQLite means to find the rows of a statement.
    fn way(connection: &Connection, sql: &str) -> String {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
        steps.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        open::configure(&connection).unwrap();
        super::super::schema::migrate(&mut connection).unwrap();
        connection
    }

    #[test]
    fn a_statement_is_compiled_once_whatever_values_it_gets() {
        let connection = migrated();
        let sql = by_age();
        let mut statement = connection.prepare(&sql).unwrap();
        for limit in 1..=5 {
            let mut rows = statement.query(params![i64::MAX, "", limit]).unwrap();
            assert!(rows.next().unwrap().is_none());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }

    #[test]
    fn looking_for_a_few_streams_does_not_look_at_all_of_them() {
        let connection = migrated();
        for (sql, index) in [
            (
                plans_in(2),
                "SEARCH streams USING INDEX streams_by_status (kind=? AND status=?",
            ),
            (
                runs_in(3),
                "SEARCH streams USING INDEX streams_by_status (kind=? AND status=?",
            ),
            (
                by_age(),
                "SEARCH streams USING INDEX streams_by_age (kind=? AND created_at<?)",
            ),
            (
                unsealed_sql(INFO_COLUMNS),
                "SEARCH streams USING INDEX streams_to_seal (status=? AND (updated_at,name)",
            ),
            (
                COUNTS.to_owned(),
                "SCAN streams USING COVERING INDEX streams_by_status",
            ),
        ] {
            let way = way(&connection, &sql);
            assert!(way.starts_with(index), "{sql}: {way}");
        }
        assert!(
            !way(&connection, &by_age()).contains("TEMP B-TREE"),
            "a page is read and not sorted"
        );
    }
}
