//! A store that no other process has open, for the work that replaces all of it: encrypting, decrypting, a new key.
//!
//! All of it is one transaction, so that a process which is killed leaves the store as it was. Rows are read, recoded and
//! written in pages: memory is bounded by a page, and the disk of the server needs room for the tables once more. What was
//! written is read again before the commit. The old rows leave with the files of their tables, which are begun anew: rows
//! that were only replaced would stay in them, with their text, until the server removes them.

use super::commit::{COMMIT_TIMEOUT, Doubt, Mark, SILENT, Transactions};
use super::fault::{is_broken, store_error};
use super::hosts::Hosts;
use super::kept_statements::KeepingClient;
use super::location::Location;
use super::open_error::OpenPostgresError;
use super::owners::is_any_alive;
use super::pool::{CommitError, Lent, OPEN_LOCK, Pool, Presence};
use super::recode::Recoder;
use super::sealed_tables::TABLES;
use super::store::{PostgresOptions, lost, start_thread, wait_for};
use super::tls::Connector;
use super::{schema, vault};
use crate::sqlite::{Protection, RewriteProgress, Rewritten, Tell};
use crate::vault::{Cipher, LockedKey, Passphrase, StretchCost, UnlockError};
use planwright_engine::crash;
use planwright_engine::port::StoreError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The wait for a process that has just ended: the server notices it a moment later.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// The reason a store was not rewritten. It is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum RewritePostgresError {
    #[error("another process has the store open")]
    InUse,
    #[error("the store is damaged ({0}): it is left as it is")]
    Damaged(String),
    #[error("what was written is not what was read ({0}): the store is left as it is")]
    Differs(String),
    #[error(transparent)]
    Open(#[from] OpenPostgresError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<UnlockError> for RewritePostgresError {
    fn from(error: UnlockError) -> Self {
        Self::Open(error.into())
    }
}

/// The protection that a store gets, with its key.
#[derive(Debug)]
pub struct NewProtection {
    locked: Option<LockedKey>,
    cipher: Arc<Cipher>,
}

impl NewProtection {
    /// Makes a key, unless the store is to be plain.
    pub fn new(protection: &Protection) -> Result<Self, RewritePostgresError> {
        let (locked, cipher) = match protection {
            Protection::Plain => (None, Cipher::Plain),
            Protection::Sealed { passphrase, cost } => {
                let (locked, cipher) = vault::make_lock(passphrase, *cost)?;
                (Some(locked), cipher)
            }
        };
        Ok(Self {
            locked,
            cipher: Arc::new(cipher),
        })
    }

    pub fn cipher(&self) -> &Arc<Cipher> {
        &self.cipher
    }
}

/// A connection to a database whose store is not opened.
struct Session {
    pool: Arc<Pool>,
    runtime: Handle,
    close: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Session {
    fn open(location: &Location) -> Result<Self, OpenPostgresError> {
        let connector = Connector::new(&location.encryption)?;
        let place = (location.to_string(), Presence::Hidden);
        let hosts = Arc::new(Hosts::new(&location.config, connector));
        let pool = Pool::new(hosts, 1, place);
        let (close, closed) = oneshot::channel();
        let (runtime, thread) = start_thread(closed)?;
        Ok(Self {
            pool: Arc::new(pool),
            runtime,
            close: Some(close),
            thread: Some(thread),
        })
    }

    fn inspect(&self) -> Result<schema::ServerFacts, OpenPostgresError> {
        let pool = Arc::clone(&self.pool);
        let facts = wait_for(&self.runtime, async move { schema::inspect(&pool).await });
        facts.unwrap_or_else(|| Err(lost().into()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.pool.forget_idle();
        self.close = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Returns whether the store at an address is encrypted; `None` if there is none. Needs no passphrase and changes nothing.
pub fn is_encrypted(location: &Location) -> Result<Option<bool>, OpenPostgresError> {
    let facts = Session::open(location)?.inspect()?;
    Ok(facts.version.map(|_| facts.found.lock.is_some()))
}

/// A store that is about to be rewritten.
pub struct IdlePostgresStore {
    session: Session,
    durable: bool,
    locked: Option<vault::KeptLock>,
    cipher: Arc<Cipher>,
}

impl std::fmt::Debug for IdlePostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdlePostgresStore").finish_non_exhaustive()
    }
}

impl IdlePostgresStore {
    /// Opens a store that exists. That nothing else has it open is looked at when it is rewritten.
    pub fn open(options: &PostgresOptions) -> Result<Self, RewritePostgresError> {
        let session = Session::open(&options.location)?;
        let facts = session.inspect()?;
        if facts.version.is_none() {
            return Err(OpenPostgresError::Empty.into());
        }
        let cipher = vault::unlock(&facts.found, options.passphrase.as_ref())?;
        if facts.version != Some(schema::latest()) {
            let pool = Arc::clone(&session.pool);
            let done = wait_for(&session.runtime, async move {
                schema::bring_up_to_date(&pool).await
            });
            done.unwrap_or_else(|| Err(lost().into()))?;
        }
        Ok(Self {
            session,
            durable: facts.durable,
            locked: facts.found.lock,
            cipher: Arc::new(cipher.ok_or(OpenPostgresError::NotEncrypted)?),
        })
    }

    pub fn cipher(&self) -> &Arc<Cipher> {
        &self.cipher
    }

    /// Locks the same key under another passphrase. Nothing else changes.
    pub fn relock(
        self,
        old: &Passphrase,
        new: &Passphrase,
        cost: StretchCost,
    ) -> Result<(), RewritePostgresError> {
        let lock = self
            .locked
            .as_ref()
            .ok_or(OpenPostgresError::NotEncrypted)?;
        let key = lock.locked.unlock(old)?;
        new.check_strength().map_err(OpenPostgresError::from)?;
        let locked = LockedKey::lock(&key, new, cost)?;
        locked.unlock(new)?;
        let cipher = Arc::clone(&self.cipher);
        let lock = NewProtection {
            locked: Some(locked),
            cipher,
        };
        self.run(lock, false, &mut |_| ()).map(drop)
    }

    /// Writes everything anew, under another protection.
    pub fn rewrite(
        self,
        protection: NewProtection,
        tell: Tell<'_>,
    ) -> Result<Rewritten, RewritePostgresError> {
        self.run(protection, true, tell)
    }

    fn run(
        self,
        protection: NewProtection,
        recodes: bool,
        tell: Tell<'_>,
    ) -> Result<Rewritten, RewritePostgresError> {
        let (told, progress) = mpsc::channel();
        let (done, result) = mpsc::sync_channel(1);
        let work = Rewriting {
            pool: Arc::clone(&self.session.pool),
            transactions: Transactions::new(self.durable, &self.cipher),
            from: Arc::clone(&self.cipher),
            protection,
            recodes,
        };
        self.session.runtime.spawn(async move {
            drop(done.send(work.run(&told).await));
        });
        // Ends with the sender, when the work is done.
        for step in progress {
            tell(step);
        }
        result.recv().unwrap_or_else(|_| Err(lost().into()))
    }
}

/// The one transaction that rewrites a store.
struct Rewriting {
    pool: Arc<Pool>,
    transactions: Transactions,
    from: Arc<Cipher>,
    protection: NewProtection,
    recodes: bool,
}

impl Rewriting {
    async fn run(
        &self,
        told: &mpsc::Sender<RewriteProgress>,
    ) -> Result<Rewritten, RewritePostgresError> {
        let connection = self.pool.get().await?;
        let mark = super::commit::new_mark()?;
        let failed = |error: Error| store_error(&error, self.pool.place());
        let client = KeepingClient::new(&connection, None);
        let begun = self.transactions.begin(client, &mark).await;
        let done = match begun {
            Ok(()) => self.within(&connection, told).await,
            Err(error) => Err(failed(error).into()),
        };
        match done {
            Ok(rewritten) => {
                self.commit(connection, &mark).await?;
                Ok(rewritten)
            }
            Err(error) => {
                // The end of the connection rolls back too.
                connection.discard();
                Err(error)
            }
        }
    }

    async fn commit(&self, connection: Lent, mark: &Mark) -> Result<(), RewritePostgresError> {
        crash::point("postgres rewrite: before commit");
        let committed = tokio::time::timeout(COMMIT_TIMEOUT, connection.commit()).await;
        crash::point("postgres rewrite: after commit");
        let (reason, doubt) = match committed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(CommitError::Database(error))) => {
                let reason = store_error(&error, self.pool.place());
                connection.discard();
                if !is_broken(&error) {
                    return Err(reason.into());
                }
                (reason, Doubt::Broken)
            }
            Ok(Err(CommitError::Unconfirmed)) | Err(_) => {
                connection.discard();
                (self.pool.unreachable(SILENT), Doubt::Unconfirmed)
            }
        };
        match self
            .transactions
            .was_committed(&self.pool, mark, doubt)
            .await?
        {
            true => Ok(()),
            false => Err(reason.into()),
        }
    }

    async fn within(
        &self,
        client: &Client,
        told: &mpsc::Sender<RewriteProgress>,
    ) -> Result<Rewritten, RewritePostgresError> {
        let failed =
            |error: Error| RewritePostgresError::Store(store_error(&error, self.pool.place()));
        client
            .batch_execute(
                "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0",
            )
            .await
            .map_err(failed)?;
        take_alone(client, self.pool.place()).await?;
        crash::point("postgres rewrite: alone");
        let recoder = Recoder {
            client,
            place: self.pool.place(),
            from: &self.from,
            to: &self.protection.cipher,
            told,
        };
        let mut rewritten = Rewritten::default();
        if self.recodes {
            // No service is there, and what people had begun with one they begin once more.
            client
                .batch_execute(
                    "DELETE FROM planwright.service_notes; DELETE FROM planwright.call_news; \
                     DELETE FROM planwright.shared_keys",
                )
                .await
                .map_err(failed)?;
            let journal = recoder.recode_entries().await?;
            crash::point("postgres rewrite: journal written");
            rewritten.artifacts = recoder.recode_artifacts().await?;
            for table in TABLES {
                recoder.recode_table(table).await?;
            }
            crash::point("postgres rewrite: written");
            recoder.compare(&journal).await?;
            rewritten.entries = journal.entries;
            rewritten.streams = recoder.count("streams").await?;
            crash::point("postgres rewrite: compared");
        }
        let lock = self.protection.locked.as_ref();
        let lock = lock.map(|locked| (locked, &*self.protection.cipher));
        vault::replace(client, lock).await.map_err(failed)?;
        Ok(rewritten)
    }
}

/// Makes sure that no other process has the store open, and that none can open it before the transaction ends.
async fn take_alone(client: &Client, place: &str) -> Result<(), RewritePostgresError> {
    let failed = |error: Error| RewritePostgresError::Store(store_error(&error, place));
    let until = Instant::now() + PATIENCE;
    let sql = "SELECT pg_try_advisory_xact_lock($1)";
    loop {
        let row = client
            .query_typed_one(sql, &[(&OPEN_LOCK, Type::INT8)])
            .await
            .map_err(failed)?;
        // A process behind a pooler has no share in the lock. Those that own something are known by their beats.
        if row.get(0) && !is_any_alive(client).await.map_err(failed)? {
            break;
        }
        if Instant::now() >= until {
            return Err(RewritePostgresError::InUse);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let tables: Vec<String> = TABLES
        .iter()
        .map(|table| table.name)
        .chain(["entries", "artifacts", "vault"])
        .map(|name| format!("planwright.{name}"))
        .collect();
    // Every transaction that writes reads the lock first: none begins before this one ends, and none that began is missed.
    let sql = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
    client.batch_execute(&sql).await.map_err(failed)
}
