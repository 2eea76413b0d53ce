//! The two indexes of the journal: the order of entries over all streams, and the keys that are
//! unique within a stream.
//!
//! Both are tables beside the journal that are written in batches. An entry that was just written
//! is in neither of them; the table `unindexed` says which streams have such entries, and from
//! where on. A commit of a run that goes on therefore writes the page with its entries and no
//! other. The entries that are not indexed are few, and always the last ones in the order of
//! commits: readers and the writer look at them one by one.
//!
//! The alternative, indexes that SQLite maintains, writes a page of each with every commit: a
//! chain of steps then costs four pages per step instead of one.

use super::transaction::{SEQ_BITS, position};
use rusqlite::{Connection, params};
use std::collections::{BTreeSet, HashMap, HashSet};

/// At most this many entries stay unindexed: each process that finds that another one has written
/// reads them again.
const MAX_UNINDEXED_ENTRIES: usize = 64;
/// At most this many streams have entries that are not indexed: each is one look for a reader.
const MAX_UNINDEXED_STREAMS: usize = 8;

/// The writer's view of both indexes.
///
/// It remembers the entries that are not indexed for as long as SQLite says that no other
/// connection has written.
#[derive(Debug, Default)]
pub(super) struct EntryIndex {
    tail: Option<Tail>,
    flushes: u64,
}

/// The end of the journal that is not indexed yet.
#[derive(Debug)]
struct Tail {
    /// SQLite's number for the state of the file, which the commits of others change.
    data_version: i64,
    last_ordinal: i64,
    /// In the order of their ordinals.
    entries: Vec<Unindexed>,
    /// The first of these were committed; the others are part of the transaction at hand.
    committed: usize,
    /// Streams that have a row in `unindexed`.
    streams: BTreeSet<i64>,
    /// The keys of `entries`, by stream.
    keys: HashMap<i64, HashSet<String>>,
}

#[derive(Debug)]
struct Unindexed {
    ordinal: i64,
    position: i64,
    key: Option<String>,
}

impl Unindexed {
    fn stream(&self) -> i64 {
        self.position >> SEQ_BITS
    }
}

/// The answer to a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// Its place in the order of commits.
    At(i64),
    /// Its stream has an entry with this key.
    DuplicateKey,
}

impl EntryIndex {
    /// Prepares for a write transaction that has just begun. Returns whether everything that was
    /// remembered still holds.
    pub(super) fn begin(&mut self, connection: &Connection) -> Result<bool, rusqlite::Error> {
        let mut statement = connection.prepare_cached("PRAGMA data_version")?;
        let data_version: i64 = statement.query_row([], |row| row.get(0))?;
        let is_current = |tail: &Tail| tail.data_version == data_version;
        let is_current = self.tail.as_ref().is_some_and(is_current);
        if !is_current {
            self.tail = Some(Tail::load(connection, data_version)?);
        }
        Ok(is_current)
    }

    /// Drops what is remembered: the transaction was not committed.
    pub(super) fn forget(&mut self) {
        self.tail = None;
    }

    /// Gives an entry its place, if its key is new to its stream. [`Self::begin`] comes first.
    pub(super) fn place(
        &mut self,
        connection: &Connection,
        position: i64,
        key: Option<&str>,
    ) -> Result<Placement, rusqlite::Error> {
        let tail = self.tail_at_hand();
        if let Some(key) = key
            && !tail.insert_key(connection, position >> SEQ_BITS, key)?
        {
            return Ok(Placement::DuplicateKey);
        }
        tail.last_ordinal += 1;
        tail.entries.push(Unindexed {
            ordinal: tail.last_ordinal,
            position,
            key: key.map(str::to_owned),
        });
        Ok(Placement::At(tail.last_ordinal))
    }

    /// Indexes everything, so that entries and what is indexed of them can be removed together. If
    /// the transaction is taken back, [`Self::forget`] must follow.
    pub(super) fn flush(&mut self, connection: &Connection) -> Result<(), rusqlite::Error> {
        self.flushes += 1;
        self.tail_at_hand().write_indexes(connection)
    }

    /// Counts the calls of [`Self::flush`].
    pub(super) fn flushes(&self) -> u64 {
        self.flushes
    }

    /// The number of entries that are not indexed, for [`Self::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.tail.as_ref().map_or(0, |tail| tail.entries.len())
    }

    /// Takes back the entries of a request that was refused.
    pub(super) fn undo_to(&mut self, mark: usize) {
        let Some(tail) = &mut self.tail else { return };
        for entry in tail.entries.split_off(mark) {
            tail.last_ordinal -= 1;
            if let (Some(keys), Some(key)) = (tail.keys.get_mut(&entry.stream()), &entry.key) {
                keys.remove(key);
            }
        }
    }

    /// Writes what the transaction at hand needs to be found: as a rule nothing. Comes last before
    /// the commit; if that fails, [`Self::forget`] must follow.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let tail = self.tail_at_hand();
        let fresh = &tail.entries[tail.committed..];
        if fresh.is_empty() {
            return Ok(());
        }
        let mut added = BTreeSet::new();
        let mut insert =
            connection.prepare_cached("INSERT INTO unindexed (stream, first) VALUES (?1, ?2)")?;
        let is_new = |entry: &&Unindexed| !tail.streams.contains(&entry.stream());
        added.extend(fresh.iter().filter(is_new).map(Unindexed::stream));
        if tail.entries.len() > MAX_UNINDEXED_ENTRIES
            || tail.streams.len() + added.len() > MAX_UNINDEXED_STREAMS
        {
            return tail.write_indexes(connection);
        }
        for entry in fresh {
            if added.remove(&entry.stream()) {
                insert.execute([entry.stream(), entry.position])?;
                tail.streams.insert(entry.stream());
            }
        }
        tail.committed = tail.entries.len();
        Ok(())
    }

    fn tail_at_hand(&mut self) -> &mut Tail {
        self.tail
            .as_mut()
            .expect("it is loaded when the transaction begins")
    }
}

impl Tail {
    fn load(connection: &Connection, data_version: i64) -> Result<Self, rusqlite::Error> {
        // Entries that left the table keep their places.
        let sql = "SELECT max(coalesce((SELECT max(ordinal) FROM entry_places), 0),
                              coalesce((SELECT ordinal FROM order_floor), 0))";
        let indexed: i64 = connection
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        let mut tail = Self {
            data_version,
            last_ordinal: indexed,
            entries: Vec::new(),
            committed: 0,
            streams: BTreeSet::new(),
            keys: HashMap::new(),
        };
        let mut streams = connection.prepare_cached("SELECT stream, first FROM unindexed")?;
        let mut streams = streams.query([])?;
        while let Some(row) = streams.next()? {
            let stream = row.get(0)?;
            tail.streams.insert(stream);
            tail.load_stream(connection, stream, row.get(1)?)?;
        }
        tail.entries.sort_unstable_by_key(|entry| entry.ordinal);
        tail.committed = tail.entries.len();
        if let Some(last) = tail.entries.last() {
            tail.last_ordinal = tail.last_ordinal.max(last.ordinal);
        }
        Ok(tail)
    }

    fn load_stream(
        &mut self,
        connection: &Connection,
        stream: i64,
        first: i64,
    ) -> Result<(), rusqlite::Error> {
        let sql = "SELECT ordinal, position, key FROM entries
                   WHERE position >= ?1 AND position < ?2 ORDER BY position";
        let mut entries = connection.prepare_cached(sql)?;
        let mut entries = entries.query([first, position(stream + 1, 0)])?;
        while let Some(row) = entries.next()? {
            let key: Option<String> = row.get(2)?;
            if let Some(key) = &key {
                self.keys.entry(stream).or_default().insert(key.clone());
            }
            self.entries.push(Unindexed {
                ordinal: row.get(0)?,
                position: row.get(1)?,
                key,
            });
        }
        Ok(())
    }

    /// Remembers a key, unless the stream has it.
    fn insert_key(
        &mut self,
        connection: &Connection,
        stream: i64,
        key: &str,
    ) -> Result<bool, rusqlite::Error> {
        let keys = self.keys.entry(stream).or_default();
        if keys.contains(key) {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM entry_keys WHERE stream = ?1 AND key = ?2";
        if connection
            .prepare_cached(sql)?
            .exists(params![stream, key])?
        {
            return Ok(false);
        }
        keys.insert(key.to_owned());
        Ok(true)
    }

    /// Indexes all of the tail.
    fn write_indexes(&mut self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let sql = "INSERT INTO entry_places (ordinal, position) VALUES (?1, ?2)";
        let mut place = connection.prepare_cached(sql)?;
        let sql = "INSERT INTO entry_keys (stream, key) VALUES (?1, ?2)";
        let mut insert_key = connection.prepare_cached(sql)?;
        for entry in &self.entries {
            place.execute([entry.ordinal, entry.position])?;
            if let Some(key) = &entry.key {
                insert_key.execute(params![entry.stream(), key])?;
            }
        }
        if !self.streams.is_empty() {
            connection
                .prepare_cached("DELETE FROM unindexed")?
                .execute([])?;
        }
        self.entries.clear();
        self.committed = 0;
        self.streams.clear();
        self.keys.clear();
        Ok(())
    }
}

/// Writes both indexes anew for a journal that was copied entry by entry.
pub(super) fn rebuild(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(
        "DELETE FROM entry_places;
         DELETE FROM entry_keys;
         DELETE FROM unindexed;
         INSERT INTO entry_places (ordinal, position)
             SELECT ordinal, position FROM entries ORDER BY ordinal;
         INSERT INTO entry_keys (stream, key)
             SELECT stream, key FROM entries WHERE key IS NOT NULL ORDER BY stream, key;",
    )
}

/// Lists the ways in which the indexes and the journal differ, as SQLite does for indexes of its
/// own. Reads all of both.
pub(super) fn find_differences(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let tail = "EXISTS (SELECT 1 FROM unindexed AS u
                        WHERE u.stream = e.position >> 32 AND e.position >= u.first)";
    let sql = format!(
        "SELECT 'entry ' || e.position || ' has no place in the order of commits'
         FROM entries AS e LEFT JOIN entry_places AS p ON p.ordinal = e.ordinal
         WHERE p.position IS NOT e.position AND NOT {tail}
         UNION ALL
         SELECT 'place ' || p.ordinal || ' in the order of commits has no entry'
         FROM entry_places AS p LEFT JOIN entries AS e ON e.position = p.position
         WHERE e.ordinal IS NOT p.ordinal OR {tail}
         UNION ALL
         SELECT 'the key of entry ' || e.position || ' is not indexed'
         FROM entries AS e LEFT JOIN entry_keys AS k ON k.stream = e.position >> 32 AND k.key = e.key
         WHERE e.key IS NOT NULL AND k.key IS NULL AND NOT {tail}
         UNION ALL
         SELECT 'a key is indexed that no entry has'
         WHERE (SELECT count(*) FROM entry_keys)
             > (SELECT count(*) FROM entries AS e WHERE e.key IS NOT NULL AND NOT {tail})
         UNION ALL
         SELECT 'the order of commits has gaps'
         WHERE max(coalesce((SELECT max(ordinal) FROM entries), 0),
                   coalesce((SELECT ordinal FROM order_floor), 0))
             <> (SELECT count(*) FROM entries AS e WHERE NOT EXISTS
                    (SELECT 1 FROM sealed_journals AS s WHERE s.stream = e.position >> 32))
              + coalesce((SELECT sum(seq) FROM sealed_journals), 0)
              + coalesce((SELECT removed FROM order_floor), 0)
         LIMIT 100"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}
