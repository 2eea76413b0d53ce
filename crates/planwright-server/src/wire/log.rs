//! Journal entries, one JSON object per line.

use planwright_core::journal::{Record, StreamName};
use serde::Serialize;
use serde_json::Value;

/// What `log --json` and `session.jsonl` hold per line. The hash lets anyone check that nothing was left out.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    pub stream: String,
    pub seq: u64,
    pub at: String,
    pub epoch: u64,
    /// The event itself: `kind`, `cause` and what belongs to it.
    #[serde(flatten)]
    pub body: Value,
    pub hash: String,
}

impl LogLine {
    pub fn new(stream: &StreamName, record: &Record) -> Result<Self, serde_json::Error> {
        Ok(Self {
            stream: stream.to_string(),
            seq: record.seq,
            at: record.at.to_string(),
            epoch: record.epoch,
            body: serde_json::from_slice(&record.body)?,
            hash: record.hash.to_string(),
        })
    }
}
