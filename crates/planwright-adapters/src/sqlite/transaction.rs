//! One append inside a write transaction: everything is checked against what the file says at this
//! moment.

use super::anchor::Anchor;
use super::answers;
use super::brought;
use super::entry_index::{EntryIndex, Placement};
use super::fault::{Stop, of_stream, unopened_value};
use super::identity::Belonging;
use super::known_streams::KnownStreams;
use super::lease;
use super::owner::Owners;
use super::sealed_journal::{SealedRow, find_row};
use crate::sealing::{self, LabelRow, mask_head, open_entry, seal_entry};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, AppendError, LeaseRule, MessageId, StoreError, StreamStatus,
};
use rusqlite::{Connection, OptionalExtension as _, params};

type Stopped = Stop<AppendError>;

/// Number of the stream and of the entry share one integer.
pub(super) const SEQ_BITS: u32 = 32;
const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

pub(super) fn position(id: i64, seq: u64) -> i64 {
    (id << SEQ_BITS) | i64::try_from(seq.min(MAX_SEQ)).expect("32 bits fit")
}

pub(super) fn stream_id(
    connection: &Connection,
    name: &str,
) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM streams WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// The last entry of a stream, found by its place in the table. Its hash is as the file has it.
pub(super) fn head_of(connection: &Connection, id: i64) -> Result<Head, rusqlite::Error> {
    let sql = "SELECT position, hash FROM entries WHERE position BETWEEN ?1 AND ?2 ORDER BY position DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let head = statement.query_row([position(id, 0), position(id, MAX_SEQ)], |row| {
        let position: i64 = row.get(0)?;
        let seq =
            u64::from(u32::try_from(position & i64::from(u32::MAX)).expect("masked to 32 bits"));
        Ok(Head {
            seq,
            hash: Digest::from_bytes(row.get(1)?),
        })
    });
    Ok(head.optional()?.unwrap_or(Head::EMPTY))
}

/// The mark on an entry.
pub(super) fn entry_mark(
    connection: &Connection,
    id: i64,
    seq: u64,
) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT mark FROM entries WHERE position = ?1")?;
    let mark = statement.query_row([position(id, seq)], |row| row.get(0));
    Ok(mark.optional()?.flatten())
}

pub(super) fn entry_hash(
    connection: &Connection,
    id: i64,
    seq: u64,
) -> Result<Option<Digest>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT hash FROM entries WHERE position = ?1")?;
    let hash = statement.query_row([position(id, seq)], |row| {
        row.get(0).map(Digest::from_bytes)
    });
    hash.optional()
}

/// Up to `limit` records above `after`.
pub(super) fn records_of(
    connection: &Connection,
    cipher: &Cipher,
    name: &str,
    id: i64,
    after: u64,
    (limit, max_bytes): (usize, usize),
) -> Result<Vec<Record>, rusqlite::Error> {
    let sql = "SELECT position, at, epoch, key, body, hash FROM entries
               WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map([position(id, after), position(id, MAX_SEQ), limit], |row| {
        let position: i64 = row.get(0)?;
        let kept = Record {
            seq: u64::from(
                u32::try_from(position & i64::from(u32::MAX)).expect("masked to 32 bits"),
            ),
            at: planwright_core::time::Timestamp::from_millis(row.get(1)?),
            epoch: row.get(2)?,
            key: row.get(3)?,
            body: row.get(4)?,
            hash: Digest::from_bytes(row.get(5)?),
        };
        open_entry(cipher, name, kept).map_err(unopened_value(4))
    })?;
    let mut bytes = 0;
    let mut records = Vec::new();
    for row in rows {
        let record = row?;
        bytes += record.body.len();
        records.push(record);
        if bytes >= max_bytes {
            break;
        }
    }
    Ok(records)
}

/// The parts of the writer that an append needs, inside a write transaction.
pub(super) struct Session<'a> {
    pub(super) connection: &'a Connection,
    pub(super) cipher: &'a Cipher,
    pub(super) anchor: &'a Anchor,
    pub(super) belonging: &'a Belonging,
    pub(super) owners: &'a mut Owners,
    pub(super) index: &'a mut EntryIndex,
    pub(super) known: &'a mut KnownStreams,
}

/// Checks and writes one append. `name` is the stream's name as text.
pub(super) fn append(session: Session<'_>, append: &Append, name: &str) -> Result<(), Stopped> {
    let Session {
        connection,
        cipher,
        anchor,
        belonging,
        owners,
        index,
        known,
    } = session;
    let stream = &append.stream;
    anchor
        .check(connection, stream, name)
        .map_err(|error| Stop::Refused(error.into()))?;
    let id = match known.find(append, name) {
        Some(id) => {
            follows(append)?;
            Some(id)
        }
        None => checked_stream(connection, cipher, append, name)?,
    };
    match &append.lease {
        LeaseRule::None | LeaseRule::Held { .. } => {}
        LeaseRule::Open { owner, ttl } => {
            lease::open(connection, owners, run_of(stream)?, owner, *ttl)?;
        }
        LeaseRule::Release { .. } => lease::release_held(connection, run_of(stream)?)?,
    }
    for (message, answer) in &append.answers {
        write_answer((connection, cipher), stream, *message, answer)?;
    }
    for claim in &append.requests {
        answers::note_change(connection, claim, stream)?;
    }
    brought::count(connection, stream, &append.brought)?;
    if !append.offers.is_empty() {
        let reason = "a store in a file has no offers to workers".to_owned();
        return Err(Stop::failed(reason));
    }
    if append.records.is_empty() && append.status.is_none() {
        if let Some(id) = id {
            known.note(append, name, id);
        }
        return Ok(());
    }
    let id = match id {
        Some(id) => {
            update_status((connection, cipher), append, name, id)?;
            id
        }
        None => insert_stream((connection, cipher), append, name)?,
    };
    // One mark per append: it covers the entries before it by their hashes.
    let last = append.records.last().map(Record::head);
    let mark = belonging
        .writes()
        .and_then(|marker| Some(marker.mark(name, last?)));
    for record in &append.records {
        let kept = seal_entry(cipher, name, record).map_err(unsealed)?;
        let position = position(id, record.seq);
        match index.place(connection, position, kept.key.as_deref())? {
            Placement::At(ordinal) => {
                let row = EntryRow {
                    position,
                    ordinal,
                    at: record.at,
                    epoch: record.epoch,
                    hash: &kept.hash,
                    key: kept.key.as_deref(),
                    body: &kept.body,
                    mark: mark
                        .as_ref()
                        .filter(|_| last == Some(record.head()))
                        .map(|mark| &mark[..]),
                };
                insert_row(connection, &row)?;
            }
            Placement::DuplicateKey => {
                return Err(Stop::Refused(AppendError::Duplicate {
                    stream: stream.clone(),
                    key: record.key.clone().unwrap_or_default(),
                }));
            }
        }
    }
    known.note(append, name, id);
    Ok(())
}

/// The stream's number, once the lease is known to be held and the stream to end where the append
/// expects it to. Three simple questions: SQLite would plan one large one again for every append.
fn checked_stream(
    connection: &Connection,
    cipher: &Cipher,
    append: &Append,
    name: &str,
) -> Result<Option<i64>, Stopped> {
    // A stale owner is told so before it is told that the stream has grown: it must stop, not try
    // again.
    if let LeaseRule::Held { epoch } | LeaseRule::Release { epoch } = append.lease {
        lease::check_held(connection, run_of(&append.stream)?, epoch)?;
    }
    let id = stream_id(connection, name)?;
    let sealed = match id {
        Some(id) => find_row(connection, id)?,
        None => None,
    };
    check_head((connection, cipher), append, name, (id, sealed.as_ref()))?;
    if let Some(sealed) = sealed
        && !append.records.is_empty()
    {
        return Err(Stop::Refused(
            StoreError::Sealed {
                stream: append.stream.clone(),
                file: sealed.file,
            }
            .into(),
        ));
    }
    Ok(id)
}

fn check_head(
    (connection, cipher): (&Connection, &Cipher),
    append: &Append,
    name: &str,
    (id, sealed): (Option<i64>, Option<&SealedRow>),
) -> Result<(), Stopped> {
    let stream = &append.stream;
    let found = match id {
        Some(id) => {
            let head = match sealed {
                Some(sealed) => Ok(sealed.head),
                None => head_of(connection, id),
            };
            let head = head.map_err(|error| Stop::Refused(of_stream(stream, &error).into()))?;
            mask_head(cipher, name, head)
        }
        None => Head::EMPTY,
    };
    if found != append.expected {
        let stream = stream.clone();
        let expected = append.expected;
        return Err(Stop::Refused(AppendError::Conflict {
            stream,
            expected,
            found,
        }));
    }
    follows(append)
}

/// The records follow each other, and the first follows what is expected to be there.
fn follows(append: &Append) -> Result<(), Stopped> {
    let mut seq = append.expected.seq;
    for record in &append.records {
        if record.seq != seq + 1 || record.seq > MAX_SEQ {
            let stream = &append.stream;
            return Err(Stop::failed(format!(
                "record {} of {stream} does not follow {seq}",
                record.seq
            )));
        }
        seq = record.seq;
    }
    Ok(())
}

/// An entry as the table has it.
pub(super) struct EntryRow<'a> {
    pub(super) position: i64,
    pub(super) ordinal: i64,
    pub(super) at: Timestamp,
    pub(super) epoch: u64,
    pub(super) hash: &'a Digest,
    pub(super) key: Option<&'a str>,
    pub(super) body: &'a [u8],
    /// The mark of the owner, on the last entry of an append.
    pub(super) mark: Option<&'a [u8]>,
}

pub(super) fn insert_row(
    connection: &Connection,
    row: &EntryRow<'_>,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO entries (position, at, epoch, ordinal, hash, key, body, mark)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.prepare_cached(sql)?.execute(params![
        row.position,
        row.at.as_millis(),
        row.epoch,
        row.ordinal,
        row.hash.as_bytes(),
        row.key,
        row.body,
        row.mark
    ])?;
    Ok(())
}

/// Times in lists come from the journal where there is an entry, so that they can be rebuilt from
/// it.
fn insert_stream(
    (connection, cipher): (&Connection, &Cipher),
    append: &Append,
    name: &str,
) -> Result<i64, Stopped> {
    let created_at = append
        .records
        .first()
        .map_or_else(lease::now, |record| record.at);
    let updated_at = append.records.last().map_or(created_at, |record| record.at);
    let kind = match append.stream {
        StreamName::Plan(_) => "plan",
        StreamName::Run(_) => "run",
    };
    let status = append.status.as_ref();
    let label = match status {
        Some(status) => {
            let times = (created_at.as_millis(), updated_at.as_millis());
            Some(
                label_row(name, status, times)
                    .seal(cipher, &status.label)
                    .map_err(unsealed)?,
            )
        }
        None => None,
    };
    let sql = "INSERT INTO streams (name, kind, plan, status, label, created_at, updated_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let id = connection.prepare_cached(sql)?.insert(params![
        name,
        kind,
        status.map(|status| status.plan.as_str()),
        status.map(|status| status.status.as_str()),
        label,
        created_at.as_millis(),
        updated_at.as_millis(),
    ])?;
    Ok(id)
}

/// Replaces what is cached about a stream, also against what its journal says.
pub(super) fn correct_status(
    tables: (&Connection, &Cipher),
    stream: StreamName,
    status: StreamStatus,
) -> Result<(), Stop<StoreError>> {
    let name = stream.to_string();
    let Some(id) = stream_id(tables.0, &name)? else {
        return Ok(());
    };
    let append = Append {
        stream,
        expected: Head::EMPTY,
        records: Vec::new(),
        lease: LeaseRule::None,
        status: Some(status),
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    };
    update_status(tables, &append, &name, id).map_err(|stop| match stop {
        Stop::Sqlite(error) => Stop::Sqlite(error),
        Stop::Refused(error) => Stop::failed(error.to_string()),
    })
}

/// Writes only what differs: a status that stays costs no page.
fn update_status(
    (connection, cipher): (&Connection, &Cipher),
    append: &Append,
    name: &str,
    id: i64,
) -> Result<(), Stopped> {
    let Some(
        whole @ StreamStatus {
            plan,
            status,
            label,
        },
    ) = &append.status
    else {
        return Ok(());
    };
    // A word alone says nothing new, and changes no time: it is only kept right.
    let updated_at = append.records.last().map(|record| record.at.as_millis());
    let label = if cipher.is_sealed() {
        // Sealed texts always differ, so SQLite cannot tell.
        let Sameness::Differs {
            times: (created_at, before),
        } = same_status(connection, cipher, name, whole)?
        else {
            return Ok(());
        };
        let times = (created_at, updated_at.unwrap_or(before));
        label_row(name, whole, times)
            .seal(cipher, label)
            .map_err(unsealed)?
    } else {
        label.as_str().into()
    };
    let sql = "UPDATE streams SET plan = ?2, status = ?3, label = ?4, updated_at = coalesce(?5, updated_at)
               WHERE id = ?1 AND (plan IS NOT ?2 OR status IS NOT ?3 OR label IS NOT ?4)";
    connection.prepare_cached(sql)?.execute(params![
        id,
        plan.as_str(),
        status.as_str(),
        label,
        updated_at
    ])?;
    Ok(())
}

/// Returns whether a row already holds what is to be written.
enum Sameness {
    Same,
    /// When it was made, and when it last changed.
    Differs {
        times: (i64, i64),
    },
}

/// Looks whether the row of an encrypted store says this already.
fn same_status(
    connection: &Connection,
    cipher: &Cipher,
    name: &str,
    wanted: &StreamStatus,
) -> Result<Sameness, Stopped> {
    let sql = "SELECT plan, status, label, created_at, updated_at FROM streams WHERE name = ?1";
    type Found = (Option<String>, Option<String>, Option<String>, i64, i64);
    let (plan, status, label, created_at, updated_at): Found =
        connection.prepare_cached(sql)?.query_row([name], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })?;
    let times = (created_at, updated_at);
    let same = plan.as_deref() == Some(wanted.plan.as_str())
        && status.as_deref() == Some(wanted.status.as_str())
        && label.is_some_and(|label| {
            label_row(name, wanted, times)
                .open(cipher, label)
                .is_ok_and(|label| label == wanted.label)
        });
    Ok(if same {
        Sameness::Same
    } else {
        Sameness::Differs { times }
    })
}

fn label_row<'a>(
    stream: &'a str,
    status: &'a StreamStatus,
    (created_at, updated_at): (i64, i64),
) -> LabelRow<'a> {
    LabelRow {
        stream,
        plan: status.plan.as_str(),
        status: status.status.as_str(),
        created_at,
        updated_at,
    }
}

fn unsealed(error: crate::vault::SealError) -> Stopped {
    Stop::failed(error.to_string())
}

fn write_answer(
    (connection, cipher): (&Connection, &Cipher),
    stream: &StreamName,
    message: MessageId,
    answer: &Result<(), String>,
) -> Result<(), Stopped> {
    let sql = "UPDATE messages SET answered = 1, refusal = ?2 WHERE id = ?1 AND answered = 0";
    let refusal = answer
        .as_ref()
        .err()
        .map(|words| sealing::seal_refusal(cipher, message.0, words));
    let refusal = refusal.transpose().map_err(unsealed)?;
    let changed = connection
        .prepare_cached(sql)?
        .execute(params![message.0, refusal])?;
    if changed == 1 {
        return Ok(());
    }
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE id = ?1")?;
    if statement.exists([message.0])? {
        let key = format!("answer to message {}", message.0);
        return Err(Stop::Refused(AppendError::Duplicate {
            stream: stream.clone(),
            key,
        }));
    }
    Err(Stop::failed(format!("there is no message {}", message.0)))
}

pub(super) fn insert_message(
    (connection, cipher): (&Connection, &Cipher),
    run: &RunId,
    body: &[u8],
) -> Result<MessageId, Stop<StoreError>> {
    let hash = sealing::message_hash(run.as_str(), body);
    let mut statement =
        connection.prepare_cached("INSERT INTO messages (run, body, hash) VALUES (?1, ?2, ?3)")?;
    if !cipher.is_sealed() {
        return Ok(MessageId(statement.insert(params![
            run.as_str(),
            body,
            hash.as_bytes()
        ])?));
    }
    // It is sealed for its number, which is only known once it has a row.
    let id = statement.insert(params![run.as_str(), [0_u8; 0], [0_u8; 0]])?;
    let sealed = sealing::seal_message(cipher, (id, run.as_str()), body, hash);
    let (body, hash) = sealed.map_err(|error| Stop::failed(error.to_string()))?;
    let sql = "UPDATE messages SET body = ?2, hash = ?3 WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![id, body, hash.as_bytes()])?;
    Ok(MessageId(id))
}

fn run_of(stream: &StreamName) -> Result<&RunId, Stopped> {
    match stream {
        StreamName::Run(run) => Ok(run),
        StreamName::Plan(_) => Err(Stop::failed(format!(
            "{stream} has no lease: only runs are owned"
        ))),
    }
}
