//! One append to the memory store: everything is checked against an overlay first, so that a
//! refusal at the last stream leaves nothing behind at the first.

use super::store::{LeaseRow, State, Stream};
use crate::port::{Append, AppendError, LeaseRule, MessageId, StoreError};
use planwright_core::id::RunId;
use planwright_core::journal::{Head, StreamName};
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The changes of the appends that were checked so far.
pub(super) struct Transaction<'a> {
    state: &'a State,
    now: Timestamp,
    heads: BTreeMap<StreamName, Head>,
    keys: BTreeSet<(StreamName, String)>,
    leases: BTreeMap<RunId, LeaseRow>,
    answered: BTreeSet<MessageId>,
}

impl<'a> Transaction<'a> {
    /// Returns the leases to write if every append may happen.
    pub(super) fn check(
        state: &'a State,
        now: Timestamp,
        appends: &[Append],
    ) -> Result<BTreeMap<RunId, LeaseRow>, AppendError> {
        let mut transaction = Self {
            state,
            now,
            heads: BTreeMap::new(),
            keys: BTreeSet::new(),
            leases: BTreeMap::new(),
            answered: BTreeSet::new(),
        };
        for append in appends {
            transaction.check_append(append)?;
        }
        Ok(transaction.leases)
    }

    fn check_append(&mut self, append: &Append) -> Result<(), AppendError> {
        self.state.check_undamaged(&append.stream)?;
        // A stale owner is told so before it is told that the stream has grown: it must stop, not
        // try again.
        if let LeaseRule::Held { epoch } | LeaseRule::Release { epoch } = append.lease {
            self.check_held(
                &append.stream,
                epoch,
                matches!(append.lease, LeaseRule::Release { .. }),
            )?;
        }
        self.check_records(append)?;
        if let LeaseRule::Open { owner, ttl } = &append.lease {
            let run = run_of(&append.stream)?;
            if let Some(row) = self.lease(run) {
                return Err(AppendError::Fenced {
                    run: run.clone(),
                    ours: 1,
                    found: row.epoch,
                });
            }
            let row = LeaseRow {
                epoch: 1,
                owner: Some(owner.clone()),
                expires_at: self.now.plus(*ttl),
            };
            self.leases.insert(run.clone(), row);
        }
        if !append.offers.is_empty() {
            return Err(StoreError::Failed("a store in memory has no offers".to_owned()).into());
        }
        for claim in &append.requests {
            self.state.check_claimed(claim)?;
        }
        for (id, _) in &append.answers {
            let message = self.state.messages.get(id);
            let message = message
                .ok_or_else(|| StoreError::Failed(format!("there is no message {}", id.0)))?;
            if message.answer.is_some() || !self.answered.insert(*id) {
                let key = format!("answer to message {}", id.0);
                return Err(AppendError::Duplicate {
                    stream: append.stream.clone(),
                    key,
                });
            }
        }
        Ok(())
    }

    fn check_held(
        &mut self,
        stream: &StreamName,
        ours: u64,
        release: bool,
    ) -> Result<(), AppendError> {
        let run = run_of(stream)?;
        let row = self
            .lease(run)
            .filter(|row| row.epoch == ours && row.owner.is_some());
        let Some(row) = row else {
            let found = self.lease(run).map_or(0, |row| row.epoch);
            return Err(AppendError::Fenced {
                run: run.clone(),
                ours,
                found,
            });
        };
        if release {
            let released = LeaseRow {
                owner: None,
                ..row.clone()
            };
            self.leases.insert(run.clone(), released);
        }
        Ok(())
    }

    fn check_records(&mut self, append: &Append) -> Result<(), AppendError> {
        let stream = self.state.streams.get(&append.stream);
        let found = self.heads.get(&append.stream).copied();
        let found = found
            .or_else(|| stream.map(Stream::head))
            .unwrap_or(Head::EMPTY);
        if found != append.expected {
            let stream = append.stream.clone();
            return Err(AppendError::Conflict {
                stream,
                expected: append.expected,
                found,
            });
        }
        let mut head = found;
        for record in &append.records {
            if record.seq != head.seq + 1 {
                let reason = format!(
                    "record {} of {} does not follow {}",
                    record.seq, append.stream, head.seq
                );
                return Err(StoreError::Failed(reason).into());
            }
            head = record.head();
            if let Some(key) = &record.key
                && (stream.is_some_and(|stream| stream.keys.contains(key))
                    || !self.keys.insert((append.stream.clone(), key.clone())))
            {
                return Err(AppendError::Duplicate {
                    stream: append.stream.clone(),
                    key: key.clone(),
                });
            }
        }
        self.heads.insert(append.stream.clone(), head);
        Ok(())
    }

    fn lease(&self, run: &RunId) -> Option<&LeaseRow> {
        self.leases.get(run).or_else(|| self.state.leases.get(run))
    }
}

fn run_of(stream: &StreamName) -> Result<&RunId, StoreError> {
    match stream {
        StreamName::Run(run) => Ok(run),
        StreamName::Plan(_) => Err(StoreError::Failed(format!(
            "{stream} has no lease: only runs are owned"
        ))),
    }
}
