//! Tokens as rows. Every look goes to the file, so that what another process revokes counts with
//! the next request.

use super::fault::{Stop, failed};
use super::store::SqliteStore;
use crate::sealing::{check_token_mark, token_mark};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, StoreError, Token, TokenId, Tokens};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};
use std::sync::Arc;

const COLUMNS: &str = "id, hash, kind, name, role, created_at, expires_at, revoked_at, mark";

/// A row before its words are understood.
struct Stored {
    id: String,
    hash: [u8; 32],
    kind: String,
    name: String,
    role: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    mark: Option<Vec<u8>>,
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            hash: row.get(1)?,
            kind: row.get(2)?,
            name: row.get(3)?,
            role: row.get(4)?,
            created_at: row.get(5)?,
            expires_at: row.get(6)?,
            revoked_at: row.get(7)?,
            mark: row.get(8)?,
        })
    }

    /// The token, unless its row says something that was never written: then it opens nothing.
    fn token(self, cipher: &Cipher) -> Result<Token, StoreError> {
        let id = self.id.clone();
        let changed = || StoreError::Failed(format!("the token {id} was changed on disk"));
        let kind = parse_kind(&self.kind).ok_or_else(changed)?;
        let role: Role = self.role.parse().map_err(|_| changed())?;
        let token = Token {
            hash: Digest::from_bytes(self.hash),
            principal: Principal {
                kind,
                name: self.name,
            },
            role,
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
            id: TokenId(self.id),
        };
        check_token_mark(cipher, &token, self.mark).map_err(|_| changed())?;
        Ok(token)
    }
}

/// The kinds of principals that can be given access.
pub(super) fn parse_kind(word: &str) -> Option<PrincipalKind> {
    match word {
        "person" => Some(PrincipalKind::Person),
        "agent" => Some(PrincipalKind::Agent),
        "service" => Some(PrincipalKind::Service),
        _ => None,
    }
}

fn insert(connection: &Connection, cipher: &Cipher, token: &Token) -> Result<(), Stop<StoreError>> {
    let mark = token_mark(cipher, token).map_err(|error| Stop::failed(error.to_string()))?;
    let sql =
        "INSERT INTO tokens (id, hash, kind, name, role, created_at, expires_at, revoked_at, mark)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let Token {
        id,
        hash,
        principal,
        role,
        created_at,
        expires_at,
        revoked_at,
    } = token;
    let inserted = connection.prepare_cached(sql)?.execute(params![
        id.0,
        hash.as_bytes(),
        principal.kind.as_str(),
        principal.name,
        role.as_str(),
        created_at.as_millis(),
        expires_at.map(Timestamp::as_millis),
        revoked_at.map(Timestamp::as_millis),
        mark,
    ]);
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(
            Stop::failed(format!("the token {} exists already, or it is none", id.0)),
        ),
        Err(error) => Err(error.into()),
    }
}

fn find(
    connection: &Connection,
    cipher: &Cipher,
    column: &str,
    key: impl rusqlite::ToSql,
) -> Result<Option<Token>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tokens WHERE {column} = ?1");
    let row = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_row([key], Stored::read).optional());
    row.map_err(|error| failed(&error))?
        .map(|row| row.token(cipher))
        .transpose()
}

pub(super) fn find_by_id(
    connection: &Connection,
    cipher: &Cipher,
    id: &TokenId,
) -> Result<Option<Token>, StoreError> {
    find(connection, cipher, "id", &id.0)
}

/// The tokens that were changed on disk.
pub(super) fn check_all(
    connection: &Connection,
    cipher: &Cipher,
) -> Result<Vec<String>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM tokens ORDER BY number");
    let mut statement = connection.prepare(&sql)?;
    let rows: Vec<Stored> = statement
        .query_map([], Stored::read)?
        .collect::<Result<_, _>>()?;
    let problems = rows.into_iter().filter_map(|row| row.token(cipher).err());
    Ok(problems.map(|problem| problem.to_string()).collect())
}

pub(super) fn all(connection: &Connection, cipher: &Cipher) -> Result<Vec<Token>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tokens ORDER BY number");
    let rows = connection.prepare_cached(&sql).and_then(|mut statement| {
        statement
            .query_map([], Stored::read)?
            .collect::<Result<Vec<_>, _>>()
    });
    rows.map_err(|error| failed(&error))?
        .into_iter()
        .map(|row| row.token(cipher))
        .collect()
}

fn revoke(
    connection: &Connection,
    cipher: &Cipher,
    id: &TokenId,
    at: Timestamp,
) -> Result<bool, Stop<StoreError>> {
    let found = find_by_id(connection, cipher, id).map_err(Stop::Refused)?;
    let Some(token) = found.filter(|token| token.is_valid(at)) else {
        return Ok(false);
    };
    let revoked = Token {
        revoked_at: Some(at),
        ..token
    };
    let mark = token_mark(cipher, &revoked).map_err(|error| Stop::failed(error.to_string()))?;
    let sql = "UPDATE tokens SET revoked_at = ?2, mark = ?3 WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![id.0, at.as_millis(), mark])?;
    Ok(true)
}

impl Tokens for SqliteStore {
    fn add<'a>(&'a self, token: &'a Token) -> BoxFuture<'a, Result<(), StoreError>> {
        let token = token.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| insert(connection, &cipher, &token)))
    }

    // A look by hash takes microseconds, less than moving it to another thread.
    fn find<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Token>, StoreError>> {
        Box::pin(async {
            self.reader()
                .with(|connection| find(connection, self.cipher(), "hash", hash.as_bytes()))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        Box::pin(self.look(|reader| reader.with(|connection| all(connection, reader.cipher()))))
    }

    fn revoke<'a>(
        &'a self,
        id: &'a TokenId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| revoke(connection, &cipher, &id, at)))
    }
}
