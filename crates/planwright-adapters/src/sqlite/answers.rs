//! Answers of the service as rows.

use super::fault::Stop;
use super::sealing::{mask_request, open_answer, seal_answer};
use super::store::SqliteStore;
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    ANSWER_LIFE, Answers, Asking, BoxFuture, Claim, MAX_ANSWERS, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::sync::Arc;

/// Old answers are dropped a few at a time, so that no request pays for all of them.
const DROPPED_AT_ONCE: usize = 100;

fn claim(
    connection: &Connection,
    cipher: &Cipher,
    asking: &Asking,
    now: Timestamp,
) -> Result<Claim, Stop<StoreError>> {
    let Asking {
        principal,
        key,
        request,
        owner,
    } = asking;
    let request = mask_request(cipher, key, *request);
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
    let sql = "SELECT request, owner, answer FROM answers WHERE key = ?1";
    let found: Option<([u8; 32], String, Option<Vec<u8>>)> = connection
        .prepare_cached(sql)?
        .query_row([key.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    match found {
        Some((other, _, _)) if other != *request.as_bytes() => return Ok(Claim::OtherRequest),
        Some((_, _, Some(answer))) => {
            let opened = open_answer(cipher, key, answer);
            let opened =
                opened.map_err(|_| Stop::failed("an answer was changed on disk".to_owned()))?;
            return Ok(Claim::Answered(opened));
        }
        Some((_, by, None)) if by == owner.0 => return Ok(Claim::InFlight),
        Some((_, _, None)) => return Ok(Claim::Interrupted),
        None => {}
    }
    let sql = "SELECT count(*) FROM (SELECT 1 FROM answers WHERE principal = ?1 LIMIT ?2)";
    let count: usize = connection
        .prepare_cached(sql)?
        .query_row(params![principal.as_bytes(), MAX_ANSWERS], |row| row.get(0))?;
    if count >= MAX_ANSWERS {
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

impl Answers for SqliteStore {
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        let asking = asking.clone();
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| claim(connection, &cipher, &asking, now)))
    }

    fn keep<'a>(
        &'a self,
        key: &'a Digest,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = *key;
        let cipher = Arc::clone(self.cipher());
        Box::pin(self.write(move |connection| {
            let answer = seal_answer(&cipher, &key, &answer)
                .map_err(|error| Stop::failed(error.to_string()))?;
            let sql = "UPDATE answers SET answer = ?2 WHERE key = ?1";
            connection
                .prepare_cached(sql)?
                .execute(params![key.as_bytes(), answer])?;
            Ok(())
        }))
    }

    fn forget<'a>(&'a self, key: &'a Digest) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = *key;
        Box::pin(self.write(move |connection| {
            connection
                .prepare_cached("DELETE FROM answers WHERE key = ?1")?
                .execute([key.as_bytes()])?;
            Ok(())
        }))
    }
}
