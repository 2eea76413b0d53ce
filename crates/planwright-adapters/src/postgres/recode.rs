//! Reads every row that holds something sealed, opens it with one cipher, seals it with another, and compares.

use super::appending::read_status;
use super::artifacts::{artifact_name, place};
use super::commit::Value;
use super::fault::store_error;
use super::offers::{read_kept_answer, read_offer, seal_kept_answer, seal_offer};
use super::passes::pass;
use super::passkeys::passkey;
use super::rewrite::RewritePostgresError;
use super::rows::{digest, number, record, stream_name, unsigned};
use super::sealed_group::seal_label;
use super::tokens::token;
use crate::sealing::{
    mask_request, open_answer, open_delivery_error, open_message, open_reason, open_refusal_bytes,
    open_worker_column, pass_mark, passkey_mark, seal_answer, seal_delivery_error, seal_entry,
    seal_message, seal_reason, seal_refusal_bytes, seal_worker_column, token_mark,
};
use crate::sqlite::RewriteProgress;
use crate::vault::{Cipher, OpenSealedError};
use futures::future::try_join_all;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::StoreError;
use std::sync::mpsc;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// Rows that are read and written at a time.
const PAGE: usize = 200;

/// Faults after which the rest of a table is not looked at.
const MAX_PROBLEMS: usize = 100;
/// The cursor by which rows are read.
const CURSOR: &str = "rows_to_recode";

/// A value for a statement that outlives its row.
type Owned = (Box<dyn ToSql + Sync + Send>, Type);

/// A table of which some columns are sealed, beside the journal and the large values.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Reads the rows that hold something sealed.
    select: &'static str,
    /// Replaces what is sealed in one of them.
    update: &'static str,
    recode: fn(&Cipher, &Cipher, &Row) -> Result<Vec<Owned>, RowError>,
}

/// The reason why a row was not recoded.
enum RowError {
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
            if crate::sealing::message_hash(run, &body) != hash {
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
                 o.call, o.answer, o.id FROM planwright.offers AS o ORDER BY o.id",
        update: "UPDATE planwright.offers SET step = $2, idempotency_key = $3, tool = $4, definition = $5, call = $6, \
                 answer = $7 WHERE id = $1",
        recode: |from, to, row| {
            let offer = read_offer(from, row)?;
            let answer = read_kept_answer(from, row, 9)?;
            let answer = answer
                .map(|answer| seal_kept_answer(to, &offer.key, &answer))
                .transpose()?;
            let columns = seal_offer(to, &offer)?;
            Ok(vec![
                numbered(row.get(10)),
                text(&columns.step),
                text(&columns.idempotency_key),
                text(&columns.tool),
                bytes(columns.definition.as_bytes().to_vec()),
                bytes(columns.call),
                optional(answer),
            ])
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

fn numbered(number: i64) -> Owned {
    (Box::new(number), Type::INT8)
}

/// The number in the first column.
fn number_of(row: &Row) -> Owned {
    numbered(row.get(0))
}

fn bytes(bytes: Vec<u8>) -> Owned {
    (Box::new(bytes), Type::BYTEA)
}

fn optional(bytes: Option<Vec<u8>>) -> Owned {
    (Box::new(bytes), Type::BYTEA)
}

fn text(text: &str) -> Owned {
    (Box::new(text.to_owned()), Type::TEXT)
}

/// What the journal consists of: two that have the same entries in the same order are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalSum {
    pub(super) entries: u64,
    digest: Digest,
}

impl JournalSum {
    const EMPTY: Self = Self {
        entries: 0,
        digest: Digest::ZERO,
    };

    fn add(&mut self, hash: &Digest) {
        self.entries += 1;
        self.digest = Digest::of_parts(&[self.digest.as_bytes(), hash.as_bytes()]);
    }
}

/// Entries with the names of their streams, each stream from its beginning.
const ENTRIES: &str = "SELECT e.stream, s.name, e.seq, e.at, e.epoch, e.key, e.body, e.hash \
     FROM planwright.entries AS e JOIN planwright.streams AS s ON s.id = e.stream ORDER BY e.stream, e.seq";
const ARTIFACTS: &str = "SELECT digest, bytes, asked_at FROM planwright.artifacts ORDER BY digest";

pub(super) struct Recoder<'a> {
    pub(super) client: &'a Client,
    /// The address of the store, for messages.
    pub(super) place: &'a str,
    pub(super) from: &'a Cipher,
    pub(super) to: &'a Cipher,
    pub(super) told: &'a mpsc::Sender<RewriteProgress>,
}

impl Recoder<'_> {
    /// Writes the journal anew. Every chain is followed on the way.
    pub(super) async fn recode_entries(&self) -> Result<JournalSum, RewritePostgresError> {
        self.create_beside("entries").await?;
        let total = self.count("entries").await?;
        let mut chains = Chains::new(self.from);
        self.declare(ENTRIES).await?;
        loop {
            let rows = self.fetch(PAGE).await?;
            if rows.is_empty() {
                break;
            }
            self.write_entries(&rows, &mut chains).await?;
            self.tell("writing", chains.sum.entries, total);
        }
        self.close().await?;
        if chains.sum.entries != total {
            return Err(RewritePostgresError::Damaged(format!(
                "{total} entries, but only {} belong to a stream",
                chains.sum.entries
            )));
        }
        self.put_in_place("entries").await?;
        Ok(chains.sum)
    }

    async fn write_entries(
        &self,
        rows: &[Row],
        chains: &mut Chains<'_>,
    ) -> Result<(), RewritePostgresError> {
        let mut values: Vec<Vec<Owned>> = Vec::with_capacity(rows.len());
        for row in rows {
            let record = chains.follow(row)?;
            let kept = seal_entry(self.to, row.get(1), &record).map_err(StoreError::from)?;
            values.push(vec![
                numbered(row.get(0)),
                numbered(number(record.seq)),
                numbered(record.at.as_millis()),
                numbered(number(record.epoch)),
                bytes(kept.hash.as_bytes().to_vec()),
                optional(kept.key.map(|key| key.into_owned().into_bytes())),
                bytes(kept.body.into_owned()),
            ]);
        }
        let sql = "INSERT INTO planwright.rewritten (stream, seq, at, epoch, hash, key, body) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        self.execute_all(sql, &values).await
    }

    /// Writes the large values anew, one at a time.
    pub(super) async fn recode_artifacts(&self) -> Result<u64, RewritePostgresError> {
        self.create_beside("artifacts").await?;
        let total = self.count("artifacts").await?;
        let mut done = 0;
        self.declare(ARTIFACTS).await?;
        while let Some(row) = self.fetch(1).await?.first() {
            let value = open_artifact(self.from, row)?;
            let name = artifact_name(self.to, &Digest::of_bytes(&value));
            let sealed = self.to.seal(place(&[name.hex().as_bytes()]), &value);
            let sealed = &*sealed.map_err(StoreError::from)?;
            let name = &name.as_bytes()[..];
            let asked_at: i64 = row.get(2);
            let values: [(Value<'_>, Type); 3] = [
                (&name, Type::BYTEA),
                (&sealed, Type::BYTEA),
                (&asked_at, Type::INT8),
            ];
            let sql =
                "INSERT INTO planwright.rewritten (digest, bytes, asked_at) VALUES ($1, $2, $3)";
            let inserted = self.client.execute_typed(sql, &values).await;
            inserted.map_err(|error| self.failed(&error))?;
            done += 1;
            self.tell("large values", done, total);
        }
        self.close().await?;
        self.put_in_place("artifacts").await?;
        Ok(done)
    }

    /// Replaces what is sealed in a table, and begins its file anew.
    pub(super) async fn recode_table(&self, table: &Table) -> Result<(), RewritePostgresError> {
        self.declare(table.select).await?;
        loop {
            let rows = self.fetch(PAGE).await?;
            if rows.is_empty() {
                break;
            }
            let values = rows
                .iter()
                .map(|row| (table.recode)(self.from, self.to, row))
                .collect::<Result<Vec<_>, _>>();
            let values = values.map_err(|error| damaged(table.name, error))?;
            self.execute_all(table.update, &values).await?;
        }
        self.close().await?;
        self.create_beside(table.name).await?;
        let name = table.name;
        let sql = format!("INSERT INTO planwright.rewritten SELECT * FROM planwright.{name}");
        self.execute(&sql).await?;
        self.put_in_place(name).await
    }

    /// Reads everything that was written: the journal has to be the one that was read, and every other row has to open.
    pub(super) async fn compare(&self, journal: &JournalSum) -> Result<(), RewritePostgresError> {
        let mut chains = Chains::new(self.to);
        self.declare(ENTRIES).await?;
        loop {
            let rows = self.fetch(PAGE).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                chains.follow(row).map_err(differs)?;
            }
            self.tell("comparing", chains.sum.entries, journal.entries);
        }
        self.close().await?;
        if chains.sum != *journal {
            return Err(RewritePostgresError::Differs("the journal".to_owned()));
        }
        self.declare(ARTIFACTS).await?;
        while let Some(row) = self.fetch(1).await?.first() {
            open_artifact(self.to, row).map_err(differs)?;
        }
        self.close().await?;
        for table in TABLES {
            self.declare(table.select).await?;
            loop {
                let rows = self.fetch(PAGE).await?;
                if rows.is_empty() {
                    break;
                }
                for row in &rows {
                    (table.recode)(self.to, &Cipher::Plain, row)
                        .map_err(|error| differs(damaged(table.name, error)))?;
                }
            }
            self.close().await?;
        }
        Ok(())
    }

    pub(super) async fn count(&self, table: &str) -> Result<u64, RewritePostgresError> {
        let sql = format!("SELECT count(*) FROM planwright.{table}");
        let row = self.client.query_typed_one(&sql, &[]).await;
        Ok(unsigned(row.map_err(|error| self.failed(&error))?.get(0)))
    }

    fn tell(&self, what: &'static str, done: u64, total: u64) {
        // A caller that does not listen any more misses nothing.
        let _ = self.told.send(RewriteProgress { what, done, total });
    }

    fn failed(&self, error: &Error) -> RewritePostgresError {
        store_error(error, self.place).into()
    }

    async fn execute(&self, sql: &str) -> Result<(), RewritePostgresError> {
        let done = self.client.batch_execute(sql).await;
        done.map_err(|error| self.failed(&error))
    }

    /// Makes one statement for each of these rows. All are sent at once.
    async fn execute_all(
        &self,
        sql: &str,
        rows: &[Vec<Owned>],
    ) -> Result<(), RewritePostgresError> {
        let values: Vec<Vec<(Value<'_>, Type)>> = rows
            .iter()
            .map(|row| {
                let values = row.iter();
                values
                    .map(|(value, kind)| (&**value as Value<'_>, kind.clone()))
                    .collect()
            })
            .collect();
        let sent = values
            .iter()
            .map(|values| self.client.execute_typed(sql, values));
        let done = try_join_all(sent).await;
        done.map(drop).map_err(|error| self.failed(&error))
    }

    async fn declare(&self, select: &str) -> Result<(), RewritePostgresError> {
        self.execute(&format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR {select}"))
            .await
    }

    async fn fetch(&self, rows: usize) -> Result<Vec<Row>, RewritePostgresError> {
        let sql = format!("FETCH {rows} FROM {CURSOR}");
        let rows = self.client.query_typed(&sql, &[]).await;
        rows.map_err(|error| self.failed(&error))
    }

    async fn close(&self) -> Result<(), RewritePostgresError> {
        self.execute(&format!("CLOSE {CURSOR}")).await
    }

    /// Makes an empty table with the columns of another one.
    async fn create_beside(&self, table: &str) -> Result<(), RewritePostgresError> {
        self.execute(&format!(
            "CREATE TABLE planwright.rewritten (LIKE planwright.{table})"
        ))
        .await
    }

    /// Replaces the rows of a table by those that were written beside it. What is truncated begins a new file, and the old
    /// one is removed with the commit.
    async fn put_in_place(&self, table: &str) -> Result<(), RewritePostgresError> {
        self.execute(&format!(
            "TRUNCATE planwright.{table}; \
             INSERT INTO planwright.{table} OVERRIDING SYSTEM VALUE SELECT * FROM planwright.rewritten; \
             DROP TABLE planwright.rewritten"
        ))
        .await
    }
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

fn open_artifact(cipher: &Cipher, row: &Row) -> Result<Vec<u8>, RewritePostgresError> {
    let wrong = || RewritePostgresError::Damaged(format!("a large value: {OpenSealedError}"));
    let name = digest(row.get(0))?;
    let opened = cipher.open(place(&[name.hex().as_bytes()]), row.get(1));
    let opened = opened.map_err(|_| wrong())?;
    match artifact_name(cipher, &Digest::of_bytes(&opened)) == name {
        true => Ok(opened),
        false => Err(wrong()),
    }
}

fn damaged(table: &str, error: RowError) -> RewritePostgresError {
    match error {
        RowError::Damaged(reason) => {
            RewritePostgresError::Damaged(format!("a row of {table}: {reason}"))
        }
        RowError::Store(StoreError::Failed(reason)) => {
            RewritePostgresError::Damaged(format!("a row of {table}: {reason}"))
        }
        RowError::Store(error) => error.into(),
    }
}

/// What is wrong with what was just written is no damage of the store.
fn differs(error: RewritePostgresError) -> RewritePostgresError {
    match error {
        RewritePostgresError::Damaged(reason) => RewritePostgresError::Differs(reason),
        error => error,
    }
}

/// Follows the chains of all streams, one after the other.
struct Chains<'a> {
    cipher: &'a Cipher,
    stream: Option<i64>,
    head: Head,
    sum: JournalSum,
}

impl<'a> Chains<'a> {
    fn new(cipher: &'a Cipher) -> Self {
        Self {
            cipher,
            stream: None,
            head: Head::EMPTY,
            sum: JournalSum::EMPTY,
        }
    }

    /// Opens the entry of a row of [`ENTRIES`], which has to follow the one before.
    fn follow(
        &mut self,
        row: &Row,
    ) -> Result<planwright_core::journal::Record, RewritePostgresError> {
        let stream = stream_name(row.get(1))?;
        if self.stream != Some(row.get(0)) {
            self.stream = Some(row.get(0));
            self.head = Head::EMPTY;
        }
        let damaged = |reason: String| RewritePostgresError::Damaged(format!("{stream}: {reason}"));
        let record =
            record(self.cipher, row, 2, &stream).map_err(|error| damaged(error.to_string()))?;
        self.head = check_chain(self.head, &stream, std::slice::from_ref(&record))
            .map_err(|error| damaged(error.to_string()))?;
        self.sum.add(&record.hash);
        Ok(record)
    }
}
