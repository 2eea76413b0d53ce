//! Requests that must not be done twice as rows, with their answers.

use super::fault::Stop;
use super::owner::{Owners, is_alive};
use super::store::SqliteStore;
use super::writer::Request;
use crate::sealing::{mask_request, open_answer, seal_answer};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    ANSWER_LIFE, Answers, AppendError, Asking, BoxFuture, Claim, OwnerId, RequestClaim, StoreError,
    says_more,
};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;
use std::sync::Arc;

/// Old answers are dropped a few at a time, so that no request pays for all of them.
const DROPPED_AT_ONCE: usize = 100;

/// A request as its row has it.
struct Row {
    request: [u8; 32],
    owner: OwnerId,
    changed: Option<String>,
    answer: Option<Vec<u8>>,
}

fn find(connection: &Connection, key: &Digest) -> Result<Option<Row>, rusqlite::Error> {
    let sql = "SELECT request, owner, changed, answer FROM answers WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([key.as_bytes()], |row| {
        Ok(Row {
            request: row.get(0)?,
            owner: OwnerId(row.get(1)?),
            changed: row.get(2)?,
            answer: row.get(3)?,
        })
    });
    found.optional()
}

/// Claims a request inside a write transaction. The claiming process shows that it is alive, so that
/// no other takes the request over before it is gone.
pub(super) fn claim(
    (connection, cipher): (&Connection, &Cipher),
    (owners, directory): (&mut Owners, &Path),
    asking: &Asking,
    now: Timestamp,
) -> Result<Claim, Stop<StoreError>> {
    let Asking {
        principal,
        key,
        request,
        owner,
        limit,
    } = asking;
    owners.hold(owner).map_err(Stop::failed)?;
    let request = mask_request(cipher, key, *request);
    drop_old(connection, key, now)?;
    match find(connection, key)? {
        Some(row) if row.request != *request.as_bytes() => return Ok(Claim::OtherRequest),
        Some(Row {
            answer: Some(answer),
            ..
        }) => {
            let opened = open_answer(cipher, key, answer);
            let opened =
                opened.map_err(|_| Stop::failed("an answer was changed on disk".to_owned()))?;
            return Ok(Claim::Answered(opened));
        }
        Some(row) if row.owner != *owner && is_alive(directory, &row.owner) => {
            return Ok(Claim::InFlight);
        }
        Some(Row {
            changed: Some(stream),
            ..
        }) => {
            return Ok(match read_stream(&stream)? {
                Some(stream) => Claim::Changed(stream),
                None => Claim::Interrupted,
            });
        }
        Some(_) => {
            let sql = "UPDATE answers SET owner = ?2, at = ?3 WHERE key = ?1";
            connection.prepare_cached(sql)?.execute(params![
                key.as_bytes(),
                owner.0,
                now.as_millis()
            ])?;
            return Ok(Claim::Fresh);
        }
        None => {}
    }
    let sql = "SELECT count(*) FROM (SELECT 1 FROM answers WHERE principal = ?1 LIMIT ?2)";
    let count: usize = connection
        .prepare_cached(sql)?
        .query_row(params![principal.as_bytes(), limit], |row| row.get(0))?;
    if count >= *limit {
        return Ok(Claim::TooMany);
    }
    let sql =
        "INSERT INTO answers (key, principal, request, owner, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute(params![
        key.as_bytes(),
        principal.as_bytes(),
        request.as_bytes(),
        owner.0,
        now.as_millis(),
    ])?;
    Ok(Claim::Fresh)
}

/// Drops this request if it is older than a day, and some others.
fn drop_old(connection: &Connection, key: &Digest, now: Timestamp) -> Result<(), rusqlite::Error> {
    let oldest = now
        .as_millis()
        .saturating_sub(i64::try_from(ANSWER_LIFE.as_millis()).unwrap_or(i64::MAX));
    let sql = "DELETE FROM answers WHERE key = ?1 AND at <= ?2";
    connection
        .prepare_cached(sql)?
        .execute(params![key.as_bytes(), oldest])?;
    let sql = "DELETE FROM answers WHERE key IN (SELECT key FROM answers WHERE at <= ?1 ORDER BY at LIMIT ?2)";
    connection
        .prepare_cached(sql)?
        .execute(params![oldest, DROPPED_AT_ONCE])?;
    Ok(())
}

/// Reads the journal that a request changed; `None` where an earlier version did not say which.
fn read_stream(text: &str) -> Result<Option<StreamName>, Stop<StoreError>> {
    if text.is_empty() {
        return Ok(None);
    }
    let stream = text.parse();
    stream
        .map(Some)
        .map_err(|_| Stop::failed("what a request changed was changed on disk".to_owned()))
}

/// Notes inside a write transaction that a request changes this stream. Refused unless the process that
/// writes has claimed the request.
pub(super) fn note_change(
    connection: &Connection,
    claim: &RequestClaim,
    stream: &StreamName,
) -> Result<(), Stop<AppendError>> {
    let row = find(connection, &claim.key)?;
    let Some(row) = row.filter(|row| row.owner == claim.owner && row.answer.is_none()) else {
        return Err(Stop::Refused(AppendError::Unclaimed));
    };
    let noted = row.changed.as_deref().map(read_stream).transpose();
    let noted = noted.map_err(|stop| match stop {
        Stop::Sqlite(error) => Stop::Sqlite(error),
        Stop::Refused(error) => Stop::Refused(error.into()),
    })?;
    if says_more(noted.flatten().as_ref(), stream) {
        let sql = "UPDATE answers SET changed = ?2 WHERE key = ?1";
        connection
            .prepare_cached(sql)?
            .execute(params![claim.key.as_bytes(), stream.to_string()])?;
    }
    Ok(())
}

impl Answers for SqliteStore {
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        let asking = asking.clone();
        Box::pin(self.ask(move |reply| Request::claim(reply, asking, now)))
    }

    fn keep<'a>(
        &'a self,
        claim: &'a RequestClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let RequestClaim { key, owner } = claim.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| {
            let answer = seal_answer(&cipher, &key, &answer)
                .map_err(|error| Stop::failed(error.to_string()))?;
            let sql = "UPDATE answers SET answer = ?3 WHERE key = ?1 AND owner = ?2";
            connection
                .prepare_cached(sql)?
                .execute(params![key.as_bytes(), owner.0, answer])?;
            Ok(())
        }))
    }

    fn release<'a>(&'a self, claim: &'a RequestClaim) -> BoxFuture<'a, Result<bool, StoreError>> {
        let RequestClaim { key, owner } = claim.clone();
        Box::pin(self.write(move |connection| {
            let sql = "DELETE FROM answers
                       WHERE key = ?1 AND owner = ?2 AND changed IS NULL AND answer IS NULL";
            connection
                .prepare_cached(sql)?
                .execute(params![key.as_bytes(), owner.0])?;
            Ok(find(connection, &key)?.is_none())
        }))
    }
}
