//! The statements of single appends, and what a connection knows about the journals that it appended to.

use super::single_append::PlainAppend;
use planwright_core::id::RunId;
use planwright_core::journal::Head;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tokio_postgres::types::Type;

/// Appends to a journal, and returns its number.
///
/// What was committed while this waited for a row is not in its snapshot: another append of the same journal is then met
/// at the primary key of `entries`. What the locked rows say is looked at again after the wait. `sealed_at` is compared in
/// this way because a partial index over open journals would answer `IS NULL` by being read to its end.
pub(super) const FIRST: &str = "WITH held AS MATERIALIZED (\
      SELECT s.id FROM planwright.streams AS s, planwright.leases AS l \
      WHERE s.name = $1 AND coalesce(s.sealed_at, -1) = -1 \
      AND l.run = $2 AND l.epoch = $3 AND l.owner IS NOT NULL \
      AND (SELECT key_id FROM planwright.vault) IS NOT DISTINCT FROM $4 \
      FOR UPDATE OF s, l), \
    ends AS MATERIALIZED (\
      SELECT held.id FROM held CROSS JOIN LATERAL (\
        SELECT e.seq, e.hash FROM planwright.entries AS e WHERE e.stream = held.id ORDER BY e.seq DESC LIMIT 1) AS head \
      WHERE head.seq = $5 AND head.hash = $6), \
    noted AS (\
      INSERT INTO planwright.unplaced (stream, first_seq, last_seq) \
      SELECT id, $5 + 1, $5 + cardinality($7) FROM ends) \
    INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
    SELECT ends.id, $5 + n.place, n.at, n.epoch, n.hash, n.key, n.body \
    FROM ends, unnest($7, $8, $9, $10, $11) WITH ORDINALITY AS n (at, epoch, hash, key, body, place) \
    RETURNING stream";

pub(super) const FIRST_TYPES: [Type; 11] = [
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::TEXT,
    Type::INT8,
    Type::BYTEA,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
];

/// The most records of an append for which there is a statement of its own.
pub(super) const MAX_NEXT: usize = 4;

/// Appends so many records to a journal that [`FIRST`] appended to on the same connection, and nothing else since.
///
/// What that statement found need not be looked for again. The journal ends where the connection left it, or is longer, and
/// then this meets the primary key of `entries`. The key of the store is the same: the connection has a share in the lock
/// that a process needs to change it. What can have changed is whose run it is, and whether the journal is closed. Only the
/// lease is locked: every append of an owner locks it, and closing a journal takes it away.
pub(super) fn next(records: usize) -> String {
    let mut rows = String::new();
    for place in 1..=records {
        let comma = if place == 1 { "" } else { ", " };
        let first = 5 * place;
        // Writing to a text cannot fail.
        let _ = write!(
            rows,
            "{comma}({place}::bigint, ${}, ${}, ${}, ${}, ${})",
            first,
            first + 1,
            first + 2,
            first + 3,
            first + 4,
        );
    }
    format!(
        "WITH held AS MATERIALIZED (\
           SELECT FROM planwright.leases AS l WHERE l.run = $1 AND l.epoch = $2 AND l.owner IS NOT NULL \
           AND (SELECT coalesce(s.sealed_at, -1) = -1 FROM planwright.streams AS s WHERE s.id = $3) \
           FOR UPDATE), \
         noted AS (\
           INSERT INTO planwright.unplaced (stream, first_seq, last_seq) SELECT $3, $4 + 1, $4 + {records} FROM held) \
         INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
         SELECT $3, $4 + n.place, n.at, n.epoch, n.hash, n.key, n.body \
         FROM held, (VALUES {rows}) AS n (place, at, epoch, hash, key, body)"
    )
}

pub(super) fn next_types(records: usize) -> Vec<Type> {
    let mut types = vec![Type::TEXT, Type::INT8, Type::INT8, Type::INT8];
    for _ in 0..records {
        types.extend([
            Type::INT8,
            Type::INT8,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
        ]);
    }
    types
}

/// The most journals that a connection remembers.
const MAX_KNOWN: usize = 256;

/// The journals that a connection appended to, as its last append left them. A server that lost what it had confirmed has
/// lost its connections too.
#[derive(Debug, Default)]
pub(super) struct KnownJournals(BTreeMap<RunId, KnownJournal>);

#[derive(Debug, Clone, Copy)]
struct KnownJournal {
    stream: i64,
    epoch: u64,
    head: Head,
}

impl KnownJournals {
    /// Returns the number of the journal, if it ends where the append expects it and the owner is the same. It is known
    /// again when the append was made.
    pub(super) fn take(&mut self, plain: &PlainAppend<'_>) -> Option<i64> {
        let known = self.0.remove(plain.run)?;
        let is_same = known.epoch == plain.epoch && known.head == plain.append.expected;
        is_same.then_some(known.stream)
    }

    pub(super) fn note(&mut self, plain: &PlainAppend<'_>, stream: i64) {
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        let known = KnownJournal {
            stream,
            epoch: plain.epoch,
            head: plain.last_head(),
        };
        self.0.insert(plain.run.clone(), known);
    }
}
