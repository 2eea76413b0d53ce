//! Passes as rows. Every look goes to the file, so that a session that another process ended is over
//! with the next request.

use super::fault::{Stop, failed};
use super::store::SqliteStore;
use super::tokens::parse_kind;
use crate::sealing::{assurance_word, check_pass_mark, pass_mark};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, Pass, PassKind, Passes, StoreError};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};
use std::sync::Arc;

const COLUMNS: &str =
    "kind, hash, proof, token, bearer, name, role, assurance, created_at, expires_at, mark";

/// A row before its words are understood.
struct Stored {
    kind: String,
    hash: [u8; 32],
    proof: Option<[u8; 32]>,
    token: Option<[u8; 32]>,
    bearer: String,
    name: String,
    role: String,
    assurance: String,
    created_at: i64,
    expires_at: i64,
    mark: Option<Vec<u8>>,
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            kind: row.get(0)?,
            hash: row.get(1)?,
            proof: row.get(2)?,
            token: row.get(3)?,
            bearer: row.get(4)?,
            name: row.get(5)?,
            role: row.get(6)?,
            assurance: row.get(7)?,
            created_at: row.get(8)?,
            expires_at: row.get(9)?,
            mark: row.get(10)?,
        })
    }

    /// The pass, unless its row says something that was never written: then it opens nothing.
    fn pass(self, cipher: &Cipher) -> Result<Pass, StoreError> {
        let name = self.name.clone();
        let changed = || StoreError::Failed(format!("a pass of {name} was changed on disk"));
        let kind = match self.kind.as_str() {
            "session" => PassKind::Session,
            "invitation" => PassKind::Invitation,
            _ => return Err(changed()),
        };
        let pass = Pass {
            kind,
            hash: Digest::from_bytes(self.hash),
            proof: self.proof.map(Digest::from_bytes),
            token: self.token.map(Digest::from_bytes),
            principal: Principal {
                kind: parse_kind(&self.bearer).ok_or_else(changed)?,
                name: self.name,
            },
            role: self.role.parse::<Role>().map_err(|_| changed())?,
            assurance: parse_assurance(self.assurance).ok_or_else(changed)?,
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        };
        check_pass_mark(cipher, &pass, self.mark).map_err(|_| changed())?;
        Ok(pass)
    }
}

fn parse_assurance(word: String) -> Option<Assurance> {
    serde_json::from_value(serde_json::Value::String(word)).ok()
}

fn insert(
    connection: &Connection,
    cipher: &Cipher,
    pass: &Pass,
    (most, now): (usize, Timestamp),
) -> Result<bool, Stop<StoreError>> {
    connection
        .prepare_cached("DELETE FROM passes WHERE expires_at <= ?1")?
        .execute([now.as_millis()])?;
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM passes WHERE kind = ?1")?
        .query_row([pass.kind.as_str()], |row| row.get(0))?;
    let mark = pass_mark(cipher, pass).map_err(|error| Stop::failed(error.to_string()))?;
    if usize::try_from(count).is_ok_and(|count| count >= most) {
        return Ok(false);
    }
    let sql = format!(
        "INSERT INTO passes ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let inserted = connection.prepare_cached(&sql)?.execute(params![
        pass.kind.as_str(),
        pass.hash.as_bytes(),
        pass.proof.as_ref().map(Digest::as_bytes),
        pass.token.as_ref().map(Digest::as_bytes),
        pass.principal.kind.as_str(),
        pass.principal.name,
        pass.role.as_str(),
        assurance_word(pass.assurance),
        pass.created_at.as_millis(),
        pass.expires_at.as_millis(),
        mark,
    ]);
    match inserted {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Err(
            Stop::failed("the pass exists already, or it is none".to_owned()),
        ),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn find(
    connection: &Connection,
    cipher: &Cipher,
    hash: &Digest,
) -> Result<Option<Pass>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM passes WHERE hash = ?1");
    let row = connection.prepare_cached(&sql).and_then(|mut statement| {
        statement
            .query_row([hash.as_bytes()], Stored::read)
            .optional()
    });
    row.map_err(|error| failed(&error))?
        .map(|row| row.pass(cipher))
        .transpose()
}

fn take(
    connection: &Connection,
    cipher: &Cipher,
    kind: PassKind,
    hash: &Digest,
) -> Result<Option<Pass>, Stop<StoreError>> {
    let found = find(connection, cipher, hash).map_err(Stop::Refused)?;
    let Some(pass) = found.filter(|pass| pass.kind == kind) else {
        return Ok(None);
    };
    connection
        .prepare_cached("DELETE FROM passes WHERE hash = ?1")?
        .execute([hash.as_bytes()])?;
    Ok(Some(pass))
}

fn extend(
    connection: &Connection,
    cipher: &Cipher,
    hash: &Digest,
    until: Timestamp,
) -> Result<bool, Stop<StoreError>> {
    let found = find(connection, cipher, hash).map_err(Stop::Refused)?;
    let Some(pass) = found.filter(|pass| pass.kind == PassKind::Session) else {
        return Ok(false);
    };
    let extended = Pass {
        expires_at: until,
        ..pass
    };
    let mark = pass_mark(cipher, &extended).map_err(|error| Stop::failed(error.to_string()))?;
    connection
        .prepare_cached("UPDATE passes SET expires_at = ?2, mark = ?3 WHERE hash = ?1")?
        .execute(params![hash.as_bytes(), until.as_millis(), mark])?;
    Ok(true)
}

fn read_all(connection: &Connection) -> Result<Vec<Stored>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM passes ORDER BY number");
    let mut statement = connection.prepare(&sql)?;
    statement.query_map([], Stored::read)?.collect()
}

/// The passes that were changed on disk.
pub(super) fn check_all(
    connection: &Connection,
    cipher: &Cipher,
) -> Result<Vec<String>, rusqlite::Error> {
    let rows = read_all(connection)?.into_iter();
    let problems = rows.filter_map(|row| row.pass(cipher).err());
    Ok(problems.map(|problem| problem.to_string()).collect())
}

/// Ends every session and invitation.
pub(super) fn remove_all(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute("DELETE FROM passes", []).map(drop)
}

impl Passes for SqliteStore {
    fn add<'a>(
        &'a self,
        pass: &'a Pass,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let pass = pass.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| insert(connection, &cipher, &pass, (most, now))))
    }

    // A look by hash takes microseconds, less than moving it to another thread.
    fn find<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        Box::pin(async move {
            let found = self
                .reader()
                .with(|connection| find(connection, self.cipher(), hash))?;
            Ok(found.filter(|pass| pass.kind == kind))
        })
    }

    fn take<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        let hash = *hash;
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| take(connection, &cipher, kind, &hash)))
    }

    fn extend<'a>(
        &'a self,
        hash: &'a Digest,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let hash = *hash;
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| extend(connection, &cipher, &hash, until)))
    }

    fn list(&self, kind: PassKind) -> BoxFuture<'_, Result<Vec<Pass>, StoreError>> {
        Box::pin(self.look(move |reader| {
            reader.with(|connection| {
                let rows = read_all(connection).map_err(|error| failed(&error))?;
                let passes = rows.into_iter().map(|row| row.pass(reader.cipher()));
                let passes: Vec<Pass> = passes.collect::<Result<_, _>>()?;
                Ok(passes
                    .into_iter()
                    .filter(|pass| pass.kind == kind)
                    .collect())
            })
        }))
    }
}
