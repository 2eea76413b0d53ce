//! The store as the engine sees it. Everything that talks to the database runs on a thread of its own, so that the
//! store is the same under any runtime and can be closed properly.

use super::appending::{self, Queued};
use super::artifacts::RecentArtifacts;
use super::commit::{ANSWER_TIMEOUT, Patience, SILENT, Transactions, Value};
use super::fault::{Stop, store_error};
use super::hosts::Hosts;
use super::kept_statements::KeepingClient;
use super::listener;
use super::location::{Direct, Location};
use super::open_error::OpenPostgresError;
use super::owners::Owners;
use super::pool::{Planned, Pool, Presence};
use super::schema;
use super::single_append::SingleAppends;
use super::tls::Connector;
use super::vault;
use super::wakeups::{News, Wakeups};
use crate::vault::{Cipher, Passphrase, StretchCost};
use planwright_engine::port::{BoxFuture, StoreError};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// Appends that wait for a writer. More callers wait for room.
const MAX_QUEUED: usize = 1024;
/// Locks that wait to be taken.
const MAX_HOLDS: usize = 64;
/// Connections that commit appends at the same time.
const WRITERS: usize = 4;
const READ_PATIENCE: Duration = Duration::from_secs(5);
/// The time that closing waits for what is under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What all tasks of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Arc<Pool>,
    pub(super) transactions: Transactions,
    /// Seals what is written, if the store is encrypted.
    pub(super) cipher: Arc<Cipher>,
    pub(super) wakeups: Arc<Wakeups>,
    pub(super) owners: Owners,
    /// One reader of this process gives places in the feed at a time.
    pub(super) placing: tokio::sync::Mutex<()>,
    /// Names this store among those that are open on the database.
    pub(super) instance: Vec<u8>,
    /// Whether this process has the turn at retention.
    pub(super) turn: Arc<AtomicBool>,
    pub(super) single_appends: SingleAppends,
    pub(super) recent_artifacts: RecentArtifacts,
    /// Requests that wait for a writer, or for its answer.
    pub(super) queued: AtomicUsize,
}

impl Shared {
    /// Reads rows, and tries again where the connection is broken.
    pub(super) async fn rows(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask(sql, values, Planned::ForValues).await
    }

    /// As [`Shared::rows`], with a statement that is asked often: it is planned once, by the indexes.
    pub(super) async fn kept_rows(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask(sql, values, Planned::Once).await
    }

    async fn ask(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
        planned: Planned,
    ) -> Result<Vec<Row>, StoreError> {
        let mut patience = Patience::new(READ_PATIENCE);
        loop {
            let error = match self.pool.lend(planned).await {
                Ok(connection) => {
                    let asked = connection.keeping().query(sql, values);
                    match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
                        Ok(Ok(rows)) => {
                            connection.keeping().prepare_due().await;
                            return Ok(rows);
                        }
                        Ok(Err(error)) => {
                            let reason = store_error(&error, self.pool.place());
                            if !connection.discard_broken(&error) {
                                return Err(reason);
                            }
                            self.pool.forget_idle();
                            reason
                        }
                        Err(_) => {
                            connection.discard();
                            self.pool.forget_idle();
                            self.pool.unreachable(SILENT)
                        }
                    }
                }
                Err(error @ StoreError::Unreachable(_)) => error,
                Err(error) => return Err(error),
            };
            if !patience.wait().await {
                return Err(error);
            }
        }
    }

    /// Reads a row, if there is one.
    pub(super) async fn row(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// As [`Shared::row`], with a statement that is asked often.
    pub(super) async fn kept_row(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.kept_rows(sql, values).await?.into_iter().next())
    }

    /// Does `work` with `data` in one transaction, again where it has to be begun anew.
    pub(super) async fn transact<D, T, E, F>(&self, data: &D, work: F) -> Result<T, E>
    where
        D: Sync,
        E: From<StoreError>,
        F: for<'c> Fn(&'c Client, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let pool = (&*self.pool, Planned::ForValues);
        self.transactions
            .run(pool, data, |client, data| work(client.plain(), data))
            .await
    }

    /// As [`Shared::transact`], with statements that are used often.
    pub(super) async fn transact_kept<D, T, E, F>(&self, data: &D, work: F) -> Result<T, E>
    where
        D: Sync,
        E: From<StoreError>,
        F: for<'c> Fn(KeepingClient<'c>, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let pool = (&*self.pool, Planned::Once);
        self.transactions.run(pool, data, work).await
    }

    /// Makes one statement in a transaction, and tells other processes about it.
    pub(super) async fn change(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.change_quietly(sql, values).await?;
        self.wakeups.announce(News::Change);
        Ok(rows)
    }

    /// Makes one statement in a transaction.
    pub(super) async fn change_quietly(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        self.transactions.run_one(&self.pool, sql, values).await
    }
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub location: Location,
    /// Makes the tables if there are none.
    pub create: bool,
    /// Opens an encrypted store, or makes a new one encrypted.
    pub passphrase: Option<Passphrase>,
    /// The cost of trying a passphrase, for a store that is made.
    pub cost: StretchCost,
}

impl PostgresOptions {
    pub fn new(location: Location, create: bool) -> Self {
        Self {
            location,
            create,
            passphrase: None,
            cost: StretchCost::DEFAULT,
        }
    }
}

/// What the server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReport {
    /// The version, such as `15.8`.
    pub version: String,
    /// The time that a small question and its answer take.
    pub latency: Duration,
    /// The version of the tables.
    pub schema: i32,
    /// Records that have no place in the feed yet.
    pub unplaced: u64,
    /// True if the server promises that a commit survives a crash of its machine.
    pub is_durable: bool,
}

/// A journal in a Postgres database. Any number of stores, in any number of processes, may be open on one database.
pub struct PostgresStore {
    location: Location,
    shared: Arc<Shared>,
    runtime: Handle,
    queue: Option<mpsc::Sender<Queued>>,
    listening: Arc<Listening>,
    failure: watch::Sender<Option<String>>,
    close: Option<oneshot::Sender<()>>,
    writers: Vec<tokio::task::JoinHandle<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

/// The connection for news, which is made when it is first needed: a command that only reads has none.
#[derive(Debug)]
pub(super) struct Listening {
    /// Where it leads; `None` where there is none.
    hosts: Option<Arc<Hosts>>,
    wakeups: Arc<Wakeups>,
    holds: std::sync::Mutex<Option<mpsc::Sender<listener::Hold>>>,
}

impl Listening {
    /// Returns where locks are asked for; `None` where there is no such connection. Needs the store's runtime.
    pub(super) fn start(&self) -> Option<mpsc::Sender<listener::Hold>> {
        let hosts = self.hosts.as_ref()?;
        let mut holds = self
            .holds
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(sender) = &*holds {
            return Some(sender.clone());
        }
        let (sender, receiver) = mpsc::channel(MAX_HOLDS);
        tokio::spawn(listener::listen(
            Arc::clone(hosts),
            Arc::clone(&self.wakeups),
            receiver,
        ));
        *holds = Some(sender.clone());
        Some(sender)
    }

    /// Ends the connection, and with it the locks on it.
    fn stop(&self) {
        self.holds
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
    }
}

impl PostgresStore {
    /// Opens a store, and makes its tables if there are none and `create` says so.
    pub fn open(location: Location, create: bool) -> Result<Self, OpenPostgresError> {
        Self::open_with(PostgresOptions::new(location, create))
    }

    /// Opens a store as `options` say.
    pub fn open_with(options: PostgresOptions) -> Result<Self, OpenPostgresError> {
        let PostgresOptions {
            location,
            create,
            passphrase,
            cost,
        } = options;
        let connector = Connector::new(&location.encryption)?;
        let presence = match &location.direct {
            Direct::Same => Presence::Shown,
            // What a connection holds would stay with the pooler.
            Direct::At(_) | Direct::None => Presence::Hidden,
        };
        let hosts = Arc::new(Hosts::new(&location.config, connector.clone()));
        let listening_to = match &location.direct {
            Direct::Same => Some(Arc::clone(&hosts)),
            Direct::At(config) => Some(Arc::new(Hosts::new(config, connector))),
            Direct::None => None,
        };
        let pool = Arc::new(Pool::new(
            hosts,
            location.connections,
            (location.to_string(), presence),
        ));
        let (close, closed) = oneshot::channel();
        let (runtime, thread) = start_thread(closed)?;
        let inspected = Arc::clone(&pool);
        let facts = wait_for(&runtime, async move { schema::inspect(&inspected).await });
        let facts = facts.unwrap_or_else(|| Err(lost().into()))?;
        if facts.version.is_none() && !create {
            return Err(OpenPostgresError::Empty);
        }
        // Nothing is changed before the passphrase is known to be right.
        let cipher = vault::unlock(&facts.found, passphrase.as_ref())?;
        if facts.version != Some(schema::latest()) {
            let migrated = Arc::clone(&pool);
            let done = wait_for(&runtime, async move {
                schema::bring_up_to_date(&migrated).await
            });
            done.unwrap_or_else(|| Err(lost().into()))?;
        }
        let cipher = match (cipher, passphrase) {
            (Some(cipher), _) => cipher,
            (None, Some(passphrase)) => create_lock(&runtime, &pool, &passphrase, cost)?,
            (None, None) => Cipher::Plain,
        };
        let instance = super::commit::new_mark()?.0;
        let wakeups = Arc::new(Wakeups::new(super::rows::hex(&instance)));
        let listening = Arc::new(Listening {
            hosts: listening_to,
            wakeups: Arc::clone(&wakeups),
            holds: std::sync::Mutex::default(),
        });
        let shared = Arc::new(Shared {
            pool,
            transactions: Transactions::new(facts.durable, &cipher),
            cipher: Arc::new(cipher),
            wakeups,
            owners: Owners::new(Arc::clone(&listening)),
            placing: tokio::sync::Mutex::default(),
            instance,
            turn: Arc::default(),
            single_appends: SingleAppends::new(presence == Presence::Shown),
            recent_artifacts: RecentArtifacts::default(),
            queued: AtomicUsize::new(0),
        });
        let (queue, requests) = mpsc::channel(MAX_QUEUED);
        let requests = Arc::new(tokio::sync::Mutex::new(requests));
        let most = location.connections.saturating_sub(1).clamp(1, WRITERS);
        let writers = (0..most).map(|_| {
            let served = appending::serve_queue(Arc::clone(&shared), Arc::clone(&requests));
            runtime.spawn(served)
        });
        let writers = writers.collect();
        let sending = Arc::clone(&shared);
        runtime.spawn(async move { sending.wakeups.send_news(&sending.pool).await });
        let beating = Arc::clone(&shared);
        runtime.spawn(async move { super::owners::beat(&beating).await });
        Ok(Self {
            location,
            shared,
            runtime,
            queue: Some(queue),
            listening,
            failure: watch::Sender::new(None),
            close: Some(close),
            writers,
            thread: Some(thread),
        })
    }

    /// Seals what the store writes.
    pub fn cipher(&self) -> &Arc<Cipher> {
        &self.shared.cipher
    }

    /// The address of the store, without the password.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Lists the faults of the rows beside the journal: labels, messages, tokens and the like that do not open.
    pub async fn odd_rows(&self) -> Result<Vec<String>, StoreError> {
        self.on(|shared| async move {
            let connection = shared.pool.get().await?;
            let place = shared.pool.place();
            let found = super::sealed_tables::check_rows(&connection, &shared.cipher, place).await;
            if found.is_err() {
                // Its transaction may not have ended.
                connection.discard();
            }
            found
        })
        .await
    }

    /// Asks the server about itself.
    pub async fn report(&self) -> Result<ServerReport, StoreError> {
        self.on(|shared| async move {
            // The first question may have to connect.
            shared.rows("SELECT 1", &[]).await?;
            let started = Instant::now();
            let sql = "SELECT current_setting('server_version'), \
                       (SELECT max(version) FROM planwright.schema_version), \
                       (SELECT coalesce(sum(last_seq - first_seq + 1), 0)::bigint FROM planwright.unplaced), \
                       current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'";
            let row = shared.row(sql, &[]).await?;
            let latency = started.elapsed();
            let row = row.ok_or_else(|| StoreError::Failed("the server said nothing".to_owned()))?;
            Ok(ServerReport {
                version: row.get(0),
                latency,
                schema: row.get::<_, Option<i32>>(1).unwrap_or_default(),
                unplaced: u64::try_from(row.get::<_, i64>(2)).unwrap_or_default(),
                is_durable: row.get(3),
            })
        })
        .await
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Does something on the thread of the store.
    pub(super) fn on<'a, T, E, F>(
        &'a self,
        make: impl FnOnce(Arc<Shared>) -> F + Send + 'a,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        Box::pin(async move {
            let work = self.runtime.spawn(make(Arc::clone(&self.shared)));
            work.await.unwrap_or_else(|_| Err(lost().into()))
        })
    }

    /// As [`PostgresStore::on`], for callers that cannot wait asynchronously.
    pub(super) fn block_on<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        wait_for(&self.runtime, work).unwrap_or_else(|| Err(lost()))
    }

    /// Queues an append for the writers.
    pub(super) async fn enqueue(&self, queued: Queued) -> Result<(), StoreError> {
        let queue = self.queue.as_ref().ok_or_else(lost)?;
        queue.send(queued).await.map_err(|_| lost())
    }

    /// Makes sure that news arrive.
    pub(super) fn start_listening(&self) {
        if self.shared.wakeups.begin_looking() {
            let listening = Arc::clone(&self.listening);
            let looking = Arc::clone(&self.shared.wakeups);
            let pool = Arc::clone(&self.shared.pool);
            self.runtime.spawn(async move {
                listening.start();
                looking.look_slowly(pool).await;
            });
        }
    }

    pub(super) fn failure_watch(&self) -> watch::Receiver<Option<String>> {
        self.failure.subscribe()
    }
}

/// Gives an empty store its lock, or opens the one that another process has just made.
fn create_lock(
    runtime: &Handle,
    pool: &Arc<Pool>,
    passphrase: &Passphrase,
    cost: StretchCost,
) -> Result<Cipher, OpenPostgresError> {
    let (locked, cipher) = vault::make_lock(passphrase, cost)?;
    let pool = Arc::clone(pool);
    let created = wait_for(runtime, async move {
        let found = vault::create(&pool, &locked, &cipher).await?;
        Ok::<_, OpenPostgresError>((found, locked, cipher))
    });
    let (found, locked, cipher) = created.unwrap_or_else(|| Err(lost().into()))?;
    match &found.lock {
        Some(lock) if lock.locked == locked => Ok(cipher),
        Some(_) | None => vault::unlock(&found, Some(passphrase))?.ok_or_else(|| lost().into()),
    }
}

pub(super) fn lost() -> StoreError {
    StoreError::Lost("its thread has stopped".to_owned())
}

/// Starts the thread that talks to the database. It ends when `closed` does.
pub(super) fn start_thread(
    closed: oneshot::Receiver<()>,
) -> Result<(Handle, JoinHandle<()>), OpenPostgresError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(OpenPostgresError::Thread)?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new()
        .name("planwright-postgres".to_owned())
        .spawn(move || {
            drop(runtime.block_on(closed));
            runtime.shutdown_background();
        })
        .map_err(OpenPostgresError::Thread)?;
    Ok((handle, thread))
}

/// Waits on this thread for something that the thread of the store does.
pub(super) fn wait_for<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (done, waiting) = blocking::sync_channel(1);
    runtime.spawn(async move { drop(done.send(work.await)) });
    waiting.recv().ok()
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queue = None;
        self.shared.single_appends.close();
        let writers = std::mem::take(&mut self.writers);
        let shared = Arc::clone(&self.shared);
        let listening = Arc::clone(&self.listening);
        wait_for(&self.runtime, async move {
            let closing = async {
                futures::future::join_all(writers).await;
                // Other processes need not wait for this one.
                shared.owners.leave(&shared).await;
                listening.stop();
            };
            drop(tokio::time::timeout(CLOSE_TIMEOUT, closing).await);
        });
        self.close = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
