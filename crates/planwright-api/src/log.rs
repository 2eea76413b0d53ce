//! Journal entries, one JSON object per line.

use planwright_core::journal::{Record, StreamName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What `log --json` and `session.jsonl` hold per line. The hash lets anyone check that nothing was
/// left out.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    pub stream: String,
    pub seq: u64,
    pub at: String,
    pub epoch: u64,
    pub kind: String,
    pub cause: Value,
    /// What belongs to the event.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
    pub hash: String,
}

impl LogLine {
    /// Adds the arguments that the call which this entry starts was sent.
    #[must_use]
    pub fn with_args(mut self, args: Option<Value>) -> Self {
        if let Some(args) = args {
            self.fields.insert("args".to_owned(), args);
        }
        self
    }

    pub fn new(stream: &StreamName, record: &Record) -> Result<Self, serde_json::Error> {
        let Body { cause, event } = serde_json::from_slice(&record.body)?;
        let (kind, fields) = event.into_iter().next().unwrap_or_default();
        Ok(Self {
            stream: stream.to_string(),
            seq: record.seq,
            at: record.at.to_string(),
            epoch: record.epoch,
            kind,
            cause,
            fields,
            hash: record.hash.to_string(),
        })
    }
}

#[derive(Deserialize)]
struct Body {
    cause: Value,
    event: BTreeMap<String, Map<String, Value>>,
}
