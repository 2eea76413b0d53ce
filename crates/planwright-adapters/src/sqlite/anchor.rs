//! Compares what was promised with what is there.
//!
//! Every promise is checked once, when its stream is first touched: entries leave the table only for
//! a sealed file, so one look is enough, and a short command does not pay for streams it does not use.

use super::sealed_journal::{find_row, is_removed};
use super::transaction::{entry_hash, head_of, stream_id};
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, StreamName};
use planwright_engine::port::StoreError;
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

/// Acknowledged entries of one stream that are not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The stream's name as text; see [`StreamName`].
    pub stream: String,
    /// The last entry that is still present; 0 if there is none.
    pub present: u64,
    /// The last entry that was acknowledged.
    pub promised: u64,
}

impl Loss {
    fn reason(&self) -> String {
        if self.present < self.promised {
            let first = self.present + 1;
            let last = self.promised;
            format!(
                "entry {last} was acknowledged, but the last one present is {}: {first} to {last} are lost",
                self.present
            )
        } else {
            format!(
                "entry {} is not the one that was acknowledged",
                self.promised
            )
        }
    }
}

#[derive(Debug)]
pub(super) struct Anchor(Mutex<State>);

#[derive(Debug)]
struct State {
    unchecked: HashMap<String, Head>,
    lost: BTreeMap<String, (Loss, Head)>,
}

impl Anchor {
    /// Starts from the heads file, and from the losses that were noted when it was last emptied.
    pub(super) fn new(
        promises: HashMap<String, Head>,
        connection: &Connection,
    ) -> Result<Self, rusqlite::Error> {
        let mut unchecked = promises;
        let mut statement = connection.prepare("SELECT stream, seq, hash FROM losses")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in rows {
            let (stream, seq, hash): (String, u64, [u8; 32]) = row?;
            let head = Head {
                seq,
                hash: Digest::from_bytes(hash),
            };
            if unchecked.get(&stream).is_none_or(|known| known.seq < seq) {
                unchecked.insert(stream, head);
            }
        }
        Ok(Self(Mutex::new(State {
            unchecked,
            lost: BTreeMap::new(),
        })))
    }

    /// Refuses a stream that lost its tail.
    pub(super) fn check(
        &self,
        connection: &Connection,
        stream: &StreamName,
        name: &str,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        if let Some(promise) = state.unchecked.get(name).copied() {
            let loss = find_loss(connection, name, promise)
                .map_err(|error| super::fault::of_stream(stream, &error))?;
            state.unchecked.remove(name);
            state
                .lost
                .extend(loss.map(|loss| (name.to_owned(), (loss, promise))));
        }
        match state.lost.get(name) {
            Some((loss, _)) => Err(StoreError::Damaged {
                stream: stream.clone(),
                reason: loss.reason(),
            }),
            None => Ok(()),
        }
    }

    /// Checks every promise that is left and returns all losses.
    pub(super) fn losses(&self, connection: &Connection) -> Result<Vec<Loss>, rusqlite::Error> {
        let mut state = self.state();
        let State { unchecked, lost } = &mut *state;
        for (name, promise) in unchecked.iter() {
            let loss = find_loss(connection, name, *promise)?;
            lost.extend(loss.map(|loss| (name.clone(), (loss, *promise))));
        }
        unchecked.clear();
        Ok(lost.values().map(|(loss, _)| loss.clone()).collect())
    }

    /// The streams with a promise that are not among these.
    pub(super) fn promised_beside(&self, present: &HashSet<String>) -> Vec<String> {
        let state = self.state();
        let promised = state.unchecked.keys().chain(state.lost.keys());
        let mut missing: Vec<String> = promised
            .filter(|name| !present.contains(*name))
            .cloned()
            .collect();
        missing.sort();
        missing.dedup();
        missing
    }

    /// The heads that were promised and are missing.
    pub(super) fn lost_heads(
        &self,
        connection: &Connection,
    ) -> Result<Vec<(String, Head)>, rusqlite::Error> {
        self.losses(connection)?;
        Ok(self
            .state()
            .lost
            .iter()
            .map(|(name, (_, promise))| (name.clone(), *promise))
            .collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .expect("nothing panics while it holds the promises")
    }
}

/// Looks for the promised entry.
fn find_loss(
    connection: &Connection,
    name: &str,
    promise: Head,
) -> Result<Option<Loss>, rusqlite::Error> {
    let loss = |present| {
        Some(Loss {
            stream: name.to_owned(),
            present,
            promised: promise.seq,
        })
    };
    // What was removed for good is not lost, nor is what is in a sealed file.
    let is_gone = || is_removed(connection, name, promise.seq);
    let Some(id) = stream_id(connection, name)? else {
        return Ok(if is_gone()? { None } else { loss(0) });
    };
    if let Some(sealed) = find_row(connection, id)? {
        let is_kept = promise.seq < sealed.head.seq || promise == sealed.head;
        return Ok(if is_kept || is_gone()? {
            None
        } else {
            loss(sealed.head.seq)
        });
    }
    // Both ways of finding it must agree: in a damaged tree one of them can go astray.
    let present = head_of(connection, id)?.seq;
    let found = entry_hash(connection, id, promise.seq)?;
    let is_present = present >= promise.seq && found == Some(promise.hash);
    Ok(if is_present || is_gone()? {
        None
    } else {
        loss(present)
    })
}
