//! One append inside a write transaction: everything is checked against what the file says at this moment.

use super::anchor::Anchor;
use super::fault::{Stop, of_stream};
use super::owner::Owners;
use super::{feed, lease};
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_engine::port::{Append, AppendError, LeaseRule, MessageId, StreamStatus};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

type Stopped = Stop<AppendError>;

/// Number of the stream and of the entry share one integer.
pub(super) const SEQ_BITS: u32 = 32;
const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

pub(super) fn position(id: i64, seq: u64) -> i64 {
    (id << SEQ_BITS) | i64::try_from(seq.min(MAX_SEQ)).expect("32 bits fit")
}

pub(super) fn stream_id(connection: &Connection, name: &str) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM streams WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// The last entry of a stream, found by its place in the table.
pub(super) fn head_of(connection: &Connection, id: i64) -> Result<Head, rusqlite::Error> {
    let sql =
        "SELECT position, hash FROM entries WHERE position BETWEEN ?1 AND ?2 ORDER BY position DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let head = statement.query_row([position(id, 0), position(id, MAX_SEQ)], |row| {
        let position: i64 = row.get(0)?;
        let seq = u64::from(u32::try_from(position & i64::from(u32::MAX)).expect("masked to 32 bits"));
        Ok(Head { seq, hash: Digest::from_bytes(row.get(1)?) })
    });
    Ok(head.optional()?.unwrap_or(Head::EMPTY))
}

pub(super) fn entry_hash(
    connection: &Connection,
    id: i64,
    seq: u64,
) -> Result<Option<Digest>, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT hash FROM entries WHERE position = ?1")?;
    let hash = statement.query_row([position(id, seq)], |row| row.get(0).map(Digest::from_bytes));
    hash.optional()
}

/// Up to `limit` records above `after`.
pub(super) fn records_of(
    connection: &Connection,
    id: i64,
    after: u64,
    limit: usize,
) -> Result<Vec<Record>, rusqlite::Error> {
    let sql = "SELECT position, at, epoch, key, body, hash FROM entries
               WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map([position(id, after), position(id, MAX_SEQ), limit], |row| {
        let position: i64 = row.get(0)?;
        Ok(Record {
            seq: u64::from(u32::try_from(position & i64::from(u32::MAX)).expect("masked to 32 bits")),
            at: planwright_core::time::Timestamp::from_millis(row.get(1)?),
            epoch: row.get(2)?,
            key: row.get(3)?,
            body: row.get(4)?,
            hash: Digest::from_bytes(row.get(5)?),
        })
    })?;
    rows.collect()
}

/// Checks and writes one append. `name` is the stream's name as text.
pub(super) fn append(
    connection: &Connection,
    anchor: &Anchor,
    owners: &mut Owners,
    append: &Append,
    name: &str,
) -> Result<(), Stopped> {
    let stream = &append.stream;
    anchor.check(connection, stream, name).map_err(|error| Stop::Refused(error.into()))?;
    let id = checked_stream(connection, append, name)?;
    match &append.lease {
        LeaseRule::None | LeaseRule::Held { .. } => {}
        LeaseRule::Open { owner, ttl } => lease::open(connection, owners, run_of(stream)?, owner, *ttl)?,
        LeaseRule::Release { .. } => lease::release_held(connection, run_of(stream)?)?,
    }
    for (message, answer) in &append.answers {
        write_answer(connection, stream, *message, answer)?;
    }
    if append.records.is_empty() && append.status.is_none() {
        return Ok(());
    }
    let id = match id {
        Some(id) => {
            update_status(connection, append, id)?;
            id
        }
        None => insert_stream(connection, append, name)?,
    };
    if append.records.is_empty() {
        return Ok(());
    }
    let first = feed::next_ordinal(connection)?;
    for (ordinal, record) in (first..).zip(&append.records) {
        insert_record(connection, stream, position(id, record.seq), ordinal, record)?;
    }
    Ok(())
}

/// The stream's number, once the lease is known to be held and the stream to end where the append expects it to. Three
/// simple questions: SQLite would plan one large one again for every append.
fn checked_stream(connection: &Connection, append: &Append, name: &str) -> Result<Option<i64>, Stopped> {
    // A stale owner is told so before it is told that the stream has grown: it must stop, not try again.
    if let LeaseRule::Held { epoch } | LeaseRule::Release { epoch } = append.lease {
        lease::check_held(connection, run_of(&append.stream)?, epoch)?;
    }
    let id = stream_id(connection, name)?;
    check_head(connection, append, id)?;
    Ok(id)
}

fn check_head(connection: &Connection, append: &Append, id: Option<i64>) -> Result<(), Stopped> {
    let stream = &append.stream;
    let found = match id {
        Some(id) => {
            head_of(connection, id).map_err(|error| Stop::Refused(of_stream(stream, &error).into()))?
        }
        None => Head::EMPTY,
    };
    if found != append.expected {
        let (stream, expected) = (stream.clone(), append.expected);
        return Err(Stop::Refused(AppendError::Conflict { stream, expected, found }));
    }
    follows(append)
}

/// The records follow each other, and the first follows what is expected to be there.
fn follows(append: &Append) -> Result<(), Stopped> {
    let mut seq = append.expected.seq;
    for record in &append.records {
        if record.seq != seq + 1 || record.seq > MAX_SEQ {
            let stream = &append.stream;
            return Err(Stop::failed(format!("record {} of {stream} does not follow {seq}", record.seq)));
        }
        seq = record.seq;
    }
    Ok(())
}

fn insert_record(
    connection: &Connection,
    stream: &StreamName,
    position: i64,
    ordinal: i64,
    record: &Record,
) -> Result<(), Stopped> {
    let sql = "INSERT INTO entries (position, at, epoch, ordinal, hash, key, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = connection.prepare_cached(sql)?;
    let Record { seq: _, at, epoch, key, body, hash } = record;
    let inserted =
        statement.execute(params![position, at.as_millis(), epoch, ordinal, hash.as_bytes(), key, body]);
    match (inserted, key) {
        (Ok(_), _) => Ok(()),
        (Err(error), Some(key)) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(Stop::Refused(AppendError::Duplicate { stream: stream.clone(), key: key.clone() }))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Times in lists come from the journal where there is an entry, so that they can be rebuilt from it.
fn insert_stream(connection: &Connection, append: &Append, name: &str) -> Result<i64, rusqlite::Error> {
    let created_at = append.records.first().map_or_else(lease::now, |record| record.at);
    let updated_at = append.records.last().map_or(created_at, |record| record.at);
    let kind = match append.stream {
        StreamName::Plan(_) => "plan",
        StreamName::Run(_) => "run",
    };
    let status = append.status.as_ref();
    let sql = "INSERT INTO streams (name, kind, plan, status, label, created_at, updated_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.prepare_cached(sql)?.insert(params![
        name,
        kind,
        status.map(|status| status.plan.as_str()),
        status.map(|status| &status.status),
        status.map(|status| &status.label),
        created_at.as_millis(),
        updated_at.as_millis(),
    ])
}

/// Writes only what differs: a status that stays costs no page.
fn update_status(connection: &Connection, append: &Append, id: i64) -> Result<(), rusqlite::Error> {
    let Some(StreamStatus { plan, status, label }) = &append.status else { return Ok(()) };
    let updated_at = append.records.last().map_or_else(lease::now, |record| record.at);
    let sql = "UPDATE streams SET plan = ?2, status = ?3, label = ?4, updated_at = ?5
               WHERE id = ?1 AND (plan IS NOT ?2 OR status IS NOT ?3 OR label IS NOT ?4)";
    connection.prepare_cached(sql)?.execute(params![
        id,
        plan.as_str(),
        status,
        label,
        updated_at.as_millis()
    ])?;
    Ok(())
}

fn write_answer(
    connection: &Connection,
    stream: &StreamName,
    message: MessageId,
    answer: &Result<(), String>,
) -> Result<(), Stopped> {
    let sql = "UPDATE messages SET answered = 1, refusal = ?2 WHERE id = ?1 AND answered = 0";
    let changed = connection.prepare_cached(sql)?.execute(params![message.0, answer.as_ref().err()])?;
    if changed == 1 {
        return Ok(());
    }
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE id = ?1")?;
    if statement.exists([message.0])? {
        let key = format!("answer to message {}", message.0);
        return Err(Stop::Refused(AppendError::Duplicate { stream: stream.clone(), key }));
    }
    Err(Stop::failed(format!("there is no message {}", message.0)))
}

/// What a message's hash is taken over: a command must not change on disk unnoticed.
pub(super) fn message_hash(run: &str, body: &[u8]) -> Digest {
    Digest::of_parts(&[run.as_bytes(), body])
}

pub(super) fn insert_message(
    connection: &Connection,
    run: &RunId,
    body: &[u8],
) -> Result<MessageId, rusqlite::Error> {
    let hash = message_hash(run.as_str(), body);
    let mut statement =
        connection.prepare_cached("INSERT INTO messages (run, body, hash) VALUES (?1, ?2, ?3)")?;
    statement.insert(params![run.as_str(), body, hash.as_bytes()]).map(MessageId)
}

fn run_of(stream: &StreamName) -> Result<&RunId, Stopped> {
    match stream {
        StreamName::Run(run) => Ok(run),
        StreamName::Plan(_) => Err(Stop::failed(format!("{stream} has no lease: only runs are owned"))),
    }
}
