//! A journal leaves the database: written, read back, and only then taken out.

use super::file::{Draft, Header, ReadSealedError, SealedEntry, SealedFile, Written};
use super::rows::{self, SealedRow};
use crate::sealing::{mask_head, open_entry};
use crate::sqlite::fault::{Stop, failed, of_stream};
use crate::sqlite::open::Options;
use crate::sqlite::reader::Reader;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::transaction::{SEQ_BITS, entry_mark, head_of, position, stream_id};
use crate::sqlite::writer::Writer;
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::{RetainError, StoreError};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

/// Entries that leave the table in one transaction, so that no writer waits for long.
const PORTION: u64 = 1000;
/// Entries that are read at a time.
pub(super) const PAGE: u64 = 500;

/// The file whose lock says which process is at work on what is kept.
pub(super) fn turn_path(options: &Options) -> PathBuf {
    options.beside("-retention")
}

/// The columns of a stream's row, as the database has them.
pub(super) fn read_header(
    connection: &Connection,
    stream: &StreamName,
    id: i64,
    cipher: &Cipher,
) -> Result<Header, rusqlite::Error> {
    let sql = "SELECT plan, status, label, created_at, updated_at FROM streams WHERE id = ?1";
    connection.query_row(sql, [id], |row| {
        Ok(Header {
            plan: row.get(0)?,
            status: row.get(1)?,
            label: row.get(2)?,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
            ..Header::new(stream, cipher.key_id())
        })
    })
}

/// Up to [`PAGE`] entries after this number, as the database has them.
pub(super) fn kept_entries(
    connection: &Connection,
    id: i64,
    after: u64,
) -> Result<Vec<SealedEntry>, rusqlite::Error> {
    let sql = "SELECT position, at, epoch, key, body, hash, ordinal FROM entries
               WHERE position > ?1 AND position < ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let bounds = params![position(id, after), position(id + 1, 0), PAGE];
    statement
        .query_map(bounds, |row| {
            let position: i64 = row.get(0)?;
            let seq = position & i64::from(u32::MAX);
            Ok(SealedEntry {
                ordinal: row.get(6)?,
                kept: Record {
                    seq: seq.unsigned_abs(),
                    at: Timestamp::from_millis(row.get(1)?),
                    epoch: row.get(2)?,
                    key: row.get(3)?,
                    body: row.get(4)?,
                    hash: Digest::from_bytes(row.get(5)?),
                },
            })
        })?
        .collect()
}

/// What was written, and what is known of it.
struct Sealed {
    id: i64,
    /// As the database has it.
    head: Head,
    mark: Option<Vec<u8>>,
    first_ordinal: i64,
    last_ordinal: i64,
    written: Written,
}

/// Works on a stream as it is at one moment. Nothing if there is no such stream.
pub(super) fn in_snapshot<T>(
    reader: &Reader,
    stream: &StreamName,
    work: impl FnOnce(&Connection, i64) -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    let name = stream.to_string();
    reader.with(|connection| {
        reader.anchor().check(connection, stream, &name)?;
        let snapshot = connection
            .unchecked_transaction()
            .map_err(|error| failed(&error))?;
        let id = stream_id(&snapshot, &name).map_err(|error| of_stream(stream, &error))?;
        id.map_or(Ok(None), |id| work(&snapshot, id))
    })
}

/// Writes the journal of one moment to a sealed file, and reads that back.
fn write_file(reader: &Reader, stream: &StreamName, expected: Head) -> Result<Sealed, RetainError> {
    let directory = reader.sealed_files().directory();
    let name = stream.to_string();
    let sealed = in_snapshot(reader, stream, |snapshot, id| {
        let lost = |error: rusqlite::Error| of_stream(stream, &error);
        let head = head_of(snapshot, id).map_err(lost)?;
        if head.seq == 0 || mask_head(reader.cipher(), &name, head) != expected {
            return Ok(None);
        }
        let mark = entry_mark(snapshot, id, head.seq).map_err(lost)?;
        let header = read_header(snapshot, stream, id, reader.cipher()).map_err(lost)?;
        let mut draft = Draft::begin(directory, &header).map_err(|error| of_io(&error))?;
        let mut first_ordinal = 0;
        let mut last_ordinal = 0;
        let mut after = 0;
        loop {
            let page = kept_entries(snapshot, id, after).map_err(lost)?;
            let Some(last) = page.last() else { break };
            if after == 0 {
                first_ordinal = page[0].ordinal;
            }
            (after, last_ordinal) = (last.kept.seq, last.ordinal);
            for entry in &page {
                draft.entry(entry).map_err(|error| of_io(&error))?;
            }
        }
        crash::point("seal: file begun");
        let written = draft.finish(stream).map_err(|error| of_io(&error))?;
        Ok(Some(Sealed {
            id,
            head,
            mark,
            first_ordinal,
            last_ordinal,
            written,
        }))
    })?;
    let sealed = sealed.ok_or_else(|| RetainError::Changed(stream.clone()))?;
    crash::point("seal: file in place");
    let path = directory.join(&sealed.written.name);
    let checked = check_file(&path, reader.cipher());
    let bad = |reason: String| RetainError::BadFile {
        file: sealed.written.name.clone(),
        reason,
    };
    match checked {
        Ok(file) if file.head == sealed.head && file.digest == sealed.written.digest => Ok(sealed),
        Ok(_) => Err(bad(ReadSealedError::Changed.to_string())),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// Reads all of a sealed file, opens its entries and follows their chain.
pub(super) fn check_file(path: &Path, cipher: &Cipher) -> Result<SealedFile, ReadSealedError> {
    check_file_with(path, cipher, |_| Ok(()))
}

/// As [`check_file`], with every entry, opened.
pub(super) fn check_file_with(
    path: &Path,
    cipher: &Cipher,
    mut each: impl FnMut(&Record) -> Result<(), ReadSealedError>,
) -> Result<SealedFile, ReadSealedError> {
    let header = super::verify::read_header_line(path)?;
    if header.key.is_some() && header.key.as_deref() != cipher.key_id() {
        return Err(ReadSealedError::OtherKey);
    }
    // A plain file is read with no key, also by a store that has one.
    let cipher = match header.key {
        Some(_) => cipher,
        None => &Cipher::Plain,
    };
    let stream: StreamName = header
        .stream
        .parse()
        .map_err(|_| ReadSealedError::NotSealed)?;
    let mut head = Head::EMPTY;
    SealedFile::read(
        path,
        |entry| {
            let seq = entry.kept.seq;
            let record = open_entry(cipher, &header.stream, entry.kept);
            let record =
                record.map_err(|_| ReadSealedError::Chain(format!("entry {seq} was changed")))?;
            head = check_chain(head, &stream, [&record])
                .map_err(|error| ReadSealedError::Chain(error.to_string()))?;
            each(&record)
        },
        |_| Ok(()),
    )
}

pub(super) fn of_io(error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::Full,
        std::io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        _ => StoreError::Failed(format!("a sealed file could not be written: {error}")),
    }
}

impl SqliteStore {
    /// Takes a journal out of the database, once it is in a sealed file.
    pub(super) async fn seal_journal(
        &self,
        stream: &StreamName,
        expected: Head,
        now: Timestamp,
    ) -> Result<SealedRow, RetainError> {
        self.clear_leftovers().await?;
        let wanted = stream.clone();
        let sealed = self
            .look(move |reader| Ok(write_file(reader, &wanted, expected)))
            .await??;
        let row = SealedRow {
            id: sealed.id,
            head: sealed.head,
            first_ordinal: sealed.first_ordinal,
            last_ordinal: sealed.last_ordinal,
            file: sealed.written.name,
            digest: sealed.written.digest,
            bytes: sealed.written.bytes,
            sealed_at: now.as_millis(),
            is_cleared: false,
            mark: sealed.mark,
        };
        let inserted = row.clone();
        let named = stream.clone();
        let taken = self
            .write_indexed(move |writer| take_out(writer, &named, &inserted))
            .await?;
        if !taken {
            return Err(RetainError::Changed(stream.clone()));
        }
        crash::point("seal: taken out");
        self.clear_sealed(row.id).await?;
        Ok(row)
    }

    /// Removes the entries of a sealed journal that are still in the table, portion by portion.
    pub(super) async fn clear_sealed(&self, id: i64) -> Result<(), StoreError> {
        loop {
            let done = self
                .write_indexed(move |writer| clear_portion(writer, id))
                .await?;
            if done {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Goes on with what a process that was killed did not finish.
    pub(super) async fn clear_leftovers(&self) -> Result<(), StoreError> {
        let sql = "SELECT stream FROM sealed_journals WHERE cleared = 0";
        let left: Vec<i64> = self
            .look(move |reader| {
                reader.with(|connection| {
                    let mut statement = connection
                        .prepare_cached(sql)
                        .map_err(|error| failed(&error))?;
                    let ids = statement.query_map([], |row| row.get(0));
                    ids.and_then(Iterator::collect)
                        .map_err(|error| failed(&error))
                })
            })
            .await?;
        for id in left {
            self.clear_sealed(id).await?;
        }
        Ok(())
    }
}

/// Writes the row that names the file, in the transaction that takes the first entries out. Returns
/// `false` if the journal is not what was written.
fn take_out(
    writer: &mut Writer,
    stream: &StreamName,
    row: &SealedRow,
) -> Result<bool, Stop<StoreError>> {
    let connection = writer.connection();
    let name = stream.to_string();
    let is_same = stream_id(connection, &name)? == Some(row.id)
        && head_of(connection, row.id)? == row.head
        && rows::find_row(connection, row.id)?.is_none();
    let run = match stream {
        StreamName::Run(run) => run.as_str(),
        StreamName::Plan(_) => "",
    };
    let waiting = "SELECT 1 FROM messages WHERE run = ?1 AND answered = 0";
    if !is_same || connection.prepare_cached(waiting)?.exists([run])? {
        return Ok(false);
    }
    writer.flush_index()?;
    let kind = match stream {
        StreamName::Run(_) => "run",
        StreamName::Plan(_) => "plan",
    };
    let connection = writer.connection();
    rows::insert(connection, kind, row)?;
    connection.execute(
        "DELETE FROM messages WHERE run = ?1 AND answered = 1",
        [run],
    )?;
    crash::point("seal: row written");
    clear_portion(writer, row.id)?;
    Ok(true)
}

/// Removes some entries, and everything that is indexed of them. Returns whether none is left.
fn clear_portion(writer: &mut Writer, id: i64) -> Result<bool, Stop<StoreError>> {
    let connection = writer.connection();
    if rows::find_row(connection, id)?.is_none_or(|row| row.is_cleared) {
        return Ok(true);
    }
    let first = "SELECT min(position) FROM entries WHERE position > ?1 AND position < ?2";
    let bounds = params![position(id, 0), position(id + 1, 0)];
    let first: Option<i64> = connection.query_row(first, bounds, |row| row.get(0))?;
    if let Some(first) = first {
        writer.flush_index()?;
        let connection = writer.connection();
        let from = position(id, (first & i64::from(u32::MAX)).unsigned_abs());
        let until = from
            .saturating_add(PORTION.cast_signed())
            .min(position(id + 1, 0));
        debug_assert_eq!(from >> SEQ_BITS, id);
        let range = params![from, until];
        connection.execute(
            "DELETE FROM entry_places WHERE ordinal IN
             (SELECT ordinal FROM entries WHERE position >= ?1 AND position < ?2)",
            range,
        )?;
        connection.execute(
            "DELETE FROM entry_keys WHERE stream = ?3 AND key IN
             (SELECT key FROM entries WHERE position >= ?1 AND position < ?2 AND key IS NOT NULL)",
            params![from, until, id],
        )?;
        let removed = connection.execute(
            "DELETE FROM entries WHERE position >= ?1 AND position < ?2",
            range,
        )?;
        writer.note_pages(removed as u64 / 2 + 4);
    }
    let connection = writer.connection();
    let left = "SELECT 1 FROM entries WHERE position > ?1 AND position < ?2 LIMIT 1";
    let is_left = connection.prepare_cached(left)?.exists(bounds)?;
    if !is_left {
        connection.execute(
            "UPDATE sealed_journals SET cleared = 1 WHERE stream = ?1",
            [id],
        )?;
    }
    Ok(!is_left)
}
