//! Measures a chain of single-record commits against bare SQLite on the same file system.
//!
//! `cargo run --release -p planwright-adapters --example commit_rate [directory]`

use planwright_adapters::sqlite::SqliteStore;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, LeaseRule, OwnerId, Store as _, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const COMMITS: u32 = 6_000;
const ROUNDS: u32 = 3;
const BODY_BYTES: usize = 300;
const RUNS_AT_ONCE: usize = 64;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a measurement is its output")]
async fn main() -> Result<(), Failure> {
    let directory = match std::env::args_os().nth(1) {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir()?,
    };
    for round in 0..ROUNDS {
        let bare = bare(&directory.path().join(format!("bare-{round}.db")))?;
        let path = directory.path().join(format!("store-{round}.db"));
        let store = Arc::new(SqliteStore::open(&path)?);
        let plain = chain(&store, "run/plain", COMMITS, false).await?;
        let keyed = chain(&store, "run/keyed", COMMITS, true).await?;
        let at_once = many(&store).await?;
        println!(
            "bare {bare:.0}/s, store {plain:.0}/s ({:.2}), with keys {keyed:.0}/s ({:.2}), {RUNS_AT_ONCE} runs at once {at_once:.0}/s",
            plain / bare,
            keyed / bare
        );
    }
    Ok(())
}

fn rate(commits: u32, started: Instant) -> f64 {
    f64::from(commits) / started.elapsed().as_secs_f64()
}

fn bare(path: &Path) -> Result<f64, Failure> {
    let db = rusqlite::Connection::open(path)?;
    db.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = full; CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")?;
    let body = vec![b'x'; BODY_BYTES];
    let mut insert = db.prepare("INSERT INTO t (body) VALUES (?1)")?;
    let started = Instant::now();
    for _ in 0..COMMITS {
        insert.execute([&body])?;
    }
    Ok(rate(COMMITS, started))
}

/// Commits one record after the other, as the engine does with one run.
async fn chain(store: &SqliteStore, name: &str, commits: u32, keyed: bool) -> Result<f64, StoreError> {
    let failed = |error: &dyn std::fmt::Display| StoreError::Failed(error.to_string());
    let stream: StreamName = name.parse().map_err(|error| failed(&error))?;
    let mut head = Head::EMPTY;
    let started = Instant::now();
    for number in 0..commits {
        let key = keyed.then(|| format!("step_{number}/1/succeeded"));
        let record = Record::after(head, &stream, Timestamp::from_millis(1), 1, key, vec![b'x'; BODY_BYTES]);
        let expected = std::mem::replace(&mut head, record.head());
        let lease = if number == 0 {
            LeaseRule::Open { owner: OwnerId("measure".to_owned()), ttl: Duration::from_secs(60) }
        } else {
            LeaseRule::Held { epoch: 1 }
        };
        let append = Append {
            stream: stream.clone(),
            expected,
            records: vec![record],
            lease,
            status: None,
            answers: Vec::new(),
        };
        store.append(vec![append]).await.map_err(|error| failed(&error))?;
    }
    Ok(rate(commits, started))
}

async fn many(store: &Arc<SqliteStore>) -> Result<f64, Failure> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..RUNS_AT_ONCE)
        .map(|number| {
            let store = Arc::clone(store);
            tokio::spawn(
                async move { chain(&store, &format!("run/many-{number}"), COMMITS / 20, true).await },
            )
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(rate(COMMITS / 20 * u32::try_from(RUNS_AT_ONCE)?, started))
}
