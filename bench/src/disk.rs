//! The physical limit: how many single-row commits a second SQLite makes durable on this file
//! system.

use anyhow::Result;
use rusqlite::Connection;
use std::path::Path;
use std::time::Instant;

/// The state of the database that commits are counted in.
#[derive(Clone, Copy)]
pub(crate) enum Log {
    /// The log grows with every commit.
    Growing,
    /// The log has been copied into the database and is written over: a disk gives more then.
    InUse,
}

pub(crate) fn commits_per_second(dir: &Path, commits: u32, log: Log) -> Result<f64> {
    let dir = tempfile::tempdir_in(dir)?;
    let connection = Connection::open(dir.path().join("limit.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;",
    )?;
    let row = [7_u8; 300];
    let mut insert = connection.prepare("INSERT INTO rows (body) VALUES (?1)")?;
    if let Log::InUse = log {
        for _ in 0..2 * commits {
            insert.execute([row.as_slice()])?;
        }
    }
    let started = Instant::now();
    for _ in 0..commits {
        insert.execute([row.as_slice()])?;
    }
    Ok(f64::from(commits) / started.elapsed().as_secs_f64())
}
