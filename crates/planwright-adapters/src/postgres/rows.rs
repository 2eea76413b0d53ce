//! Values as columns have them.

use crate::sealing::open_entry;
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::journal::{Record, StreamName};
use planwright_core::principal::PrincipalKind;
use planwright_core::time::Timestamp;
use planwright_engine::port::StoreError;
use std::fmt::Write as _;
use std::time::SystemTime;
use tokio_postgres::Row;

/// The clock of the store, in milliseconds.
pub(super) const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(super) fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(0).plus(since_epoch)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Numbers beyond what the database counts to are not lost: they are as large as it can say.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|_| StoreError::Failed("a hash in the database has another length".to_owned()))?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn optional_digest(bytes: Option<&[u8]>) -> Result<Option<Digest>, StoreError> {
    bytes.map(digest).transpose()
}

/// A text that is kept as bytes.
pub(super) fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

pub(super) fn stream_name(name: &str) -> Result<StreamName, StoreError> {
    name.parse()
        .map_err(|error| StoreError::Failed(format!("{name:?} cannot be a stream: {error}")))
}

pub(super) fn principal_kind(word: &str) -> Option<PrincipalKind> {
    match word {
        "person" => Some(PrincipalKind::Person),
        "agent" => Some(PrincipalKind::Agent),
        "service" => Some(PrincipalKind::Service),
        _ => None,
    }
}

/// Reads an entry from the columns `seq, at, epoch, key, body, hash`, of which the first is at `first`.
pub(super) fn record(
    cipher: &Cipher,
    row: &Row,
    first: usize,
    stream: &StreamName,
) -> Result<Record, StoreError> {
    let damaged = |reason: String| StoreError::Damaged {
        stream: stream.clone(),
        reason,
    };
    let seq = unsigned(row.get(first));
    let key: Option<Vec<u8>> = row.get(first + 3);
    let key = key.map(String::from_utf8).transpose();
    let kept = Record {
        seq,
        at: Timestamp::from_millis(row.get(first + 1)),
        epoch: unsigned(row.get(first + 2)),
        key: key.map_err(|_| damaged("a key is no text".to_owned()))?,
        body: row.get(first + 4),
        hash: digest(row.get(first + 5))
            .map_err(|_| damaged("a hash has another length".to_owned()))?,
    };
    open_entry(cipher, &stream.to_string(), kept)
        .map_err(|error| damaged(format!("entry {seq}: {error}")))
}
