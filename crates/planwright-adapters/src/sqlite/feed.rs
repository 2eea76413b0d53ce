//! The order of commits over all streams.
//!
//! Every entry carries its ordinal, given inside the write transaction that inserts it.
//! Transactions are one after the other, so a reader's snapshot never holds an ordinal without all
//! lower ones. The last few entries are not in the index of ordinals yet (`entry_index`): they are
//! read from the streams that have such entries.

use super::fault::{failed, of_stream, unopened_value};
use super::reader::Reader;
use super::sealed_journal::{self, After, SealedRow, find_row};
use super::transaction::{SEQ_BITS, head_of, position, stream_id};
use crate::sealing::open_entry;
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::journal::{Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{FeedOf, MAX_PAGE_BYTES, Placed, Position, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::collections::BTreeMap;

/// Up to `limit` records with a position above `after`.
pub(super) fn read(
    (connection, reader): (&Connection, &Reader),
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
            reader,
            after,
            i64::try_from(limit).unwrap_or(i64::MAX),
        ),
        FeedOf::Plan(plan) => of_plan(&snapshot, reader, plan, after, limit),
    }
}

fn all(
    connection: &Connection,
    reader: &Reader,
    after: i64,
    limit: i64,
) -> Result<Vec<Placed>, StoreError> {
    let rows = rows_after(connection, after, limit).map_err(|error| failed(&error))?;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    // Behind a full page there may be more in the table.
    let bytes: usize = rows.iter().map(|(_, _, record)| record.body.len()).sum();
    let until = match rows.last() {
        Some((_, Position(last), _)) if rows.len() >= wanted || bytes >= MAX_GATHERED => {
            i64::try_from(*last).unwrap_or(i64::MAX)
        }
        Some(_) | None => i64::MAX,
    };
    let sealed = sealed_journal::rows_after(connection, after, until);
    let sealed = sealed.map_err(|error| failed(&error))?;
    // What is sealed is read from its file, also where it has not left the table yet.
    let is_sealed = |id: i64| sealed.iter().any(|sealed| sealed.id == id);
    let mut found: Vec<Found> = rows
        .into_iter()
        .filter(|(id, _, _)| sealed.is_empty() || !is_sealed(*id))
        .map(|(id, position, record)| Found {
            position,
            stream: id,
            record,
        })
        .collect();
    add_sealed(
        (connection, reader),
        &sealed,
        (after, until, wanted),
        &mut found,
    )?;
    let mut names = BTreeMap::new();
    let place = |found: Found| {
        let id = found.stream;
        let stream = match names.get(&id) {
            Some(name) => StreamName::clone(name),
            None => names
                .entry(id)
                .or_insert(stream_name(connection, id)?)
                .clone(),
        };
        let record = opened(reader.cipher(), &stream, found.record)?;
        Ok(Placed {
            position: found.position,
            stream,
            record,
        })
    };
    page_of(found.into_iter().take(wanted).map(place))
}

/// Bytes of entries that are gathered for a page, as they are kept. A sealed entry is longer than
/// what is in it, so that these are more than a page has.
const MAX_GATHERED: usize = 2 * MAX_PAGE_BYTES;

/// Takes records until their bodies fill a page.
fn page_of(
    records: impl Iterator<Item = Result<Placed, StoreError>>,
) -> Result<Vec<Placed>, StoreError> {
    let mut bytes = 0;
    let mut page = Vec::new();
    for placed in records {
        let placed = placed?;
        bytes += placed.record.body.len();
        page.push(placed);
        if bytes >= MAX_PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}

/// How many of these entries, in their order, fill what is gathered for a page.
fn enough(found: &[Found], wanted: usize) -> usize {
    let mut bytes = 0;
    let full = found.iter().position(|found| {
        bytes += found.record.body.len();
        bytes >= MAX_GATHERED
    });
    full.map_or(wanted, |last| wanted.min(last + 1))
}

/// An entry as it is kept, in the table or in a sealed file.
struct Found {
    position: Position,
    stream: i64,
    record: Record,
}

/// Adds the entries of sealed journals with ordinals above `after` and not above `until`, and
/// orders everything. Stops as soon as what follows cannot be among the first `wanted`.
fn add_sealed(
    (connection, reader): (&Connection, &Reader),
    sealed: &[SealedRow],
    (after, until, wanted): (i64, i64, usize),
    found: &mut Vec<Found>,
) -> Result<(), StoreError> {
    // Of a journal that was not read to its end, nothing is known behind what was read of it.
    let mut until = until;
    for row in sealed {
        found.sort_unstable_by_key(|found| found.position);
        let wanted = enough(found, wanted);
        let last = found.get(wanted.saturating_sub(1));
        if last.is_some_and(|last| last.position.0 < row.first_ordinal.unsigned_abs()) {
            break;
        }
        found.truncate(wanted);
        let stream = stream_name(connection, row.id)?;
        let most = (wanted, MAX_GATHERED);
        let page = reader.sealed_page(&stream, row, After::Ordinal(after), most)?;
        if let Some(last) = page.last()
            && last.ordinal < row.last_ordinal
        {
            until = until.min(last.ordinal);
        }
        let entries = page.into_iter().filter(|entry| entry.ordinal <= until);
        found.extend(entries.map(|entry| Found {
            position: Position(entry.ordinal.unsigned_abs()),
            stream: row.id,
            record: entry.kept,
        }));
    }
    found.retain(|found| found.position.0 <= until.unsigned_abs());
    found.sort_unstable_by_key(|found| found.position);
    found.truncate(enough(found, wanted));
    Ok(())
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
    let mut rows = Vec::new();
    let mut bytes = 0;
    for row in statement.query_map([after, limit], placed_row)? {
        let row = row?;
        bytes += row.2.body.len();
        rows.push(row);
        if bytes >= MAX_GATHERED {
            return Ok(rows);
        }
    }
    let left = limit - i64::try_from(rows.len()).expect("not more than were asked for");
    if left > 0 {
        let sql = "SELECT e.position, at, epoch, key, body, hash, e.ordinal
                   FROM unindexed AS u CROSS JOIN entries AS e
                   WHERE e.position >= u.first AND e.position < ((u.stream + 1) << 32)
                     AND e.ordinal > ?1
                   ORDER BY e.ordinal LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        for row in statement.query_map([after, left], placed_row)? {
            let row = row?;
            bytes += row.2.body.len();
            rows.push(row);
            if bytes >= MAX_GATHERED {
                break;
            }
        }
    }
    Ok(rows)
}

/// The streams of a plan are merged by their ordinals. Of those in the table only the entries that
/// are returned are read in full.
fn of_plan(
    connection: &Connection,
    reader: &Reader,
    plan: &PlanId,
    after: i64,
    limit: usize,
) -> Result<Vec<Placed>, StoreError> {
    let streams = streams_of(connection, plan)?;
    let mut places = Vec::new();
    let mut sealed = Vec::new();
    for (stream, id) in &streams {
        let row = find_row(connection, *id).map_err(|error| failed(&error))?;
        if let Some(row) = row {
            sealed.extend(Some(row).filter(|row| row.last_ordinal > after));
            continue;
        }
        let found = places_after(connection, *id, after, limit);
        places.extend(found.map_err(|error| of_stream(stream, &error))?);
    }
    places.sort_unstable();
    places.truncate(limit);
    let names: BTreeMap<i64, &StreamName> =
        streams.iter().map(|(stream, id)| (*id, stream)).collect();
    let named = |id: i64| {
        let name = names.get(&id).copied();
        name.ok_or_else(|| StoreError::Failed(format!("there is no stream {id}")))
    };
    let mut found = Vec::new();
    let mut bytes = 0;
    let mut until = i64::MAX;
    for (ordinal, entry) in places {
        let stream = named(entry >> SEQ_BITS)?;
        let sql =
            "SELECT position, at, epoch, key, body, hash, ordinal FROM entries WHERE position = ?1";
        let row = connection
            .prepare_cached(sql)
            .and_then(|mut read| read.query_row([entry], placed_row));
        let (id, position, record) = row.map_err(|error| of_stream(stream, &error))?;
        bytes += record.body.len();
        found.push(Found {
            position,
            stream: id,
            record,
        });
        if bytes >= MAX_GATHERED {
            until = ordinal;
            break;
        }
    }
    sealed.sort_unstable_by_key(|row| row.first_ordinal);
    add_sealed(
        (connection, reader),
        &sealed,
        (after, until, limit),
        &mut found,
    )?;
    let place = |found: Found| {
        let stream = named(found.stream)?;
        Ok(Placed {
            position: found.position,
            stream: stream.clone(),
            record: opened(reader.cipher(), stream, found.record)?,
        })
    };
    page_of(found.into_iter().map(place))
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
        .map_err(|error| of_stream(stream, &unopened_value(4)(error)))
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
