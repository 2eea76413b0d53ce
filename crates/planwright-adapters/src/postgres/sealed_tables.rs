//! The tables beside the journal of which some columns are sealed: how their rows are read, opened and sealed anew.

use super::appending::read_status;
use super::fault::store_error;
use super::offer_talk::{open_talk, seal_talk};
use super::offers::{read_kept_answer, read_offer, seal_kept_answer, seal_offer};
use super::passes::pass;
use super::passkeys::passkey;
use super::rows::digest;
use super::sealed_group::seal_label;
use super::tokens::token;
use crate::sealing::{
    CallTalk, mask_request, message_hash, open_answer, open_delivery_error, open_message,
    open_reason, open_refusal_bytes, open_sign_in, open_worker_column, pass_mark, passkey_mark,
    seal_answer, seal_delivery_error, seal_message, seal_reason, seal_refusal_bytes, seal_sign_in,
    seal_worker_column, token_mark,
};
use crate::vault::{Cipher, OpenSealedError};
use planwright_core::time::Timestamp;
use planwright_engine::port::{OfferKey, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// Rows that are read and written at a time.
pub(super) const PAGE: usize = 200;

/// Faults after which the rest of a table is not looked at.
const MAX_PROBLEMS: usize = 100;
/// The cursor by which rows are read.
pub(super) const CURSOR: &str = "rows_to_recode";

/// A value for a statement that outlives its row.
pub(super) type Owned = (Box<dyn ToSql + Sync + Send>, Type);

/// A table of which some columns are sealed, beside the journal and the large values.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Reads the rows that hold something sealed.
    pub(super) select: &'static str,
    /// Replaces what is sealed in one of them.
    pub(super) update: &'static str,
    pub(super) recode: fn(&Cipher, &Cipher, &Row) -> Result<Vec<Owned>, RowError>,
}

/// The reason why a row was not recoded.
pub(super) enum RowError {
    Damaged(String),
    Store(StoreError),
}

impl From<OpenSealedError> for RowError {
    fn from(error: OpenSealedError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<StoreError> for RowError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<crate::vault::SealError> for RowError {
    fn from(error: crate::vault::SealError) -> Self {
        Self::Store(error.into())
    }
}

/// All of them.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "streams",
        select: "SELECT id, name, plan, status, label, created_at, updated_at FROM planwright.streams \
                 WHERE plan IS NOT NULL ORDER BY id",
        update: "UPDATE planwright.streams SET label = $2 WHERE id = $1",
        recode: |from, to, row| {
            let name: &str = row.get(1);
            let Some(status) = read_status(from, row, (name, 2))? else {
                return Err(RowError::Damaged(format!("{name} has no plan")));
            };
            let times = (
                Timestamp::from_millis(row.get(5)),
                Timestamp::from_millis(row.get(6)),
            );
            let label = seal_label(to, (name, times), &status)?.into_owned();
            Ok(vec![number_of(row), bytes(label)])
        },
    },
    Table {
        name: "messages",
        select: "SELECT id, run, body, hash, refusal FROM planwright.messages ORDER BY id",
        update: "UPDATE planwright.messages SET body = $2, hash = $3, refusal = $4 WHERE id = $1",
        recode: |from, to, row| {
            let (id, run): (i64, &str) = (row.get(0), row.get(1));
            let (body, hash) = open_message(from, (id, run), row.get(2), digest(row.get(3))?)?;
            if message_hash(run, &body) != hash {
                return Err(OpenSealedError.into());
            }
            let (body, hash) = seal_message(to, (id, run), &body, hash)?;
            let refusal: Option<Vec<u8>> = row.get(4);
            let refusal = refusal
                .map(|kept| {
                    let opened = open_refusal_bytes(from, id, kept)?;
                    let text = String::from_utf8(opened).map_err(|_| OpenSealedError)?;
                    Ok::<_, RowError>(seal_refusal_bytes(to, id, &text)?.into_owned())
                })
                .transpose()?;
            Ok(vec![
                number_of(row),
                bytes(body),
                bytes(hash.as_bytes().to_vec()),
                optional(refusal),
            ])
        },
    },
    Table {
        name: "tokens",
        select: "SELECT id, hash, kind, name, role, created_at, expires_at, revoked_at, mark, number \
                 FROM planwright.tokens ORDER BY number",
        update: "UPDATE planwright.tokens SET mark = $2 WHERE number = $1",
        recode: |from, to, row| {
            let mark = token_mark(to, &token(from, row)?)?;
            Ok(vec![numbered(row.get(9)), optional(mark)])
        },
    },
    Table {
        name: "passes",
        select: "SELECT kind, hash, proof, token, bearer, name, role, assurance, created_at, expires_at, mark, number \
                 FROM planwright.passes ORDER BY number",
        update: "UPDATE planwright.passes SET mark = $2 WHERE number = $1",
        recode: |from, to, row| {
            let mark = pass_mark(to, &pass(from, row)?)?;
            Ok(vec![numbered(row.get(11)), optional(mark)])
        },
    },
    Table {
        name: "passkeys",
        select: "SELECT id, bearer, name, label, key, counter, created_at, used_at, mark, number \
                 FROM planwright.passkeys ORDER BY number",
        update: "UPDATE planwright.passkeys SET mark = $2 WHERE number = $1",
        recode: |from, to, row| {
            let mark = passkey_mark(to, &passkey(from, row)?)?;
            Ok(vec![numbered(row.get(9)), optional(mark)])
        },
    },
    Table {
        name: "answers",
        select: "SELECT key, request, answer FROM planwright.answers ORDER BY key",
        update: "UPDATE planwright.answers SET request = $2, answer = $3 WHERE key = $1",
        recode: |from, to, row| {
            let key = digest(row.get(0))?;
            let request = mask_request(from, &key, digest(row.get(1))?);
            let request = mask_request(to, &key, request);
            let answer: Option<Vec<u8>> = row.get(2);
            let answer = answer
                .map(|kept| {
                    Ok::<_, RowError>(seal_answer(to, &key, &open_answer(from, &key, kept)?)?)
                })
                .transpose()?;
            Ok(vec![
                bytes(key.as_bytes().to_vec()),
                bytes(request.as_bytes().to_vec()),
                optional(answer),
            ])
        },
    },
    Table {
        name: "deliveries",
        select: "SELECT endpoint, position, part, last_error FROM planwright.deliveries \
                 WHERE last_error IS NOT NULL ORDER BY endpoint, position, part",
        update: "UPDATE planwright.deliveries SET last_error = $4 \
                 WHERE endpoint = $1 AND position = $2 AND part = $3",
        recode: |from, to, row| {
            let place: (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
            let error = open_delivery_error(from, place, row.get(3))?;
            let error = seal_delivery_error(to, place, &error)?.into_owned();
            Ok(vec![
                text(place.0),
                numbered(place.1),
                numbered(place.2),
                bytes(error),
            ])
        },
    },
    Table {
        name: "endpoints",
        select: "SELECT name, disabled FROM planwright.endpoints WHERE disabled IS NOT NULL ORDER BY name",
        update: "UPDATE planwright.endpoints SET disabled = $2 WHERE name = $1",
        recode: |from, to, row| {
            let name: &str = row.get(0);
            let reason = open_reason(from, name, row.get(1))?;
            let reason = seal_reason(to, name, &reason)?.into_owned();
            Ok(vec![text(name), bytes(reason)])
        },
    },
    Table {
        name: "offers",
        select: "SELECT o.run, o.step, o.attempt, o.capability, o.idempotency_key, o.tool, o.definition, o.class, \
                 o.call, o.answer, o.id, o.question, o.asked, o.replies FROM planwright.offers AS o ORDER BY o.id",
        update: "UPDATE planwright.offers SET step = $2, idempotency_key = $3, tool = $4, definition = $5, call = $6, \
                 answer = $7, asked = $8, replies = $9 WHERE id = $1",
        recode: |from, to, row| {
            let offer = read_offer(from, row)?;
            let answer = read_kept_answer(from, row, 9)?;
            let answer = answer
                .map(|answer| seal_kept_answer(to, &offer.key, &answer))
                .transpose()?;
            let columns = seal_offer(to, &offer)?;
            let asked = recode_talk(
                CallTalk::Asked,
                (from, to),
                &offer.key,
                row.get(11),
                row.get(12),
            )?;
            let replies = recode_talk(
                CallTalk::Replies,
                (from, to),
                &offer.key,
                row.get(11),
                row.get(13),
            )?;
            Ok(vec![
                numbered(row.get(10)),
                text(&columns.step),
                text(&columns.idempotency_key),
                text(&columns.tool),
                bytes(columns.definition.as_bytes().to_vec()),
                bytes(columns.call),
                optional(answer),
                optional(asked),
                optional(replies),
            ])
        },
    },
    Table {
        name: "sign_ins",
        select: "SELECT name, kept FROM planwright.sign_ins ORDER BY name",
        update: "UPDATE planwright.sign_ins SET kept = $2 WHERE name = $1",
        recode: |from, to, row| {
            let name: &str = row.get(0);
            let opened = open_sign_in(from, name, row.get(1))?;
            let sealed = seal_sign_in(to, name, &opened)?.into_owned();
            Ok(vec![text(name), bytes(sealed)])
        },
    },
    Table {
        name: "workers",
        select: "SELECT id, host, tools FROM planwright.workers ORDER BY id",
        update: "UPDATE planwright.workers SET host = $2, tools = $3 WHERE id = $1",
        recode: |from, to, row| {
            let id: &str = row.get(0);
            let recoded = |column, kept| {
                let opened = open_worker_column(from, (id, column), kept)?;
                let sealed = seal_worker_column(to, (id, column), &opened)?;
                Ok::<_, RowError>(sealed.into_owned())
            };
            let host = recoded("host", row.get(1))?;
            let tools = recoded("tools", row.get(2))?;
            Ok(vec![text(id), bytes(host), bytes(tools)])
        },
    },
];

/// Seals what was asked in the middle of a call, or replied to it, with another key.
fn recode_talk(
    talk: CallTalk,
    (from, to): (&Cipher, &Cipher),
    key: &OfferKey,
    number: Option<i64>,
    kept: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, RowError> {
    let (Some(number), Some(kept)) = (number, kept) else {
        return Ok(None);
    };
    let opened = open_talk(from, (talk, key, number), kept)?;
    Ok(Some(seal_talk(to, (talk, key, number), &opened)?))
}

pub(super) fn numbered(number: i64) -> Owned {
    (Box::new(number), Type::INT8)
}

/// The number in the first column.
fn number_of(row: &Row) -> Owned {
    numbered(row.get(0))
}

pub(super) fn bytes(bytes: Vec<u8>) -> Owned {
    (Box::new(bytes), Type::BYTEA)
}

pub(super) fn optional(bytes: Option<Vec<u8>>) -> Owned {
    (Box::new(bytes), Type::BYTEA)
}

fn text(text: &str) -> Owned {
    (Box::new(text.to_owned()), Type::TEXT)
}

/// Opens every row beside the journal, as it is at one moment, and lists the faults of those that do not open.
pub(super) async fn check_rows(
    client: &Client,
    cipher: &Cipher,
    place: &str,
) -> Result<Vec<String>, StoreError> {
    let failed = |error: Error| store_error(&error, place);
    let mut problems = Vec::new();
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    client.batch_execute(begin).await.map_err(failed)?;
    for table in TABLES {
        let declare = format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR {}", table.select);
        client.batch_execute(&declare).await.map_err(failed)?;
        loop {
            let fetch = format!("FETCH {PAGE} FROM {CURSOR}");
            let rows = client.query_typed(&fetch, &[]).await.map_err(failed)?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                match (table.recode)(cipher, &Cipher::Plain, row) {
                    Ok(_) => {}
                    Err(
                        RowError::Damaged(reason) | RowError::Store(StoreError::Failed(reason)),
                    ) => {
                        problems.push(format!("a row of {}: {reason}", table.name));
                    }
                    Err(RowError::Store(error)) => return Err(error),
                }
            }
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
        }
        let close = format!("CLOSE {CURSOR}");
        client.batch_execute(&close).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)?;
    Ok(problems)
}
