//! A store that came from elsewhere becomes its opener's.
//!
//! The order is what makes it safe: what must not go on is settled first, and the identity is
//! written last. A process that is killed in between leaves a store that still no process can write to.

use super::fault::{Stop, failed};
use super::identity::{self, Belonging, ForeignStore, Marker, StoreOwner};
use super::idle::RewriteStoreError;
use super::restore::settle;
use super::store::SqliteStore;
use super::tokens::all as all_tokens;
use super::transaction::{head_of, position};
use super::writer::Writer;
use crate::sealing::mask_head;
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::StoreError;
use rusqlite::{Connection, params};
use std::sync::Arc;

const REFUSAL: &str = "the store was adopted by another user before this was answered";

/// What a store from elsewhere holds beside its journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belongings {
    pub streams: u64,
    pub entries: u64,
    /// Tokens that are valid.
    pub tokens: u64,
    /// Commands that wait for the owner of a run.
    pub commands: u64,
}

/// What became void when a store was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adopted {
    pub tokens_revoked: u64,
    pub commands_refused: u64,
}

impl SqliteStore {
    /// Why the store is not its opener's yet, if it was opened to be adopted.
    pub fn adopting(&self) -> Option<&ForeignStore> {
        match &**self.belonging() {
            Belonging::Adopting(_, why) => Some(why),
            Belonging::Unclaimed | Belonging::Ours(_) | Belonging::Foreign(_) => None,
        }
    }

    /// Counts what the store brings.
    pub async fn belongings(&self, now: Timestamp) -> Result<Belongings, StoreError> {
        self.look(move |reader| {
            reader.with(|connection| {
                let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
                let counted = || -> Result<Belongings, rusqlite::Error> {
                    Ok(Belongings {
                        streams: count("SELECT count(*) FROM streams")?,
                        entries: count("SELECT count(*) FROM entries")?,
                        tokens: 0,
                        commands: count("SELECT count(*) FROM messages WHERE answered = 0")?,
                    })
                };
                let counted = counted().map_err(|error| failed(&error))?;
                let tokens = all_tokens(connection, reader.cipher())?;
                let valid = tokens.iter().filter(|token| token.is_valid(now)).count();
                Ok(Belongings {
                    tokens: valid as u64,
                    ..counted
                })
            })
        })
        .await
    }

    /// Fences off the owners of runs, answers their mail with a refusal and revokes all tokens.
    pub async fn settle_adopted(&self, now: Timestamp) -> Result<Adopted, StoreError> {
        self.adopting_marker()?;
        let cipher = Arc::clone(self.cipher());
        let (tokens_revoked, commands_refused) = self
            .write(move |connection| {
                let settled = settle(connection, &cipher, (false, REFUSAL), now);
                settled.map_err(|error| match error {
                    RewriteStoreError::Store(error) => Stop::Refused(error),
                    error => Stop::failed(error.to_string()),
                })
            })
            .await?;
        crash::point("adopt: settled");
        Ok(Adopted {
            tokens_revoked,
            commands_refused,
        })
    }

    /// Marks every journal and signs the store: from here on it is its opener's. Open it again to
    /// use it as that.
    pub async fn adopt(&self, now: Timestamp) -> Result<(), StoreError> {
        self.adopting_marker()?;
        let StoreOwner::Key(key) = self.options().owner.clone() else {
            return Err(StoreError::Failed(
                "there is no key to sign with".to_owned(),
            ));
        };
        let belonging = Arc::clone(self.belonging());
        let cipher = Arc::clone(self.cipher());
        let path = self.path().to_owned();
        self.write_indexed(move |writer: &mut Writer| {
            let Some(marker) = belonging.writes() else {
                return Ok(());
            };
            let connection = writer.connection();
            let pages = mark_heads(connection, &cipher, marker)?;
            let signed = identity::adopt(connection, (path, &key), marker, now);
            signed.map_err(|error| Stop::failed(error.to_string()))?;
            crash::point("adopt: before the commit");
            writer.note_pages(pages);
            Ok(())
        })
        .await
    }

    fn adopting_marker(&self) -> Result<&Marker, StoreError> {
        match &**self.belonging() {
            Belonging::Adopting(marker, _) => Ok(marker),
            Belonging::Unclaimed | Belonging::Ours(_) | Belonging::Foreign(_) => Err(
                StoreError::Failed("the store was not opened to be adopted".to_owned()),
            ),
        }
    }
}

/// Marks the last entry of every journal as the adopter's. Returns how many there are.
fn mark_heads(
    connection: &Connection,
    cipher: &crate::vault::Cipher,
    marker: &Marker,
) -> Result<u64, rusqlite::Error> {
    let mut streams = connection.prepare("SELECT id, name, sealed FROM streams ORDER BY id")?;
    let mut rows = streams.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let (id, name, is_sealed): (i64, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        count += 1;
        if is_sealed {
            let Some(sealed) = super::sealed_journal::find_row(connection, id)? else {
                continue;
            };
            let mark = marker.mark(&name, mask_head(cipher, &name, sealed.head));
            connection.execute(
                "UPDATE sealed_journals SET mark = ?2 WHERE stream = ?1",
                params![id, mark],
            )?;
            continue;
        }
        let head = head_of(connection, id)?;
        let mark = marker.mark(&name, mask_head(cipher, &name, head));
        connection.execute(
            "UPDATE entries SET mark = ?2 WHERE position = ?1",
            params![position(id, head.seq), mark],
        )?;
    }
    Ok(count)
}
