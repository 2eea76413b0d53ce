//! The lock of an encrypted store, kept in the database itself: every copy of the file can be
//! opened.

use super::open::OpenStoreError;
use crate::vault::{Cipher, DataKey, LockedKey, Passphrase, StretchCost};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

/// The lock, if the store has one. A database from before there were locks has none.
pub(super) fn read(connection: &Connection) -> Result<Option<LockedKey>, OpenStoreError> {
    if !has_table(connection)? {
        return Ok(None);
    }
    let sql = "SELECT format, memory_kib, passes, lanes, salt, nonce, wrapped_key FROM vault";
    let row = connection.query_row(sql, [], |row| {
        Ok(LockedKey {
            format: row.get(0)?,
            cost: StretchCost {
                memory_kib: row.get(1)?,
                passes: row.get(2)?,
                lanes: row.get(3)?,
            },
            salt: row.get(4)?,
            nonce: row.get(5)?,
            wrapped: row.get(6)?,
        })
    });
    Ok(row.optional()?)
}

fn has_table(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection
        .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'vault'")?
        .exists([])
}

/// Keeps a lock in place of any other.
pub(super) fn write(
    connection: &Connection,
    locked: &LockedKey,
    unfinished: bool,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT OR REPLACE INTO vault
               (only, format, memory_kib, passes, lanes, salt, nonce, wrapped_key, unfinished)
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let LockedKey {
        format,
        cost,
        salt,
        nonce,
        wrapped,
    } = locked;
    let StretchCost {
        memory_kib,
        passes,
        lanes,
    } = cost;
    connection.execute(
        sql,
        params![
            format, memory_kib, passes, lanes, salt, nonce, wrapped, unfinished
        ],
    )?;
    Ok(())
}

/// Returns whether files from before the key was set may still lie around.
pub(super) fn is_unfinished(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let found = connection
        .query_row("SELECT unfinished FROM vault", [], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(false))
}

pub(super) fn finish(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection
        .execute("UPDATE vault SET unfinished = 0", [])
        .map(drop)
}

/// The cipher of the store, before anything in it is touched. An encrypted store needs its
/// passphrase; a passphrase needs an encrypted store, or one in which nothing is yet: an operator
/// who sets one must not be answered in plain text.
pub(super) fn unlock(
    connection: &Connection,
    passphrase: Option<&Passphrase>,
) -> Result<Option<Cipher>, OpenStoreError> {
    match (read(connection)?, passphrase) {
        (None, None) => Ok(Some(Cipher::Plain)),
        (Some(_), None) => Err(OpenStoreError::Encrypted),
        (Some(locked), Some(passphrase)) => Ok(Some(locked.open(passphrase)?)),
        (None, Some(_)) if is_empty(connection)? => Ok(None),
        (None, Some(_)) => Err(OpenStoreError::NotEncrypted),
    }
}

fn is_empty(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let fresh = !connection
        .prepare("SELECT 1 FROM sqlite_master WHERE name = 'streams'")?
        .exists([])?;
    Ok(fresh || !connection.prepare("SELECT 1 FROM streams")?.exists([])?)
}

/// Gives an empty store its lock. Of several processes one does it, and the others open what it
/// made.
pub(super) fn create(
    connection: &mut Connection,
    passphrase: &Passphrase,
    cost: StretchCost,
) -> Result<Cipher, OpenStoreError> {
    passphrase.check_strength()?;
    let locked = LockedKey::lock(&DataKey::random()?, passphrase, cost)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(cipher) = unlock(&transaction, Some(passphrase))? {
        return Ok(cipher);
    }
    write(&transaction, &locked, false)?;
    transaction.commit()?;
    Ok(locked.open(passphrase)?)
}
