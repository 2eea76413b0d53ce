//! The lock of an encrypted store, kept in the database itself: a dump of it can be opened with the passphrase.

use super::commit::Value;
use super::fault::store_error;
use super::open_error::OpenPostgresError;
use super::pool::Pool;
use super::schema::LOCK;
use crate::vault::{Cipher, DataKey, LockedKey, Passphrase, StretchCost, UnlockError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// The first version of the tables that has the lock's.
pub(super) const FIRST_VERSION: i32 = 3;

/// A lock as its row has it.
#[derive(Debug, Clone)]
pub(super) struct KeptLock {
    pub(super) locked: LockedKey,
    key_id: String,
}

impl KeptLock {
    fn read(row: &Row) -> Self {
        // A number that is out of range is none that a lock was ever made with.
        let number = |column: usize| u32::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        Self {
            locked: LockedKey {
                format: number(0),
                cost: StretchCost {
                    memory_kib: number(1),
                    passes: number(2),
                    lanes: number(3),
                },
                salt: row.get(4),
                nonce: row.get(5),
                wrapped: row.get(6),
            },
            key_id: row.get(7),
        }
    }

    /// Opens it into a cipher.
    pub(super) fn open(&self, passphrase: &Passphrase) -> Result<Cipher, UnlockError> {
        let cipher = self.locked.open(passphrase)?;
        if cipher.key_id() != Some(&self.key_id) {
            return Err(UnlockError::Damaged("it names another key"));
        }
        Ok(cipher)
    }
}

/// The lock, if the store has one. The tables have to be there.
pub(super) async fn read(client: &Client) -> Result<Option<KeptLock>, Error> {
    let sql = "SELECT format, memory_kib, passes, lanes, salt, nonce, wrapped_key, key_id FROM planwright.vault";
    let row = client.query_typed_opt(sql, &[]).await?;
    Ok(row.as_ref().map(KeptLock::read))
}

/// Keeps a lock in place of any other. The old one must not stay behind in the table's file, where the old passphrase would
/// still open it: a table that is truncated begins a new file.
pub(super) async fn replace(
    client: &Client,
    lock: Option<(&LockedKey, &Cipher)>,
) -> Result<(), Error> {
    client.batch_execute("TRUNCATE planwright.vault").await?;
    match lock {
        Some((locked, cipher)) => insert(client, locked, cipher).await,
        None => Ok(()),
    }
}

async fn insert(client: &Client, locked: &LockedKey, cipher: &Cipher) -> Result<(), Error> {
    let sql = "INSERT INTO planwright.vault \
               (single, format, memory_kib, passes, lanes, salt, nonce, wrapped_key, key_id) \
               VALUES (true, $1, $2, $3, $4, $5, $6, $7, $8)";
    let StretchCost {
        memory_kib,
        passes,
        lanes,
    } = locked.cost;
    let values: [(Value<'_>, Type); 8] = [
        (&i64::from(locked.format), Type::INT8),
        (&i64::from(memory_kib), Type::INT8),
        (&i64::from(passes), Type::INT8),
        (&i64::from(lanes), Type::INT8),
        (&locked.salt, Type::BYTEA),
        (&locked.nonce, Type::BYTEA),
        (&locked.wrapped, Type::BYTEA),
        (&cipher.key_id(), Type::TEXT),
    ];
    client.execute_typed(sql, &values).await.map(drop)
}

/// What there was before a store was opened.
pub(super) struct Found {
    pub(super) lock: Option<KeptLock>,
    pub(super) is_empty: bool,
}

/// The cipher of a store, before anything in it is touched. An encrypted store needs its passphrase; a passphrase needs an
/// encrypted store, or one in which nothing is yet (`None`): an operator who sets one must not be answered in plain text.
pub(super) fn unlock(
    found: &Found,
    passphrase: Option<&Passphrase>,
) -> Result<Option<Cipher>, OpenPostgresError> {
    match (&found.lock, passphrase) {
        (None, None) => Ok(Some(Cipher::Plain)),
        (Some(_), None) => Err(OpenPostgresError::Encrypted),
        (Some(lock), Some(passphrase)) => Ok(Some(lock.open(passphrase)?)),
        (None, Some(_)) if found.is_empty => Ok(None),
        (None, Some(_)) => Err(OpenPostgresError::NotEncrypted),
    }
}

/// Reads what decides how a store is opened. The tables have to be there.
pub(super) async fn find(client: &Client) -> Result<Found, Error> {
    let lock = read(client).await?;
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM planwright.streams)";
    let is_empty = client.query_typed_one(sql, &[]).await?.get(0);
    Ok(Found { lock, is_empty })
}

/// Gives an empty store its lock. Of several processes one does it, and the others find what it made.
pub(super) async fn create(
    pool: &Pool,
    locked: &LockedKey,
    cipher: &Cipher,
) -> Result<Found, OpenPostgresError> {
    let connection = pool.get().await?;
    let done = create_within(&connection, locked, cipher).await;
    let ended = match &done {
        Ok(_) => connection.batch_execute("COMMIT").await,
        Err(_) => connection.batch_execute("ROLLBACK").await,
    };
    if ended.is_err() {
        connection.discard();
    }
    let failed = |error: Error| OpenPostgresError::from(store_error(&error, pool.place()));
    let found = done.map_err(failed)?;
    ended.map_err(failed)?;
    Ok(found)
}

async fn create_within(
    client: &Client,
    locked: &LockedKey,
    cipher: &Cipher,
) -> Result<Found, Error> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        .await?;
    client
        .query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)])
        .await?;
    // A process that opened the empty store in plain text may write its first entry at this moment: it is waited for, and
    // found by the next statement.
    client
        .batch_execute("LOCK TABLE planwright.vault IN ACCESS EXCLUSIVE MODE")
        .await?;
    let found = find(client).await?;
    if found.lock.is_some() || !found.is_empty {
        return Ok(found);
    }
    insert(client, locked, cipher).await?;
    find(client).await
}

/// Makes a new key, and locks it under a passphrase.
pub(super) fn make_lock(
    passphrase: &Passphrase,
    cost: StretchCost,
) -> Result<(LockedKey, Cipher), OpenPostgresError> {
    passphrase.check_strength()?;
    let key = DataKey::random()?;
    let locked = LockedKey::lock(&key, passphrase, cost)?;
    Ok((locked, Cipher::sealed(&key)))
}
