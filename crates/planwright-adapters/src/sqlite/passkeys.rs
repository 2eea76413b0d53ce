//! Passkeys as rows. Every look goes to the file, so that one that another process removed confirms nothing any more.

use super::fault::{Stop, failed};
use super::store::SqliteStore;
use super::tokens::parse_kind;
use crate::sealing::{check_passkey_mark, passkey_mark};
use crate::vault::Cipher;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, Passkey, Passkeys, StoreError};
use rusqlite::{Connection, ErrorCode, Row, params};
use std::sync::Arc;

const COLUMNS: &str = "id, bearer, name, label, key, counter, created_at, used_at, mark";

/// A row before its words are understood.
struct Stored {
    id: Vec<u8>,
    bearer: String,
    name: String,
    label: String,
    key: Vec<u8>,
    counter: u32,
    created_at: i64,
    used_at: Option<i64>,
    mark: Option<Vec<u8>>,
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            bearer: row.get(1)?,
            name: row.get(2)?,
            label: row.get(3)?,
            key: row.get(4)?,
            counter: row.get(5)?,
            created_at: row.get(6)?,
            used_at: row.get(7)?,
            mark: row.get(8)?,
        })
    }

    /// The passkey, unless its row says something that was never written: then it confirms nothing.
    fn passkey(self, cipher: &Cipher) -> Result<Passkey, StoreError> {
        let name = self.name.clone();
        let changed = || StoreError::Failed(format!("a passkey of {name} was changed on disk"));
        let passkey = Passkey {
            id: self.id,
            owner: Principal {
                kind: parse_kind(&self.bearer).ok_or_else(changed)?,
                name: self.name,
            },
            label: self.label,
            key: self.key,
            counter: self.counter,
            created_at: Timestamp::from_millis(self.created_at),
            used_at: self.used_at.map(Timestamp::from_millis),
        };
        check_passkey_mark(cipher, &passkey, self.mark).map_err(|_| changed())?;
        Ok(passkey)
    }
}

fn insert(
    connection: &Connection,
    cipher: &Cipher,
    passkey: &Passkey,
    most: usize,
) -> Result<bool, Stop<StoreError>> {
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM passkeys WHERE name = ?1 AND bearer = ?2")?
        .query_row(
            params![passkey.owner.name, passkey.owner.kind.as_str()],
            |row| row.get(0),
        )?;
    if usize::try_from(count).is_ok_and(|count| count >= most) {
        return Ok(false);
    }
    let mark = passkey_mark(cipher, passkey).map_err(|error| Stop::failed(error.to_string()))?;
    let sql =
        format!("INSERT INTO passkeys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let inserted = connection.prepare_cached(&sql)?.execute(params![
        passkey.id,
        passkey.owner.kind.as_str(),
        passkey.owner.name,
        passkey.label,
        passkey.key,
        passkey.counter,
        passkey.created_at.as_millis(),
        passkey.used_at.map(Timestamp::as_millis),
        mark,
    ]);
    match inserted {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(
            Stop::failed("the passkey exists already, or it is none".to_owned()),
        ),
        Err(error) => Err(error.into()),
    }
}

fn note_use(
    connection: &Connection,
    cipher: &Cipher,
    (id, before, counter): (&[u8], u32, u32),
    at: Timestamp,
) -> Result<bool, Stop<StoreError>> {
    let found = find(connection, cipher, id).map_err(Stop::Refused)?;
    let Some(passkey) = found.filter(|passkey| passkey.counter == before) else {
        return Ok(false);
    };
    let used = Passkey {
        counter,
        used_at: Some(at),
        ..passkey
    };
    let mark = passkey_mark(cipher, &used).map_err(|error| Stop::failed(error.to_string()))?;
    connection
        .prepare_cached("UPDATE passkeys SET counter = ?2, used_at = ?3, mark = ?4 WHERE id = ?1")?
        .execute(params![id, counter, at.as_millis(), mark])?;
    Ok(true)
}

fn read_where(
    connection: &Connection,
    condition: &str,
    given: impl rusqlite::Params,
) -> Result<Vec<Stored>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM passkeys {condition} ORDER BY number");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map(given, Stored::read)?.collect()
}

pub(super) fn find(
    connection: &Connection,
    cipher: &Cipher,
    id: &[u8],
) -> Result<Option<Passkey>, StoreError> {
    let rows = read_where(connection, "WHERE id = ?1", [id]).map_err(|error| failed(&error))?;
    let row = rows.into_iter().next();
    row.map(|row| row.passkey(cipher)).transpose()
}

/// The passkeys that were changed on disk.
pub(super) fn check_all(
    connection: &Connection,
    cipher: &Cipher,
) -> Result<Vec<String>, rusqlite::Error> {
    let rows = read_where(connection, "", [])?.into_iter();
    let problems = rows.filter_map(|row| row.passkey(cipher).err());
    Ok(problems.map(|problem| problem.to_string()).collect())
}

impl Passkeys for SqliteStore {
    fn add<'a>(
        &'a self,
        passkey: &'a Passkey,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let passkey = passkey.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| insert(connection, &cipher, &passkey, most)))
    }

    fn list<'a>(&'a self, owner: &'a Principal) -> BoxFuture<'a, Result<Vec<Passkey>, StoreError>> {
        Box::pin(async move {
            self.reader().with(|connection| {
                let rows = read_where(
                    connection,
                    "WHERE name = ?1 AND bearer = ?2",
                    params![owner.name, owner.kind.as_str()],
                );
                let rows = rows.map_err(|error| failed(&error))?.into_iter();
                rows.map(|row| row.passkey(self.cipher())).collect()
            })
        })
    }

    fn note_use<'a>(
        &'a self,
        id: &'a [u8],
        (before, counter): (u32, u32),
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.to_vec();
        let cipher = Arc::clone(self.cipher());
        Box::pin(
            self.write(move |connection| note_use(connection, &cipher, (&id, before, counter), at)),
        )
    }

    fn remove<'a>(
        &'a self,
        owner: &'a Principal,
        id: &'a [u8],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let owner = owner.clone();
        let id = id.to_vec();
        Box::pin(self.write(move |connection| {
            let sql = "DELETE FROM passkeys WHERE id = ?1 AND name = ?2 AND bearer = ?3";
            let removed = connection.prepare_cached(sql)?.execute(params![
                id,
                owner.name,
                owner.kind.as_str()
            ])?;
            Ok(removed > 0)
        }))
    }
}
