//! The rows that name sealed files, and those of what was removed for good.

use planwright_core::digest::Digest;
use planwright_core::journal::Head;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// The place of a journal that is not in the table of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) struct SealedRow {
    /// The number of the stream.
    pub(in crate::sqlite) id: i64,
    /// The last entry; its hash is as the database has it.
    pub(in crate::sqlite) head: Head,
    pub(in crate::sqlite) first_ordinal: i64,
    pub(in crate::sqlite) last_ordinal: i64,
    pub(in crate::sqlite) file: String,
    pub(in crate::sqlite) digest: Digest,
    pub(in crate::sqlite) bytes: u64,
    pub(in crate::sqlite) sealed_at: i64,
    pub(in crate::sqlite) is_cleared: bool,
    /// The mark that the last entry had.
    pub(in crate::sqlite) mark: Option<Vec<u8>>,
}

pub(super) const COLUMNS: &str =
    "stream, seq, hash, first_ordinal, last_ordinal, file, digest, bytes, sealed_at, cleared, mark";

pub(super) fn row(row: &Row<'_>) -> Result<SealedRow, rusqlite::Error> {
    Ok(SealedRow {
        id: row.get(0)?,
        head: Head {
            seq: row.get(1)?,
            hash: Digest::from_bytes(row.get(2)?),
        },
        first_ordinal: row.get(3)?,
        last_ordinal: row.get(4)?,
        file: row.get(5)?,
        digest: Digest::from_bytes(row.get(6)?),
        bytes: row.get(7)?,
        sealed_at: row.get(8)?,
        is_cleared: row.get(9)?,
        mark: row.get(10)?,
    })
}

pub(in crate::sqlite) fn find_row(
    connection: &Connection,
    id: i64,
) -> Result<Option<SealedRow>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM sealed_journals WHERE stream = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([id], row)
        .optional()
}

/// The sealed journals with entries above this ordinal, by their first.
pub(in crate::sqlite) fn rows_after(
    connection: &Connection,
    after: i64,
    until: i64,
) -> Result<Vec<SealedRow>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sealed_journals
         WHERE last_ordinal > ?1 AND first_ordinal <= ?2 ORDER BY first_ordinal"
    );
    connection
        .prepare_cached(&sql)?
        .query_map([after, until], row)?
        .collect()
}

/// All sealed journals, with the names of their streams.
pub(super) fn all(connection: &Connection) -> Result<Vec<(String, SealedRow)>, rusqlite::Error> {
    let sql =
        "SELECT j.stream, seq, hash, first_ordinal, last_ordinal, file, digest, bytes, sealed_at,
                      cleared, mark, name
               FROM sealed_journals AS j JOIN streams ON streams.id = j.stream ORDER BY j.stream";
    let mut statement = connection.prepare(sql)?;
    statement
        .query_map([], |found| Ok((found.get(11)?, row(found)?)))?
        .collect()
}

pub(super) fn insert(
    connection: &Connection,
    kind: &str,
    sealed: &SealedRow,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO sealed_journals
               (stream, seq, hash, first_ordinal, last_ordinal, file, digest, bytes, sealed_at, kind, mark, cleared)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)";
    connection.execute(
        sql,
        params![
            sealed.id,
            sealed.head.seq,
            sealed.head.hash.as_bytes(),
            sealed.first_ordinal,
            sealed.last_ordinal,
            sealed.file,
            sealed.digest.as_bytes(),
            sealed.bytes,
            sealed.sealed_at,
            kind,
            sealed.mark
        ],
    )?;
    connection.execute("UPDATE streams SET sealed = 1 WHERE id = ?1", [sealed.id])?;
    raise_floor(connection, sealed.last_ordinal, 0)
}

pub(super) fn delete(connection: &Connection, id: i64) -> Result<(), rusqlite::Error> {
    connection.execute("DELETE FROM sealed_journals WHERE stream = ?1", [id])?;
    connection.execute("UPDATE streams SET sealed = 0 WHERE id = ?1", [id])?;
    Ok(())
}

/// The order of commits goes on after this place, also if the table is empty.
pub(super) fn raise_floor(
    connection: &Connection,
    ordinal: i64,
    removed: u64,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO order_floor (only, ordinal, removed) VALUES (1, ?1, ?2)
               ON CONFLICT (only) DO UPDATE
               SET ordinal = max(ordinal, ?1), removed = removed + ?2";
    connection.execute(sql, params![ordinal, removed])?;
    Ok(())
}

/// Returns whether a stream was removed for good after it had this many entries.
pub(in crate::sqlite) fn is_removed(
    connection: &Connection,
    name: &str,
    seq: u64,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM removed_journals WHERE name = ?1 AND seq >= ?2";
    connection.prepare_cached(sql)?.exists(params![name, seq])
}

/// The sealed files that a database names, with their digests.
pub(in crate::sqlite) fn named_files(
    connection: &Connection,
) -> Result<Vec<(String, Digest)>, rusqlite::Error> {
    let mut statement =
        connection.prepare("SELECT file, digest FROM sealed_journals ORDER BY 1")?;
    statement
        .query_map([], |row| Ok((row.get(0)?, Digest::from_bytes(row.get(1)?))))?
        .collect()
}
