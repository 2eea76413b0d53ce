//! The processes that are alive, as the database knows them.
//!
//! Each owner has an advisory lock on a connection of its own, which the database drops when that connection ends. A lock
//! that is gone for a moment means nothing: the server may have been restarted, and the process is about to come back. Where
//! there is no such connection, and where a machine is gone without a word, silence says the same later.

use super::commit::Value;
use super::listener::Hold;
use super::store::{Listening, Shared};
use planwright_engine::port::{OwnerId, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// How often a process says that it is there.
const BEAT: Duration = Duration::from_secs(5);
/// So many beats after which rows that are not needed any more are removed.
const BEATS_PER_SWEEP: u32 = 60;

/// Whether the advisory lock in the column `lock` is held.
const IS_LOCKED: &str = "EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.granted \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND l.objsubid = 1 AND l.classid::bigint = ((o.lock >> 32) & 4294967295) \
     AND l.objid::bigint = (o.lock & 4294967295))";

/// A process is silent after six beats, and a lock is gone after a second; five after a start of the server.
const IS_SILENT: &str = "o.seen_at < clock_timestamp() - interval '30 seconds'";
const IS_GONE: &str = "coalesce(o.missing_since < clock_timestamp() - interval '1 second', false) \
     AND pg_postmaster_start_time() < clock_timestamp() - interval '5 seconds'";

/// What is known about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Alive,
    /// Its lock is not held; it may come back within a moment.
    Missing,
    Dead,
}

#[derive(Debug)]
pub(super) struct Owners {
    listening: Arc<Listening>,
    /// The owners of this process, with their locks.
    held: Mutex<BTreeMap<OwnerId, Option<i64>>>,
}

impl Owners {
    pub(super) fn new(listening: Arc<Listening>) -> Self {
        Self {
            listening,
            held: Mutex::default(),
        }
    }

    /// Shows that `owner` is alive for as long as the store is open.
    pub(super) async fn hold(&self, shared: &Shared, owner: &OwnerId) -> Result<(), StoreError> {
        let mut held = self.held.lock().await;
        if held.contains_key(owner) {
            return Ok(());
        }
        let lock = match self.listening.start() {
            Some(holds) => Some(take_lock(&holds).await?),
            None => None,
        };
        let sql = format!(
            "INSERT INTO planwright.owners AS o (owner, lock) VALUES ($1, $2) \
             ON CONFLICT (owner) DO UPDATE SET lock = $2, seen_at = clock_timestamp(), missing_since = NULL \
             WHERE {IS_SILENT} OR o.lock IS NOT NULL AND NOT {IS_LOCKED} RETURNING 1"
        );
        let values: [(Value<'_>, Type); 2] = [(&owner.0, Type::TEXT), (&lock, Type::INT8)];
        if shared.change(&sql, &values).await?.is_empty() {
            return Err(StoreError::Failed(format!(
                "the owner id {} is in use by another store",
                owner.0
            )));
        }
        held.insert(owner.clone(), lock);
        Ok(())
    }

    /// Says that the owners of this process are gone.
    pub(super) async fn leave(&self, shared: &Shared) {
        // Held until the rows are gone: a beat at the same time would bring them back.
        let mut held = self.held.lock().await;
        let owners: Vec<String> = std::mem::take(&mut *held)
            .into_keys()
            .map(|owner| owner.0)
            .collect();
        if owners.is_empty() {
            return;
        }
        let sql = "DELETE FROM planwright.owners WHERE owner = ANY($1)";
        if let Err(error) = shared.change(sql, &[(&owners, Type::TEXT_ARRAY)]).await {
            tracing::debug!(%error, "others will notice later that this process is gone");
        }
    }
}

async fn take_lock(holds: &tokio::sync::mpsc::Sender<Hold>) -> Result<i64, StoreError> {
    let stopped = || StoreError::Lost("its listener has stopped".to_owned());
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Failed(format!("there is no randomness: {error}")))?;
    let lock = i64::from_le_bytes(bytes);
    let (held, taken) = oneshot::channel();
    holds
        .send(Hold { lock, held })
        .await
        .map_err(|_| stopped())?;
    match taken.await.map_err(|_| stopped())?? {
        true => Ok(lock),
        false => Err(StoreError::Failed("a random lock is taken".to_owned())),
    }
}

impl Shared {
    /// Looks whether a process is alive, and notes when its lock was first seen to be gone.
    pub(super) async fn life(&self, owner: &OwnerId) -> Result<Life, StoreError> {
        let sql = format!(
            "SELECT o.lock IS NULL OR {IS_LOCKED}, {IS_SILENT}, {IS_GONE}, o.missing_since IS NOT NULL \
             FROM planwright.owners AS o WHERE o.owner = $1"
        );
        let values: [(Value<'_>, Type); 1] = [(&owner.0, Type::TEXT)];
        let Some(row) = self.row(&sql, &values).await? else {
            return Ok(Life::Dead);
        };
        let (is_shown, is_silent, is_gone): (bool, bool, bool) =
            (row.get(0), row.get(1), row.get(2));
        if is_silent {
            return Ok(Life::Dead);
        }
        if is_shown {
            return Ok(Life::Alive);
        }
        // After a failover the locks are gone with the server that had them, and this one started long ago.
        if is_gone && !self.pool.was_away_lately() {
            return Ok(Life::Dead);
        }
        if !row.get::<_, bool>(3) {
            let sql = "UPDATE planwright.owners SET missing_since = clock_timestamp() \
                       WHERE owner = $1 AND missing_since IS NULL";
            self.rows(sql, &values).await?;
        }
        Ok(Life::Missing)
    }
}

/// Returns whether any process that owns something is alive, or may be.
pub(super) async fn is_any_alive(client: &Client) -> Result<bool, Error> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM planwright.owners AS o \
         WHERE NOT ({IS_SILENT}) AND (o.lock IS NULL OR {IS_LOCKED}))"
    );
    Ok(client.query_typed_one(&sql, &[]).await?.get(0))
}

/// Says from time to time that the owners of this process are alive, and removes old rows.
pub(super) async fn beat(shared: &Shared) {
    let mut beats: u32 = 0;
    loop {
        let changed = shared.wakeups.listening_changed.notified();
        drop(tokio::time::timeout(BEAT, changed).await);
        if let Err(error) = beat_once(shared).await {
            tracing::debug!(%error, "could not say that this process is alive");
        }
        if beats.is_multiple_of(BEATS_PER_SWEEP)
            && let Err(error) = sweep(shared).await
        {
            tracing::debug!(%error, "old rows could not be removed");
        }
        beats = beats.wrapping_add(1);
    }
}

async fn beat_once(shared: &Shared) -> Result<(), StoreError> {
    // Held for as long as this takes: owners that leave meanwhile must not be written again.
    let held = shared.owners.held.lock().await;
    if held.is_empty() {
        return Ok(());
    }
    let owners: Vec<&str> = held.keys().map(|owner| owner.0.as_str()).collect();
    // Without the connection that has the locks, this process is known by its beats alone.
    let listens = shared.wakeups.listens();
    let locks: Vec<Option<i64>> = held.values().map(|lock| lock.filter(|_| listens)).collect();
    // A row that another process took for dead and removed is written again.
    let sql = "INSERT INTO planwright.owners (owner, lock) SELECT * FROM unnest($1::text[], $2::bigint[]) \
               ON CONFLICT (owner) DO UPDATE SET seen_at = clock_timestamp(), lock = excluded.lock, missing_since = NULL";
    let values: [(Value<'_>, Type); 2] = [(&owners, Type::TEXT_ARRAY), (&locks, Type::INT8_ARRAY)];
    shared.rows(sql, &values).await.map(drop)
}

async fn sweep(shared: &Shared) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM planwright.commit_marks WHERE at < now() - interval '1 hour'",
        "DELETE FROM planwright.owners WHERE seen_at < now() - interval '1 day'",
        // A worker that is alive is in `owners`.
        "DELETE FROM planwright.workers AS w WHERE w.seen_at < now() - interval '1 day' \
         AND NOT EXISTS (SELECT 1 FROM planwright.owners AS o WHERE o.owner = w.id)",
        "DELETE FROM planwright.call_news AS n WHERE n.at < now() - interval '1 minute' AND NOT EXISTS \
         (SELECT 1 FROM planwright.offers AS o WHERE (o.run, o.step, o.attempt) = (n.run, n.step, n.attempt))",
        "DELETE FROM planwright.service_notes \
         WHERE expires_at < extract(epoch FROM now() - interval '10 minutes') * 1000",
        "DELETE FROM planwright.request_rates WHERE at < now() - interval '1 day'",
        "DELETE FROM planwright.services WHERE seen_at < now() - interval '1 hour'",
    ] {
        shared.rows(sql, &[]).await?;
    }
    Ok(())
}
