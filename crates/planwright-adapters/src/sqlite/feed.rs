//! The order of commits over all streams.
//!
//! Every entry carries its ordinal, given inside the write transaction that inserts it.
//! Transactions are one after the other, so a reader's snapshot never holds an ordinal without all
//! lower ones. The last few entries are not in the index of ordinals yet (`entry_index`): they are
//! read from the streams that have such entries.

use super::fault::{failed, of_stream};
use super::sealing::{open_entry, unopened};
use super::transaction::{SEQ_BITS, head_of, position, stream_id};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::journal::{Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{FeedOf, Placed, Position, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::collections::BTreeMap;

/// Up to `limit` records with a position above `after`.
pub(super) fn read(
    connection: &Connection,
    cipher: &Cipher,
    of: &FeedOf,
    after: Position,
    limit: usize,
) -> Result<Vec<Placed>, StoreError> {
    // One snapshot for all looks: the streams of a plan must be of one moment.
    let snapshot = connection
        .unchecked_transaction()
        .map_err(|error| failed(&error))?;
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    match of {
        FeedOf::All => all(
            &snapshot,
            cipher,
            after,
            i64::try_from(limit).unwrap_or(i64::MAX),
        ),
        FeedOf::Plan(plan) => of_plan(&snapshot, cipher, plan, after, limit),
    }
}

fn all(
    connection: &Connection,
    cipher: &Cipher,
    after: i64,
    limit: i64,
) -> Result<Vec<Placed>, StoreError> {
    let rows = rows_after(connection, after, limit).map_err(|error| failed(&error))?;
    let mut names = BTreeMap::new();
    let place = |(id, position, record)| {
        let stream = match names.get(&id) {
            Some(name) => StreamName::clone(name),
            None => names
                .entry(id)
                .or_insert(stream_name(connection, id)?)
                .clone(),
        };
        let record = opened(cipher, &stream, record)?;
        Ok(Placed {
            position,
            stream,
            record,
        })
    };
    rows.into_iter().map(place).collect()
}

type PlacedRow = (i64, Position, Record);

/// Up to `limit` entries above `after`: those that are indexed, then those that are not.
fn rows_after(
    connection: &Connection,
    after: i64,
    limit: i64,
) -> Result<Vec<PlacedRow>, rusqlite::Error> {
    // A place without its entry gives a row of nulls, which is an error and not a gap.
    let sql = "SELECT e.position, at, epoch, key, body, hash, e.ordinal
               FROM entry_places AS p
               LEFT JOIN entries AS e ON e.position = p.position AND e.ordinal = p.ordinal
               WHERE p.ordinal > ?1 ORDER BY p.ordinal LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement
        .query_map([after, limit], placed_row)?
        .collect::<Result<Vec<_>, _>>()?;
    let left = limit - i64::try_from(rows.len()).expect("not more than were asked for");
    if left > 0 {
        let sql = "SELECT e.position, at, epoch, key, body, hash, e.ordinal
                   FROM unindexed AS u CROSS JOIN entries AS e
                   WHERE e.position >= u.first AND e.position < ((u.stream + 1) << 32)
                     AND e.ordinal > ?1
                   ORDER BY e.ordinal LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        for row in statement.query_map([after, left], placed_row)? {
            rows.push(row?);
        }
    }
    Ok(rows)
}

/// The streams of a plan are merged by their ordinals. Only the entries that are returned are read
/// in full.
fn of_plan(
    connection: &Connection,
    cipher: &Cipher,
    plan: &PlanId,
    after: i64,
    limit: usize,
) -> Result<Vec<Placed>, StoreError> {
    let streams = streams_of(connection, plan)?;
    let mut places = Vec::new();
    for (at, (stream, id)) in streams.iter().enumerate() {
        let found = places_after(connection, *id, after, limit)
            .map_err(|error| of_stream(stream, &error))?;
        places.extend(
            found
                .into_iter()
                .map(|(ordinal, position)| (ordinal, position, at)),
        );
    }
    places.sort_unstable();
    let place = |(_, entry, at): (i64, i64, usize)| {
        let stream = &streams[at].0;
        let sql =
            "SELECT position, at, epoch, key, body, hash, ordinal FROM entries WHERE position = ?1";
        let row = connection
            .prepare_cached(sql)
            .and_then(|mut read| read.query_row([entry], placed_row));
        let (_, position, record) = row.map_err(|error| of_stream(stream, &error))?;
        let record = opened(cipher, stream, record)?;
        Ok(Placed {
            position,
            stream: stream.clone(),
            record,
        })
    };
    places.into_iter().take(limit).map(place).collect()
}

/// A plan's own stream and those of its runs, with their numbers.
fn streams_of(
    connection: &Connection,
    plan: &PlanId,
) -> Result<Vec<(StreamName, i64)>, StoreError> {
    let own = StreamName::Plan(plan.clone());
    let id = stream_id(connection, &own.to_string()).map_err(|error| failed(&error))?;
    let mut streams: Vec<_> = id.map(|id| (own, id)).into_iter().collect();
    let runs = || -> Result<Vec<(String, i64)>, rusqlite::Error> {
        let sql = "SELECT name, id FROM streams WHERE kind = 'run' AND plan = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        statement
            .query_map([plan.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    };
    for (name, id) in runs().map_err(|error| failed(&error))? {
        streams.push((parse_name(&name)?, id));
    }
    Ok(streams)
}

/// The ordinals above `after` of one stream, and where their entries are.
fn places_after(
    connection: &Connection,
    id: i64,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, i64)>, rusqlite::Error> {
    let first = first_after(connection, id, after)?;
    let sql = "SELECT ordinal, position FROM entries
               WHERE position >= ?1 AND position < ?2 ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let bounds = [position(id, first), position(id + 1, 0), limit];
    statement
        .query_map(bounds, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// The number of a stream's first entry with an ordinal above `after`. Ordinals grow along a
/// stream, so halving finds it: a reader that follows a long run does not walk through all of it
/// again.
fn first_after(connection: &Connection, id: i64, after: i64) -> Result<u64, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT ordinal FROM entries WHERE position = ?1")?;
    let mut low = 1;
    let mut high = head_of(connection, id)?.seq + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<i64> = statement
            .query_row([position(id, middle)], |row| row.get(0))
            .optional()?;
        if found.is_some_and(|ordinal| ordinal > after) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

fn opened(cipher: &Cipher, stream: &StreamName, record: Record) -> Result<Record, StoreError> {
    if !cipher.is_sealed() {
        return Ok(record);
    }
    open_entry(cipher, &stream.to_string(), record)
        .map_err(|error| of_stream(stream, &unopened(4)(error)))
}

fn placed_row(row: &Row<'_>) -> Result<PlacedRow, rusqlite::Error> {
    let entry: i64 = row.get(0)?;
    let record = Record {
        seq: u64::from(u32::try_from(entry & i64::from(u32::MAX)).expect("masked to 32 bits")),
        at: Timestamp::from_millis(row.get(1)?),
        epoch: row.get(2)?,
        key: row.get(3)?,
        body: row.get(4)?,
        hash: Digest::from_bytes(row.get(5)?),
    };
    Ok((entry >> SEQ_BITS, Position(row.get(6)?), record))
}

fn stream_name(connection: &Connection, id: i64) -> Result<StreamName, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT name FROM streams WHERE id = ?1")
        .map_err(|error| failed(&error))?;
    let name: String = statement
        .query_row([id], |row| row.get(0))
        .map_err(|error| failed(&error))?;
    parse_name(&name)
}

fn parse_name(name: &str) -> Result<StreamName, StoreError> {
    name.parse()
        .map_err(|error| StoreError::Failed(format!("{name:?} cannot be a stream: {error}")))
}
