//! What the tests of the SQLite store play with: a directory, and streams that know their head.

use planwright_adapters::signing::SigningKey;
use planwright_adapters::sqlite::{Options, SqliteStore, StoreOwner};
use planwright_adapters::vault::{Passphrase, StretchCost};
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, AppendError, Journal as _, LeaseRule, OwnerId};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Scene {
    pub(crate) directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file("")
    }

    /// A file that belongs to the database.
    pub(crate) fn file(&self, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("planwright.db{suffix}"))
    }

    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).unwrap()
    }

    /// Empties the log, so that its length says how much was written since.
    pub(crate) fn empty_log(&self) {
        let db = rusqlite::Connection::open(self.path()).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    }

    /// The pages that were written since the log was empty.
    pub(crate) fn pages_in_log(&self) -> u64 {
        let db = rusqlite::Connection::open(self.path()).unwrap();
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
            .unwrap()
    }

    /// Opens it with its passphrase; a new one is made encrypted.
    pub(crate) fn open_sealed(&self) -> SqliteStore {
        SqliteStore::open_with(sealed(self.path())).unwrap()
    }
}

pub(crate) fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text.to_owned()).unwrap()
}

/// Options of a store whose passphrase is `correct horse`, as cheap to open as is allowed.
pub(crate) fn sealed(path: PathBuf) -> Options {
    Options {
        passphrase: Some(passphrase("correct horse")),
        cost: StretchCost::FLOOR,
        ..Options::new(path)
    }
}

/// The key of a user.
pub(crate) fn new_key() -> Arc<SigningKey> {
    Arc::new(SigningKey::random().unwrap())
}

/// Options of a store that this user opens.
pub(crate) fn signed(path: PathBuf, key: &Arc<SigningKey>) -> Options {
    Options {
        owner: StoreOwner::Key(Arc::clone(key)),
        ..Options::new(path)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) stream: StreamName,
    pub(crate) head: Head,
    pub(crate) records: Vec<Record>,
}

impl Chain {
    pub(crate) fn of(name: &str) -> Self {
        Self {
            stream: name.parse().unwrap(),
            head: Head::EMPTY,
            records: Vec::new(),
        }
    }

    pub(crate) fn run(&self) -> &RunId {
        match &self.stream {
            StreamName::Run(run) => run,
            StreamName::Plan(plan) => panic!("{plan} is a plan"),
        }
    }

    pub(crate) fn grow(&mut self, body: &[u8]) -> Append {
        let record = Record::after(
            self.head,
            &self.stream,
            Timestamp::from_millis(1),
            1,
            None,
            body.to_vec(),
        );
        let expected = std::mem::replace(&mut self.head, record.head());
        self.records.push(record.clone());
        let stream = self.stream.clone();
        Append {
            stream,
            expected,
            records: vec![record],
            lease: LeaseRule::None,
            status: None,
            answers: Vec::new(),
            requests: Vec::new(),
            brought: Vec::new(),
            offers: Vec::new(),
        }
    }

    pub(crate) async fn put(&mut self, store: &SqliteStore, body: &str) {
        store
            .append(vec![self.grow(body.as_bytes())])
            .await
            .unwrap();
    }

    pub(crate) async fn try_put(
        &mut self,
        store: &SqliteStore,
        lease: LeaseRule,
    ) -> Result<(), AppendError> {
        store
            .append(vec![Append {
                lease,
                ..self.clone().grow(b"body")
            }])
            .await?;
        drop(self.grow(b"body"));
        Ok(())
    }

    pub(crate) async fn open(&mut self, store: &SqliteStore, by: &str, ttl: Duration) {
        self.try_put(
            store,
            LeaseRule::Open {
                owner: owner(by),
                ttl,
            },
        )
        .await
        .unwrap();
    }
}

pub(crate) fn owner(name: &str) -> OwnerId {
    OwnerId(name.to_owned())
}
