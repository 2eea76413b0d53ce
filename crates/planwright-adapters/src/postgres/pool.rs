//! Connections to the database, lent for one transaction or one statement at a time.
//!
//! A pool of our own: it is a semaphore and a list, and the borrower of a connection says whether it can be used again.

use super::commit::Value;
use super::fault::{describe, is_broken};
use super::hosts::{ConnectError, Hosts, Wire};
use super::kept_statements::{KeepingClient, KeptStatements, set_plans_by_indexes};
use planwright_engine::port::StoreError;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::error::Severity;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Error, Row};

/// The time a caller waits for a connection that others use.
const LEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The time of the server for a commit is lifted before it: one that waits for a standby is not rolled back when that time
/// is over, but answered as if the standby had confirmed it.
const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";

#[derive(Debug)]
pub(super) struct Pool {
    hosts: Arc<Hosts>,
    /// The address as messages name it.
    place: String,
    presence: Presence,
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Opened>>>,
    /// How often idle connections were forgotten.
    age: AtomicU64,
}

/// A connection that is made.
#[derive(Debug)]
struct Opened {
    client: Client,
    /// The server has sent a warning since this was last cleared.
    is_warned: Arc<AtomicBool>,
    /// What it keeps prepared. One without has each statement planned for its values.
    statements: Option<KeptStatements>,
}

/// When the server plans the statements of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planned {
    /// Each time, for the values that they are sent with.
    ForValues,
    /// Once for those that are used often, by the indexes. Behind a pooler none is.
    Once,
}

impl Opened {
    fn serves(&self, wanted: Planned) -> bool {
        self.statements.is_some() == (wanted == Planned::Once)
    }
}

/// The reason a commit was not answered with a plain yes.
#[derive(Debug)]
pub(super) enum CommitError {
    Database(Error),
    /// The server committed, and warned: a standby may not have it.
    Unconfirmed,
}

/// Whether the connections of a pool show that the store is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Each has a share in the lock of those who have the store open.
    Shown,
    /// A pooler lends connections to others, or the store is to be rewritten.
    Hidden,
}

/// Of the lock that everyone shares who has the store open. A process that rewrites the store has it alone.
pub(super) const OPEN_LOCK: i64 = 0x706c_616e_6f70_656e;

/// The time that a store which is being rewritten is waited for.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
const OPEN_PAUSE: Duration = Duration::from_millis(50);

impl Pool {
    pub(super) fn new(
        hosts: Arc<Hosts>,
        most: usize,
        (place, presence): (String, Presence),
    ) -> Self {
        Self {
            hosts,
            place,
            presence,
            room: Arc::new(Semaphore::new(most)),
            idle: Arc::default(),
            age: AtomicU64::new(0),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Lends a connection that plans statements for their values.
    pub(super) async fn get(&self) -> Result<Lent, StoreError> {
        self.lend(Planned::ForValues).await
    }

    /// Lends a connection: one that is idle, or a new one.
    pub(super) async fn lend(&self, wanted: Planned) -> Result<Lent, StoreError> {
        let wanted = match self.presence {
            Presence::Shown => wanted,
            Presence::Hidden => Planned::ForValues,
        };
        let room = Arc::clone(&self.room).acquire_owned();
        let permit = match tokio::time::timeout(LEND_TIMEOUT, room).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(StoreError::Lost("the store is closed".to_owned())),
            Err(_) => {
                return Err(StoreError::Busy(
                    "every connection to the database is in use".to_owned(),
                ));
            }
        };
        let opened = match self.take_idle(wanted) {
            Some(opened) => opened,
            None => self.open(wanted).await?,
        };
        Ok(Lent {
            opened: Some(opened),
            idle: Arc::clone(&self.idle),
            _permit: permit,
        })
    }

    /// Connects, and lets the connection work in the background until its client is dropped.
    async fn open(&self, wanted: Planned) -> Result<Opened, StoreError> {
        let connected = self.hosts.connect().await;
        let (client, wire) = connected.map_err(|error| self.unreachable(&error.describe()))?;
        let is_warned = Arc::default();
        tokio::spawn(work(wire, Arc::clone(&is_warned)));
        if self.presence == Presence::Shown {
            self.show_presence(&client).await?;
        }
        let statements = match wanted {
            Planned::ForValues => None,
            Planned::Once => {
                let set = client.batch_execute(&settings_for_kept()).await;
                set.map_err(|error| self.unreachable(&describe(&error)))?;
                Some(KeptStatements::default())
            }
        };
        Ok(Opened {
            client,
            is_warned,
            statements,
        })
    }

    /// Takes a share in the lock of those who have the store open. It ends with the connection.
    async fn show_presence(&self, client: &Client) -> Result<(), StoreError> {
        let until = Instant::now() + OPEN_PATIENCE;
        loop {
            match share_open_lock(client).await {
                Ok(true) => return Ok(()),
                Ok(false) if Instant::now() < until => tokio::time::sleep(OPEN_PAUSE).await,
                Ok(false) => {
                    return Err(StoreError::Busy(
                        "another process is rewriting the store".to_owned(),
                    ));
                }
                Err(error) => return Err(self.unreachable(&describe(&error))),
            }
        }
    }

    /// Takes the idle connection that was used last. If there is none, and no room for one more, another one ends.
    fn take_idle(&self, wanted: Planned) -> Option<Opened> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|opened| !opened.client.is_closed());
        if let Some(place) = idle.iter().rposition(|opened| opened.serves(wanted)) {
            return Some(idle.remove(place));
        }
        // Each connection that is lent, and the one that is about to be made, has taken its room.
        if idle.len() > self.room.available_permits() {
            drop(idle.remove(0));
        }
        None
    }

    /// Forgets the connections that are idle: the server they lead to does not answer.
    pub(super) fn forget_idle(&self) {
        self.age.fetch_add(1, Ordering::AcqRel);
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// A number that grows whenever connections are to be forgotten, also those that are no longer the pool's.
    pub(super) fn age(&self) -> u64 {
        self.age.load(Ordering::Acquire)
    }

    /// Makes a connection that is not lent to anyone.
    pub(super) async fn connect(&self) -> Result<(Client, Wire), ConnectError> {
        self.hosts.connect().await
    }

    /// Returns whether the server was not there a moment ago.
    pub(super) fn was_away_lately(&self) -> bool {
        self.hosts.were_away_lately()
    }

    /// Looks for another server: this one takes commits and does not confirm them.
    pub(super) fn suspect_server(&self) {
        self.hosts.suspect();
        self.forget_idle();
    }

    pub(super) fn unreachable(&self, reason: &str) -> StoreError {
        StoreError::Unreachable(format!("{}: {reason}", self.place))
    }
}

/// The settings of a connection that keeps statements: those that every transaction makes, where they may stay, and those for
/// its plans.
fn settings_for_kept() -> String {
    let settings = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SET lock_timeout = '10s'; \
         SET idle_in_transaction_session_timeout = '20s'";
    format!("{settings}{}", set_plans_by_indexes())
}

/// Returns whether a share in the lock was taken.
pub(super) async fn share_open_lock(client: &Client) -> Result<bool, Error> {
    let sql = "SELECT pg_try_advisory_lock_shared($1)";
    let row = client
        .query_typed_one(sql, &[(&OPEN_LOCK, Type::INT8)])
        .await?;
    Ok(row.get(0))
}

/// Does the work of a connection, and notes warnings before the answer that they belong to is heard.
async fn work(mut wire: Wire, is_warned: Arc<AtomicBool>) {
    while let Some(message) = poll_fn(|context| wire.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                let is_warning = notice.parsed_severity() == Some(Severity::Warning);
                is_warned.fetch_or(is_warning, Ordering::AcqRel);
            }
            Ok(_) => {}
            Err(error) => {
                let reason = describe(&error);
                tracing::debug!(reason, "a connection to the database ended");
                return;
            }
        }
    }
}

/// A connection that is lent. It goes back when it is dropped, unless it is discarded.
pub(super) struct Lent {
    opened: Option<Opened>,
    idle: Arc<Mutex<Vec<Opened>>>,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    fn opened(&self) -> &Opened {
        self.opened
            .as_ref()
            .expect("only taken when it is discarded or dropped")
    }

    /// The connection with what it keeps.
    pub(super) fn keeping(&self) -> KeepingClient<'_> {
        let opened = self.opened();
        KeepingClient::new(&opened.client, opened.statements.as_ref())
    }

    /// Carries out a statement that is a transaction by itself. Returns its rows, and whether the server has confirmed
    /// that they are durable. The caller limits the time.
    pub(super) async fn query_alone(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<(Vec<Row>, bool), Error> {
        let is_warned = &self.opened().is_warned;
        is_warned.store(false, Ordering::Release);
        let rows = self.keeping().query(sql, values).await?;
        Ok((rows, !is_warned.load(Ordering::Acquire)))
    }

    /// Commits the transaction. The caller limits the time.
    pub(super) async fn commit(&self) -> Result<(), CommitError> {
        let Opened {
            client, is_warned, ..
        } = self.opened();
        is_warned.store(false, Ordering::Release);
        let committed = client.batch_execute(COMMIT).await;
        committed.map_err(CommitError::Database)?;
        match is_warned.load(Ordering::Acquire) {
            true => Err(CommitError::Unconfirmed),
            false => Ok(()),
        }
    }

    /// Ends the connection: nothing is known about its state.
    pub(super) fn discard(mut self) {
        self.opened = None;
    }

    /// Ends the connection if an error says that it is broken. Returns whether it is.
    pub(super) fn discard_broken(self, error: &Error) -> bool {
        let broken = is_broken(error);
        if broken {
            self.discard();
        }
        broken
    }
}

impl Deref for Lent {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.opened().client
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let opened = self.opened.take();
        if let Some(opened) = opened.filter(|opened| !opened.client.is_closed()) {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(opened);
        }
    }
}
