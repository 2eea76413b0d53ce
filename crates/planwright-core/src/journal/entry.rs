//! Entries: records with their event decoded.

use super::{Head, Record, StreamName};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the entry format this program writes. Older ones fold for ever, newer ones are
/// refused.
pub const VERSION: u32 = 1;

/// Why something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A principal asked for it. The event names the principal.
    Command,
    /// A slot was free and a step was ready.
    Schedule,
    /// A tool answered, or its server failed.
    Report,
    /// Time passed.
    Timer,
    /// A new owner found work that another one left behind.
    Recovery,
}

/// An event that can be journaled.
pub trait Journaled: Serialize + DeserializeOwned {
    /// A key that at most one entry of the stream may carry, for what may happen only once.
    fn unique_key(&self) -> Option<String>;
}

/// One journaled event.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<E> {
    /// Its number in the stream, from 1.
    pub seq: u64,
    /// The time at which it was written down.
    pub at: Timestamp,
    /// The epoch of the owner that wrote it; 0 in streams without owners.
    pub epoch: u64,
    /// The cause.
    pub cause: Cause,
    /// The event.
    pub event: E,
}

/// A record that cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum DecodeEntryError {
    /// A newer version of the program wrote it.
    #[error(
        "entry {seq} was written by a newer version of planwright (format {found}, this one reads {VERSION})"
    )]
    Newer {
        /// Its number.
        seq: u64,
        /// The version of its format.
        found: u32,
    },
    /// It is damaged, or of a kind that this version does not know.
    #[error("entry {seq} cannot be read")]
    Unreadable {
        /// Its number.
        seq: u64,
        /// The error of the JSON reader.
        source: serde_json::Error,
    },
}

/// The body of a record. The event is a field of its own, tagged from the outside, so that reading
/// it back needs no second copy: a body can hold a whole plan.
#[derive(Serialize)]
struct BodyOut<'a, E> {
    v: u32,
    cause: Cause,
    event: &'a E,
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u32,
}

#[derive(Deserialize)]
struct BodyIn<E> {
    cause: Cause,
    event: E,
}

/// Turns an event into the record that follows `head`.
pub fn encode<E: Journaled>(
    head: Head,
    stream: &StreamName,
    at: Timestamp,
    epoch: u64,
    cause: Cause,
    event: &E,
) -> Record {
    let body = serde_json::to_vec(&BodyOut {
        v: VERSION,
        cause,
        event,
    })
    .expect("events have only string keys");
    Record::after(head, stream, at, epoch, event.unique_key(), body)
}

/// Reads a record back. An unknown kind or a newer version is refused, never guessed at.
pub fn decode<E: Journaled>(record: &Record) -> Result<Entry<E>, DecodeEntryError> {
    let unreadable = |source| DecodeEntryError::Unreadable {
        seq: record.seq,
        source,
    };
    let VersionOnly { v } = serde_json::from_slice(&record.body).map_err(unreadable)?;
    if v > VERSION {
        return Err(DecodeEntryError::Newer {
            seq: record.seq,
            found: v,
        });
    }
    let BodyIn { cause, event } = serde_json::from_slice(&record.body).map_err(unreadable)?;
    Ok(Entry {
        seq: record.seq,
        at: record.at,
        epoch: record.epoch,
        cause,
        event,
    })
}
