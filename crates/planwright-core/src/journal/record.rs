//! The records of a store: opaque bodies in hash-chained streams.

use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;

/// The name of one journal stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamName {
    /// The life of a plan: versions, approvals, runs opened.
    Plan(PlanId),
    /// The life of one run.
    Run(RunId),
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(id) => write!(f, "plan/{id}"),
            Self::Run(id) => write!(f, "run/{id}"),
        }
    }
}

impl FromStr for StreamName {
    type Err = crate::id::ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some(("plan", id)) => Ok(Self::Plan(id.parse()?)),
            Some(("run", id)) => Ok(Self::Run(id.parse()?)),
            _ => Err(crate::id::ParseIdError::Empty),
        }
    }
}

/// The last record of a stream: its number and its hash. Knowing both proves knowing the whole
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the last record; 0 if there is none.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// The head of a stream with nothing in it.
    pub const EMPTY: Self = Self {
        seq: 0,
        hash: Digest::ZERO,
    };
}

/// One line of a stream. The first has number 1; there are no gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number in the stream, from 1.
    pub seq: u64,
    /// The time at which it was written down.
    pub at: Timestamp,
    /// The epoch of the owner that wrote it; 0 in streams without owners.
    pub epoch: u64,
    /// At most one record of a stream may carry this key. The store refuses a second one.
    pub key: Option<String>,
    /// The entry as JSON.
    pub body: Vec<u8>,
    /// Covers everything above, the stream's name and the hash before it.
    pub hash: Digest,
}

impl Record {
    /// Makes the record that follows `head`.
    pub fn after(
        head: Head,
        stream: &StreamName,
        at: Timestamp,
        epoch: u64,
        key: Option<String>,
        body: Vec<u8>,
    ) -> Self {
        let mut record = Self {
            seq: head.seq + 1,
            at,
            epoch,
            key,
            body,
            hash: Digest::ZERO,
        };
        record.hash = record.compute_hash(head.hash, stream);
        record
    }

    /// Returns the head of a stream that ends with this record.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash,
        }
    }

    fn compute_hash(&self, previous: Digest, stream: &StreamName) -> Digest {
        Digest::of_parts(&[
            previous.as_bytes(),
            stream.to_string().as_bytes(),
            &self.seq.to_le_bytes(),
            &self.at.as_millis().to_le_bytes(),
            &self.epoch.to_le_bytes(),
            self.key.as_deref().unwrap_or_default().as_bytes(),
            &self.body,
        ])
    }
}

/// A stream that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A record is missing.
    #[error("record {expected} is missing: the next one found is {found}")]
    Gap {
        /// The number that should come next.
        expected: u64,
        /// The number that does.
        found: u64,
    },
    /// A record was changed after it was written.
    #[error("record {seq} does not match its hash: it, or one before it, was changed")]
    Changed {
        /// The number of the first record that does not match.
        seq: u64,
    },
}

/// Checks that `records` follow `head` without gap or change, and returns the new head.
pub fn check_chain<'a>(
    head: Head,
    stream: &StreamName,
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Head, ChainError> {
    let mut head = head;
    for record in records {
        if record.seq != head.seq + 1 {
            return Err(ChainError::Gap {
                expected: head.seq + 1,
                found: record.seq,
            });
        }
        if record.compute_hash(head.hash, stream) != record.hash {
            return Err(ChainError::Changed { seq: record.seq });
        }
        head = record.head();
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream_of_three() -> (StreamName, Vec<Record>) {
        let stream: StreamName = "run/run_x".parse().unwrap();
        let mut head = Head::EMPTY;
        let mut records = Vec::new();
        for body in [b"one".as_slice(), b"two", b"three"] {
            let record = Record::after(
                head,
                &stream,
                Timestamp::from_millis(7),
                1,
                None,
                body.to_vec(),
            );
            head = record.head();
            records.push(record);
        }
        (stream, records)
    }

    #[test]
    fn an_untouched_chain_checks() {
        let (stream, records) = stream_of_three();
        assert_eq!(
            check_chain(Head::EMPTY, &stream, &records).unwrap(),
            records[2].head()
        );
    }

    #[test]
    fn a_changed_byte_a_gap_and_another_stream_are_noticed() {
        let (stream, mut records) = stream_of_three();
        assert!(check_chain(Head::EMPTY, &"run/run_y".parse().unwrap(), &records).is_err());
        records[1].body[0] ^= 1;
        assert_eq!(
            check_chain(Head::EMPTY, &stream, &records),
            Err(ChainError::Changed { seq: 2 })
        );
        records.remove(1);
        assert_eq!(
            check_chain(Head::EMPTY, &stream, &records),
            Err(ChainError::Gap {
                expected: 2,
                found: 3
            })
        );
    }
}
