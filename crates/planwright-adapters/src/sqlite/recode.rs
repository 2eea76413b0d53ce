//! Copies a database row by row, opening each with one cipher and sealing it with another, and
//! compares the copies.

use super::entry_index;
use super::fault::describe;
use super::idle::{RewriteProgress, RewriteStoreError, Tell};
use super::tokens::{check_all as check_tokens, find_by_id};
use super::transaction::{SEQ_BITS, records_of};
use super::{passes, passkeys};
use crate::sealing::{
    LabelRow, mask_head, mask_request, message_hash, open_answer, open_entry, open_message,
    open_refusal, pass_mark, passkey_mark, seal_answer, seal_entry, seal_message, seal_refusal,
    token_mark,
};
use crate::vault::{Cipher, OpenSealedError};
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{StoreError, TokenId};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::HashMap;

/// Records compared at a time: bounds memory.
const PAGE: usize = 500;
/// Rows between two words about progress.
const TOLD_EVERY: u64 = 256;

/// The counts of a copy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recoded {
    pub(super) streams: u64,
    pub(super) entries: u64,
}

/// One table: its name and the columns that are kept (others are computed from them).
struct Table {
    name: String,
    columns: Vec<String>,
}

/// A row while it is being recoded.
struct Row<'a> {
    table: &'a Table,
    values: Vec<Value>,
}

struct Recoder<'a> {
    from: &'a Cipher,
    to: &'a Cipher,
    old: &'a Connection,
    /// The names of the streams by their numbers.
    streams: HashMap<i64, String>,
}

/// Copies every table but the lock, and the answers that are kept for a day under names made with
/// the old key. The indexes of the journal are written anew: sealed keys are other keys.
pub(super) fn copy(
    old: &Connection,
    new: &Connection,
    from: &Cipher,
    to: &Cipher,
    tell: Tell<'_>,
) -> Result<Recoded, RewriteStoreError> {
    let recoder = Recoder {
        from,
        to,
        old,
        streams: streams(old)?.into_iter().collect(),
    };
    let total = count(old, "entries")?;
    let mut recoded = Recoded {
        streams: recoder.streams.len() as u64,
        entries: 0,
    };
    for table in tables(old)? {
        let is_journal = table.name == "entries";
        recoder.copy_table(new, &table, &mut |done| {
            if is_journal {
                recoded.entries = done;
                if done % TOLD_EVERY == 0 || done == total {
                    tell(RewriteProgress {
                        what: "writing",
                        done,
                        total,
                    });
                }
            }
        })?;
    }
    entry_index::rebuild(new)?;
    copy_sequences(old, new)?;
    Ok(recoded)
}

/// The streams whose entries are in this file.
fn unsealed_streams(connection: &Connection) -> Result<Vec<(i64, String)>, rusqlite::Error> {
    let mut statement =
        connection.prepare("SELECT id, name FROM streams WHERE sealed = 0 ORDER BY id")?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn streams(connection: &Connection) -> Result<Vec<(i64, String)>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT id, name FROM streams ORDER BY id")?;
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn count(connection: &Connection, table: &str) -> Result<u64, rusqlite::Error> {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
        row.get(0)
    })
}

fn tables(connection: &Connection) -> Result<Vec<Table>, rusqlite::Error> {
    let sql = "SELECT name FROM sqlite_master
               WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
                 AND name NOT IN ('vault', 'answers', 'entry_places', 'entry_keys', 'unindexed')
               ORDER BY rowid";
    let mut statement = connection.prepare(sql)?;
    let names: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let table = |name: String| {
        let mut statement = connection
            .prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid")?;
        let columns = statement
            .query_map([&name], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(Table { name, columns })
    };
    names.into_iter().map(table).collect()
}

/// Numbers that were given once are not given again, also if their row is gone.
fn copy_sequences(old: &Connection, new: &Connection) -> Result<(), rusqlite::Error> {
    let mut statement = old.prepare("SELECT name, seq FROM sqlite_sequence")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    new.execute("DELETE FROM sqlite_sequence", [])?;
    for row in rows {
        let (name, last) = row?;
        new.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
            (name, last),
        )?;
    }
    Ok(())
}

impl Recoder<'_> {
    fn copy_table(
        &self,
        new: &Connection,
        table: &Table,
        copied: &mut dyn FnMut(u64),
    ) -> Result<(), RewriteStoreError> {
        let columns = table.columns.join(", ");
        let marks = vec!["?"; table.columns.len()].join(", ");
        let mut read = self
            .old
            .prepare(&format!("SELECT {columns} FROM {}", table.name))?;
        let mut insert = new.prepare(&format!(
            "INSERT INTO {} ({columns}) VALUES ({marks})",
            table.name
        ))?;
        let mut rows = read.query([])?;
        let mut done = 0;
        while let Some(found) = rows.next()? {
            let values: Vec<Value> = (0..table.columns.len())
                .map(|column| found.get(column))
                .collect::<Result<_, rusqlite::Error>>()?;
            let mut row = Row { table, values };
            self.recode(&mut row)?;
            insert.execute(params_from_iter(row.values))?;
            done += 1;
            copied(done);
        }
        Ok(())
    }

    fn recode(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        match row.table.name.as_str() {
            "entries" => self.entry(row),
            "streams" => self.stream(row),
            "messages" => self.message(row),
            "losses" => self.loss(row),
            "tokens" => self.token(row),
            "passes" => self.pass(row),
            "passkeys" => self.passkey(row),
            "answers" => self.answer(row),
            _ => Ok(()),
        }
    }

    fn entry(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let position = row.integer("position")?;
        let name = self
            .streams
            .get(&(position >> SEQ_BITS))
            .ok_or_else(|| row.damaged())?;
        let kept = Record {
            seq: u64::from(
                u32::try_from(position & i64::from(u32::MAX)).expect("masked to 32 bits"),
            ),
            at: Timestamp::from_millis(row.integer("at")?),
            epoch: u64::try_from(row.integer("epoch")?).map_err(|_| row.damaged())?,
            key: row.optional_text("key")?,
            body: row.bytes("body")?,
            hash: row.hash("hash")?,
        };
        let record = open_entry(self.from, name, kept).map_err(|_| row.damaged())?;
        let kept = seal_entry(self.to, name, &record).map_err(StoreError::from)?;
        let key = kept.key.map(Into::into);
        let hash = kept.hash;
        let body = kept.body.into_owned();
        row.set("key", key.map_or(Value::Null, Value::Text));
        row.set("hash", Value::Blob(hash.as_bytes().to_vec()));
        row.set("body", Value::Blob(body));
        Ok(())
    }

    fn stream(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let (Some(label), name) = (row.optional_text("label")?, row.text("name")?) else {
            return Ok(());
        };
        let plan = row.text("plan")?;
        let status = row.text("status")?;
        let bound = LabelRow {
            stream: &name,
            plan: &plan,
            status: &status,
            created_at: row.integer("created_at")?,
            updated_at: row.integer("updated_at")?,
        };
        let label = bound.open(self.from, label).map_err(|_| row.damaged())?;
        let kept = bound
            .seal(self.to, &label)
            .map_err(StoreError::from)?
            .into_owned();
        row.set("label", Value::Text(kept));
        Ok(())
    }

    fn message(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let id = row.integer("id")?;
        let run = row.text("run")?;
        let opened = open_message(self.from, (id, &run), row.bytes("body")?, row.hash("hash")?);
        let (body, hash) = opened.map_err(|_| row.damaged())?;
        let (body, hash) =
            seal_message(self.to, (id, &run), &body, hash).map_err(StoreError::from)?;
        row.set("body", Value::Blob(body));
        row.set("hash", Value::Blob(hash.as_bytes().to_vec()));
        if let Some(refusal) = row.optional_text("refusal")? {
            let refusal = open_refusal(self.from, id, refusal).map_err(|_| row.damaged())?;
            let kept = seal_refusal(self.to, id, &refusal)
                .map_err(StoreError::from)?
                .into_owned();
            row.set("refusal", Value::Text(kept));
        }
        Ok(())
    }

    fn loss(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let seq = u64::try_from(row.integer("seq")?).map_err(|_| row.damaged())?;
        let name = row.text("stream")?;
        let kept = Head {
            seq,
            hash: row.hash("hash")?,
        };
        let head = mask_head(self.from, &name, kept);
        let kept = mask_head(self.to, &name, head);
        row.set("hash", Value::Blob(kept.hash.as_bytes().to_vec()));
        Ok(())
    }

    fn answer(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let key = row.hash("key")?;
        let request = mask_request(self.from, &key, row.hash("request")?);
        let request = mask_request(self.to, &key, request);
        row.set("request", Value::Blob(request.as_bytes().to_vec()));
        if !matches!(row.value("answer")?, Value::Null) {
            let answer =
                open_answer(self.from, &key, row.bytes("answer")?).map_err(|_| row.damaged())?;
            let kept = seal_answer(self.to, &key, &answer).map_err(StoreError::from)?;
            row.set("answer", Value::Blob(kept));
        }
        Ok(())
    }

    fn token(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let id = TokenId(row.text("id")?);
        let token = find_by_id(self.old, self.from, &id)?.ok_or_else(|| row.damaged())?;
        let mark = token_mark(self.to, &token).map_err(StoreError::from)?;
        row.set("mark", mark.map_or(Value::Null, Value::Blob));
        Ok(())
    }

    fn pass(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let hash = row.hash("hash")?;
        let pass = passes::find(self.old, self.from, &hash)?.ok_or_else(|| row.damaged())?;
        let mark = pass_mark(self.to, &pass).map_err(StoreError::from)?;
        row.set("mark", mark.map_or(Value::Null, Value::Blob));
        Ok(())
    }

    fn passkey(&self, row: &mut Row<'_>) -> Result<(), RewriteStoreError> {
        let id = row.bytes("id")?;
        let passkey = passkeys::find(self.old, self.from, &id)?.ok_or_else(|| row.damaged())?;
        let mark = passkey_mark(self.to, &passkey).map_err(StoreError::from)?;
        row.set("mark", mark.map_or(Value::Null, Value::Blob));
        Ok(())
    }
}

impl Row<'_> {
    fn value(&self, column: &str) -> Result<&Value, RewriteStoreError> {
        let at = self.table.columns.iter().position(|name| name == column);
        at.and_then(|at| self.values.get(at))
            .ok_or_else(|| self.damaged())
    }

    fn set(&mut self, column: &str, value: Value) {
        if let Some(at) = self.table.columns.iter().position(|name| name == column) {
            self.values[at] = value;
        }
    }

    fn integer(&self, column: &str) -> Result<i64, RewriteStoreError> {
        match self.value(column)? {
            Value::Integer(number) => Ok(*number),
            Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_) => Err(self.damaged()),
        }
    }

    fn optional_text(&self, column: &str) -> Result<Option<String>, RewriteStoreError> {
        match self.value(column)? {
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Null => Ok(None),
            Value::Integer(_) | Value::Real(_) | Value::Blob(_) => Err(self.damaged()),
        }
    }

    fn text(&self, column: &str) -> Result<String, RewriteStoreError> {
        self.optional_text(column)?.ok_or_else(|| self.damaged())
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, RewriteStoreError> {
        match self.value(column)? {
            Value::Blob(bytes) => Ok(bytes.clone()),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) => {
                Err(self.damaged())
            }
        }
    }

    fn hash(&self, column: &str) -> Result<Digest, RewriteStoreError> {
        let bytes = <[u8; 32]>::try_from(self.bytes(column)?).map_err(|_| self.damaged())?;
        Ok(Digest::from_bytes(bytes))
    }

    fn damaged(&self) -> RewriteStoreError {
        RewriteStoreError::Damaged(format!("a row of {}: {OpenSealedError}", self.table.name))
    }
}

/// Reads both databases to their ends: every record must be the same, every chain must hold, and
/// every other row must open.
pub(super) fn compare(
    old: &Connection,
    new: &Connection,
    from: &Cipher,
    to: &Cipher,
    tell: Tell<'_>,
) -> Result<(), RewriteStoreError> {
    let total = count(old, "entries")?;
    let mut done = 0;
    for (id, name) in unsealed_streams(old)? {
        let stream: StreamName = name
            .parse()
            .map_err(|_| RewriteStoreError::Damaged(format!("{name:?} cannot be a stream")))?;
        let mut head = Head::EMPTY;
        loop {
            let one = records_of(old, from, &name, id, head.seq, (PAGE, usize::MAX))?;
            let two = records_of(new, to, &name, id, head.seq, (PAGE, usize::MAX))?;
            if one != two {
                return Err(RewriteStoreError::Differs(name));
            }
            head = check_chain(head, &stream, &two)
                .map_err(|error| RewriteStoreError::Damaged(format!("{name}: {error}")))?;
            done += two.len() as u64;
            tell(RewriteProgress {
                what: "comparing",
                done,
                total,
            });
            if two.len() < PAGE {
                break;
            }
        }
    }
    for table in tables(old)? {
        if count(old, &table.name)? != count(new, &table.name)? {
            return Err(RewriteStoreError::Differs(table.name));
        }
    }
    let mut problems = entry_index::find_differences(new)?;
    problems.extend(check_rows(new, to)?);
    match problems.into_iter().next() {
        Some(problem) => Err(RewriteStoreError::Differs(problem)),
        None => Ok(()),
    }
}

/// Follows the chain of every stream to its end. Returns how many streams and entries there are.
pub(super) fn verify_journal(
    connection: &Connection,
    cipher: &Cipher,
    tell: Tell<'_>,
) -> Result<(u64, u64), RewriteStoreError> {
    let all = streams(connection)?.len() as u64;
    let sql = "SELECT count(*) FROM entries AS e WHERE NOT EXISTS
               (SELECT 1 FROM sealed_journals AS s WHERE s.stream = e.position >> 32)";
    let total: u64 = connection.query_row(sql, [], |row| row.get(0))?;
    let mut done = 0;
    for (id, name) in &unsealed_streams(connection)? {
        let damaged = |reason: String| RewriteStoreError::Damaged(format!("{name}: {reason}"));
        let stream: StreamName = name
            .parse()
            .map_err(|_| damaged("it cannot be a stream".to_owned()))?;
        let mut head = Head::EMPTY;
        loop {
            let page = records_of(connection, cipher, name, *id, head.seq, (PAGE, usize::MAX))
                .map_err(|error| damaged(describe(&error)))?;
            head = check_chain(head, &stream, &page).map_err(|error| damaged(error.to_string()))?;
            done += page.len() as u64;
            tell(RewriteProgress {
                what: "reading",
                done,
                total,
            });
            if page.len() < PAGE {
                break;
            }
        }
    }
    if done != total {
        return Err(RewriteStoreError::Damaged(format!(
            "{total} entries, but only {done} belong to a stream"
        )));
    }
    Ok((all, total))
}

/// Lists the faults of the rows beside the journal: labels, messages, tokens, passes and passkeys that do not open.
pub(super) fn check_rows(
    connection: &Connection,
    cipher: &Cipher,
) -> Result<Vec<String>, rusqlite::Error> {
    let mut problems = Vec::new();
    let sql = "SELECT name, plan, status, created_at, updated_at, label FROM streams WHERE label IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (stream, plan, status): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let bound = LabelRow {
            stream: &stream,
            plan: &plan,
            status: &status,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
        };
        if bound.open(cipher, row.get(5)?).is_err() {
            problems.push(format!(
                "the label or status of {stream}: {OpenSealedError}"
            ));
        }
    }
    let mut statement = connection.prepare("SELECT id, run, body, hash, refusal FROM messages")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, run): (i64, String) = (row.get(0)?, row.get(1)?);
        let body = open_message(
            cipher,
            (id, &run),
            row.get(2)?,
            Digest::from_bytes(row.get(3)?),
        );
        let same = body.is_ok_and(|(body, hash)| message_hash(&run, &body) == hash);
        let refusal = row
            .get::<_, Option<String>>(4)?
            .map(|refusal| open_refusal(cipher, id, refusal));
        if !same || refusal.is_some_and(|opened| opened.is_err()) {
            problems.push(format!("message {id} for run {run}: {OpenSealedError}"));
        }
    }
    problems.extend(check_tokens(connection, cipher)?);
    problems.extend(passes::check_all(connection, cipher)?);
    problems.extend(passkeys::check_all(connection, cipher)?);
    Ok(problems)
}
