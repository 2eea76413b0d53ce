//! Connections to the database, lent for one transaction or one statement at a time.
//!
//! A pool of our own: it is a semaphore and a list, and the borrower of a connection says whether it can be used again.

use super::fault::{describe, is_broken};
use super::tls::Connector;
use planwright_engine::port::StoreError;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error};

/// The time a caller waits for a connection that others use.
const LEND_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
    connector: Connector,
    /// The address as messages name it.
    place: String,
    presence: Presence,
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Client>>>,
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
        config: Config,
        connector: Connector,
        most: usize,
        (place, presence): (String, Presence),
    ) -> Self {
        Self {
            config,
            connector,
            place,
            presence,
            room: Arc::new(Semaphore::new(most)),
            idle: Arc::default(),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Lends a connection: one that is idle, or a new one.
    pub(super) async fn get(&self) -> Result<Lent, StoreError> {
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
        let client = match self.take_idle() {
            Some(client) => client,
            None => {
                let client = connect(&self.config, &self.connector)
                    .await
                    .map_err(|error| self.unreachable(&error))?;
                if self.presence == Presence::Shown {
                    self.show_presence(&client).await?;
                }
                client
            }
        };
        Ok(Lent {
            client: Some(client),
            idle: Arc::clone(&self.idle),
            _permit: permit,
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
                Err(error) => return Err(self.unreachable(&error)),
            }
        }
    }

    fn take_idle(&self) -> Option<Client> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|client| !client.is_closed());
        idle.pop()
    }

    /// Forgets the connections that are idle: the server they lead to does not answer.
    pub(super) fn forget_idle(&self) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    pub(super) fn unreachable(&self, error: &Error) -> StoreError {
        StoreError::Unreachable(format!("{}: {}", self.place, describe(error)))
    }
}

/// Returns whether a share in the lock was taken.
pub(super) async fn share_open_lock(client: &Client) -> Result<bool, Error> {
    let sql = "SELECT pg_try_advisory_lock_shared($1)";
    let row = client
        .query_typed_one(sql, &[(&OPEN_LOCK, Type::INT8)])
        .await?;
    Ok(row.get(0))
}

/// Connects, and lets the connection work in the background until its client is dropped.
async fn connect(config: &Config, connector: &Connector) -> Result<Client, Error> {
    let (client, connection) = config.connect(connector.clone()).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(
                reason = describe(&error),
                "a connection to the database ended"
            );
        }
    });
    Ok(client)
}

/// A connection that is lent. It goes back when it is dropped, unless it is discarded.
pub(super) struct Lent {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    /// Ends the connection: nothing is known about its state.
    pub(super) fn discard(mut self) {
        self.client = None;
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
        self.client
            .as_ref()
            .expect("only taken when it is discarded or dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.client.take().filter(|client| !client.is_closed()) {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(client);
        }
    }
}
