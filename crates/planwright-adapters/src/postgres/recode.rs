//! Reads every row that holds something sealed, opens it with one cipher, seals it with another, and compares.

use super::artifacts::{artifact_name, place};
use super::commit::Value;
use super::fault::store_error;
use super::rewrite::RewritePostgresError;
use super::rows::{digest, number, record, stream_name, unsigned};
use super::sealed_tables::{
    CURSOR, Owned, PAGE, RowError, TABLES, Table, bytes, numbered, optional,
};
use crate::sealing::seal_entry;
use crate::sqlite::RewriteProgress;
use crate::vault::{Cipher, OpenSealedError};
use futures::future::try_join_all;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record, check_chain};
use planwright_engine::port::StoreError;
use std::sync::mpsc;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

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
    fn follow(&mut self, row: &Row) -> Result<Record, RewritePostgresError> {
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
