//! A connection of its own, on which other processes are heard and by which they know that this one is alive.

use super::fault::describe;
use super::hosts::{ConnectError, Hosts};
use super::pool::share_open_lock;
use super::wakeups::{CHANNEL, Wakeups};
use planwright_engine::port::StoreError;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Error};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The time that the server has to take its leave.
const FAREWELL: Duration = Duration::from_secs(1);
/// News that wait to be read. More are dropped, and everything is looked at instead.
const MAX_NEWS: usize = 1024;

/// A lock to take on the connection, and to take again whenever the connection is made anew.
pub(super) struct Hold {
    pub(super) lock: i64,
    pub(super) held: oneshot::Sender<Result<bool, StoreError>>,
}

/// Listens, and holds locks, until `holds` is closed.
pub(super) async fn listen(
    hosts: Arc<Hosts>,
    wakeups: Arc<Wakeups>,
    mut holds: mpsc::Receiver<Hold>,
) {
    let mut locks = BTreeSet::new();
    let mut pause = FIRST_PAUSE;
    loop {
        match listen_once(&hosts, &wakeups, &mut holds, &mut locks).await {
            Ok(Left::Closed) => return,
            Ok(Left::Broken) => pause = FIRST_PAUSE,
            Ok(Left::StillHeld) => wakeups.note_listening(false),
            Err(error) => {
                // Others must not take this process for dead because it cannot be heard.
                wakeups.note_listening(false);
                let reason = error.describe();
                tracing::debug!(reason, "cannot listen to the database");
                // Those who wait for a lock must not wait for a server that is not there.
                while let Ok(hold) = holds.try_recv() {
                    let reason = StoreError::Unreachable(reason.clone());
                    drop(hold.held.send(Err(reason)));
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Why listening ended.
enum Left {
    Closed,
    Broken,
    /// The server has not noticed yet that the connection before is gone, and holds a lock for it; or the store is being
    /// rewritten.
    StillHeld,
}

async fn listen_once(
    hosts: &Hosts,
    wakeups: &Wakeups,
    holds: &mut mpsc::Receiver<Hold>,
    locks: &mut BTreeSet<i64>,
) -> Result<Left, ConnectError> {
    let (client, mut connection) = hosts.connect().await?;
    // From here on, so that it is noticed if this server is left while the locks are taken.
    let mut moved = hosts.watch();
    let (heard, mut news) = mpsc::channel(MAX_NEWS);
    let reading = tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    // A full queue means that everything is looked at anyway.
                    drop(heard.try_send(notification.payload().to_owned()));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    });
    let left = tokio::select! {
        left = follow(&client, wakeups, holds, locks, &mut news) => left,
        // The locks have to be where the others look for them.
        _ = moved.changed() => Ok(Left::Broken),
    };
    drop(client);
    // The connection ends with its client, and its locks with it. A server that is silent does not end it.
    let aborting = reading.abort_handle();
    if tokio::time::timeout(FAREWELL, reading).await.is_err() {
        aborting.abort();
    }
    left.map_err(ConnectError::Database)
}

async fn follow(
    client: &Client,
    wakeups: &Wakeups,
    holds: &mut mpsc::Receiver<Hold>,
    locks: &mut BTreeSet<i64>,
    news: &mut mpsc::Receiver<String>,
) -> Result<Left, Error> {
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
    for lock in locks.iter() {
        if !take(client, *lock).await? {
            return Ok(Left::StillHeld);
        }
    }
    // Where a pooler lends the other connections, this one shows that the store is open.
    if !share_open_lock(client).await? {
        return Ok(Left::StillHeld);
    }
    wakeups.note_listening(true);
    // What was said while this process did not listen is lost.
    wakeups.wake_all();
    loop {
        tokio::select! {
            heard = news.recv() => match heard {
                Some(payload) => wakeups.hear(&payload),
                None => return Ok(Left::Broken),
            },
            hold = holds.recv() => match hold {
                None => return Ok(Left::Closed),
                Some(Hold { lock, held }) => match take(client, lock).await {
                    Ok(taken) => {
                        locks.insert(lock);
                        drop(held.send(Ok(taken)));
                    }
                    Err(error) => {
                        drop(held.send(Err(StoreError::Unreachable(describe(&error)))));
                        return Err(error);
                    }
                },
            },
        }
    }
}

async fn take(client: &Client, lock: i64) -> Result<bool, Error> {
    let sql = "SELECT pg_try_advisory_lock($1)";
    let row = client.query_typed_one(sql, &[(&lock, Type::INT8)]).await?;
    Ok(row.get(0))
}
