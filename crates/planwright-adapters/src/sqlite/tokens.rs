//! Tokens as rows. Every look goes to the file, so that what another process revokes counts with the next request.

use super::fault::{Stop, failed};
use super::store::SqliteStore;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, StoreError, Token, TokenId, Tokens};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};

const COLUMNS: &str = "id, hash, kind, name, role, created_at, expires_at, revoked_at";

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
        })
    }

    /// The token, unless its row says something that was never written: then it opens nothing.
    fn token(self) -> Result<Token, StoreError> {
        let changed = || StoreError::Failed(format!("the token {} was changed on disk", self.id));
        let kind = match self.kind.as_str() {
            "person" => PrincipalKind::Person,
            "agent" => PrincipalKind::Agent,
            "service" => PrincipalKind::Service,
            _ => return Err(changed()),
        };
        let role: Role = self.role.parse().map_err(|_| changed())?;
        Ok(Token {
            hash: Digest::from_bytes(self.hash),
            principal: Principal { kind, name: self.name },
            role,
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
            id: TokenId(self.id),
        })
    }
}

fn insert(connection: &Connection, token: &Token) -> Result<(), Stop<StoreError>> {
    let sql = "INSERT INTO tokens (id, hash, kind, name, role, created_at, expires_at, revoked_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let Token { id, hash, principal, role, created_at, expires_at, revoked_at } = token;
    let inserted = connection.prepare_cached(sql)?.execute(params![
        id.0,
        hash.as_bytes(),
        principal.kind.as_str(),
        principal.name,
        role.as_str(),
        created_at.as_millis(),
        expires_at.map(Timestamp::as_millis),
        revoked_at.map(Timestamp::as_millis),
    ]);
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(Stop::failed(format!("the token {} exists already, or it is none", id.0)))
        }
        Err(error) => Err(error.into()),
    }
}

fn find(
    connection: &Connection,
    column: &str,
    key: impl rusqlite::ToSql,
) -> Result<Option<Token>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tokens WHERE {column} = ?1");
    let row = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_row([key], Stored::read).optional());
    row.map_err(|error| failed(&error))?.map(Stored::token).transpose()
}

fn all(connection: &Connection) -> Result<Vec<Token>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tokens ORDER BY number");
    let rows = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_map([], Stored::read)?.collect::<Result<Vec<_>, _>>());
    rows.map_err(|error| failed(&error))?.into_iter().map(Stored::token).collect()
}

fn revoke(connection: &Connection, id: &TokenId, at: Timestamp) -> Result<bool, Stop<StoreError>> {
    let found = find(connection, "id", &id.0).map_err(Stop::Refused)?;
    if !found.is_some_and(|token| token.is_valid(at)) {
        return Ok(false);
    }
    let sql = "UPDATE tokens SET revoked_at = ?2 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![id.0, at.as_millis()])?;
    Ok(true)
}

impl Tokens for SqliteStore {
    fn add<'a>(&'a self, token: &'a Token) -> BoxFuture<'a, Result<(), StoreError>> {
        let token = token.clone();
        Box::pin(self.write(move |connection| insert(connection, &token)))
    }

    // A look by hash takes microseconds, less than moving it to another thread.
    fn find<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Token>, StoreError>> {
        Box::pin(async { self.reader().with(|connection| find(connection, "hash", hash.as_bytes())) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        Box::pin(self.look(|reader| reader.with(all)))
    }

    fn revoke<'a>(&'a self, id: &'a TokenId, at: Timestamp) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        Box::pin(self.write(move |connection| revoke(connection, &id, at)))
    }
}
