//! Measures a chain of single-record commits against bare SQLite on the same file system, plain and
//! encrypted, and the time to encrypt a store.
//!
//! `cargo run --release -p planwright-adapters --example commit_rate [directory]`

use planwright_adapters::signing::SigningKey;
use planwright_adapters::sqlite::{IdleStore, Options, Protection, SqliteStore, StoreOwner};
use planwright_adapters::vault::{Passphrase, StretchCost};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, AppendError, Journal as _, LeaseRule, OwnerId, StoreError};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Short rounds that take turns, so that a disturbance hits all of them alike.
const ROUNDS: u32 = 30;
const COMMITS_PER_ROUND: u32 = 250;
const BODY_BYTES: usize = 300;
const RUNS_AT_ONCE: u32 = 64;
const COMMITS_AT_ONCE: u32 = 200;

type Failure = Box<dyn std::error::Error>;

/// One thread, as in a command that executes a run.
#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "a measurement is its output")]
async fn main() -> Result<(), Failure> {
    let directory = match std::env::args_os().nth(1) {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir()?,
    };
    let bare = bare(&directory.path().join("bare.db"))?;
    let store = Arc::new(SqliteStore::open(&directory.path().join("store.db"))?);
    let store_with_keys = SqliteStore::open(&directory.path().join("keyed.db"))?;
    let owned_store = SqliteStore::open_with(owned(&directory.path().join("owned.db"))?)?;
    let sealed_store = SqliteStore::open_with(sealed(&directory.path().join("sealed.db"))?)?;
    let mut plain = Chain::new("run/plain", false)?;
    let mut keyed = Chain::new("run/keyed", true)?;
    let mut owned_chain = Chain::new("run/owned", true)?;
    let mut sealed_chain = Chain::new("run/sealed", true)?;
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        let started = Instant::now();
        commit_bare(&bare)?;
        times[0].push(started.elapsed());
        let started = Instant::now();
        plain.grow(&store, COMMITS_PER_ROUND).await?;
        times[1].push(started.elapsed());
        let started = Instant::now();
        keyed.grow(&store_with_keys, COMMITS_PER_ROUND).await?;
        times[2].push(started.elapsed());
        let started = Instant::now();
        owned_chain.grow(&owned_store, COMMITS_PER_ROUND).await?;
        times[3].push(started.elapsed());
        let started = Instant::now();
        sealed_chain.grow(&sealed_store, COMMITS_PER_ROUND).await?;
        times[4].push(started.elapsed());
    }
    for (name, at) in [("median", ROUNDS / 2), ("best", 0)] {
        let [bare, plain, keyed, owned, sealed] =
            times.each_mut().map(|times| rate_of(times, at as usize));
        println!("{name} round");
        println!("  bare                {bare:>7.0}/s");
        println!("  store               {plain:>7.0}/s  {:.2}", plain / bare);
        println!("  store, with keys    {keyed:>7.0}/s  {:.2}", keyed / bare);
        println!("  the same, marked    {owned:>7.0}/s  {:.2}", owned / bare);
        println!(
            "  the same, encrypted {sealed:>7.0}/s  {:.2}",
            sealed / bare
        );
    }
    println!(
        "{RUNS_AT_ONCE} runs at once   {:>7.0}/s",
        many(&store).await?
    );
    drop(store);
    let entries = COMMITS_PER_ROUND * ROUNDS + COMMITS_AT_ONCE * RUNS_AT_ONCE;
    let took = encrypt(&directory.path().join("store.db"))?;
    println!("encrypting {entries} entries: {:.2} s", took.as_secs_f64());
    Ok(())
}

/// A store whose owner marks what is written, as every store of the program.
fn owned(path: &Path) -> Result<Options, Failure> {
    let key = SigningKey::random().map_err(|error| error.to_string())?;
    Ok(Options {
        owner: StoreOwner::Key(Arc::new(key)),
        ..Options::new(path)
    })
}

fn sealed(path: &Path) -> Result<Options, Failure> {
    Ok(Options {
        passphrase: Some(Passphrase::new("correct horse".to_owned())?),
        ..Options::new(path)
    })
}

fn encrypt(path: &Path) -> Result<Duration, Failure> {
    let protection = Protection::Sealed {
        passphrase: Passphrase::new("correct horse".to_owned())?,
        cost: StretchCost::DEFAULT,
    };
    let artifacts = path.with_extension("artifacts");
    let started = Instant::now();
    let (idle, _) =
        IdleStore::open(Options::new(path))?.rewrite(&protection, &artifacts, &mut |_| ())?;
    idle.finish(&artifacts)?;
    Ok(started.elapsed())
}

/// The rate of the `at`-th fastest round.
fn rate_of(times: &mut [Duration], at: usize) -> f64 {
    times.sort();
    f64::from(COMMITS_PER_ROUND) / times[at].as_secs_f64()
}

fn bare(path: &Path) -> Result<Connection, Failure> {
    let db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)",
    )?;
    Ok(db)
}

fn commit_bare(db: &Connection) -> Result<(), Failure> {
    let body = vec![b'x'; BODY_BYTES];
    let mut insert = db.prepare_cached("INSERT INTO t (body) VALUES (?1)")?;
    for _ in 0..COMMITS_PER_ROUND {
        insert.execute([&body])?;
    }
    Ok(())
}

/// One run, committed record by record as the engine does it.
struct Chain {
    stream: StreamName,
    head: Head,
    keyed: bool,
}

impl Chain {
    fn new(name: &str, keyed: bool) -> Result<Self, StoreError> {
        let stream = name
            .parse()
            .map_err(|error| StoreError::Failed(format!("{error}")))?;
        Ok(Self {
            stream,
            head: Head::EMPTY,
            keyed,
        })
    }

    async fn grow(&mut self, store: &SqliteStore, commits: u32) -> Result<(), AppendError> {
        for _ in 0..commits {
            let seq = self.head.seq;
            let key = self.keyed.then(|| format!("step_{seq}/1/succeeded"));
            let at = Timestamp::from_millis(1);
            let record = Record::after(self.head, &self.stream, at, 1, key, vec![b'x'; BODY_BYTES]);
            let expected = std::mem::replace(&mut self.head, record.head());
            let lease = match seq {
                0 => LeaseRule::Open {
                    owner: OwnerId("measure".to_owned()),
                    ttl: Duration::from_secs(60),
                },
                _ => LeaseRule::Held { epoch: 1 },
            };
            let stream = self.stream.clone();
            let append = Append {
                stream,
                expected,
                records: vec![record],
                lease,
                status: None,
                answers: Vec::new(),
                requests: Vec::new(),
                brought: Vec::new(),
                offers: Vec::new(),
            };
            store.append(vec![append]).await?;
        }
        Ok(())
    }
}

/// Many runs share commits.
async fn many(store: &Arc<SqliteStore>) -> Result<f64, Failure> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..RUNS_AT_ONCE)
        .map(|number| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                Chain::new(&format!("run/many-{number}"), true)?
                    .grow(&store, COMMITS_AT_ONCE)
                    .await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(f64::from(COMMITS_AT_ONCE * RUNS_AT_ONCE) / started.elapsed().as_secs_f64())
}
