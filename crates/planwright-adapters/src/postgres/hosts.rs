//! The servers of one address, of which one can be written.
//!
//! They are tried one by one and not by the client library: it begins with the first each time, and it waits for ever for a
//! server that takes a connection and says nothing.

use super::fault::describe;
use super::location::single_hosts;
use super::tls::{Connector, Stream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_postgres::{Client, Config, Connection, Error, Socket};

/// The time that a server has to greet, beside the time that reaching it may take.
const GREETING: Duration = Duration::from_secs(15);

/// The time that processes have to connect again after a failover: longer than the longest pause between two attempts.
const COMING_BACK: Duration = Duration::from_secs(5);

/// The part of a connection that does its work.
pub(super) type Wire = Connection<Socket, Stream<Socket>>;

/// The servers of an address. The one that was used last is tried first.
#[derive(Debug)]
pub(super) struct Hosts {
    each: Vec<Config>,
    connector: Connector,
    first: watch::Sender<usize>,
    /// When this process last could not connect, or came to another server.
    away_at: Mutex<Option<Instant>>,
}

/// The reason no server can be used.
#[derive(Debug)]
pub(super) enum ConnectError {
    Database(Error),
    Silent,
}

impl ConnectError {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Database(error) => describe(error),
            Self::Silent => "the server does not answer".to_owned(),
        }
    }
}

impl Hosts {
    pub(super) fn new(config: &Config, connector: Connector) -> Self {
        Self {
            each: single_hosts(config),
            connector,
            first: watch::Sender::new(0),
            away_at: Mutex::default(),
        }
    }

    /// Connects to a server that can be written.
    pub(super) async fn connect(&self) -> Result<(Client, Wire), ConnectError> {
        let count = self.each.len();
        let first = *self.first.borrow();
        let mut failed = ConnectError::Silent;
        for place in (0..count).map(|turn| (first + turn) % count.max(1)) {
            let greeted = self.each[place].connect(self.connector.clone());
            match tokio::time::timeout(GREETING, greeted).await {
                Ok(Ok(connected)) => {
                    self.prefer(place);
                    return Ok(connected);
                }
                Ok(Err(error)) => failed = ConnectError::Database(error),
                Err(_) => failed = ConnectError::Silent,
            }
        }
        self.note_away();
        Err(failed)
    }

    fn note_away(&self) {
        *self.away_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether no server could be written a moment ago: then other processes are about to come back to it too, and
    /// the locks that they do not have yet say nothing about them.
    pub(super) fn were_away_lately(&self) -> bool {
        let away_at = *self.away_at.lock().unwrap_or_else(PoisonError::into_inner);
        away_at.is_some_and(|at| at.elapsed() < COMING_BACK)
    }

    fn prefer(&self, place: usize) {
        let is_moved = self.first.send_if_modified(|first| {
            let is_other = *first != place;
            *first = place;
            is_other
        });
        if is_moved {
            self.note_away();
        }
    }

    /// Tries the next server first from now on: this one does not confirm commits. It may be a primary that does not know
    /// yet that another has taken its place.
    pub(super) fn suspect(&self) {
        let first = *self.first.borrow();
        self.prefer((first + 1) % self.each.len().max(1));
    }

    /// Tells when another server is tried first.
    pub(super) fn watch(&self) -> watch::Receiver<usize> {
        self.first.subscribe()
    }
}
