//! Decides appends against rows that the transaction has locked, in memory: nothing of a request that is refused is
//! written, and the others of its group are not hurt. What is to be written follows from what the rows are afterwards.

use super::rows::now;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, AppendError, LeaseRule, OfferChange, OwnerId, StepOffer, StoreError, StreamStatus,
    says_more,
};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// A stream as the transaction found it, and as it will leave it.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamState {
    pub(super) exists: bool,
    pub(super) is_sealed: bool,
    pub(super) head: Option<Head>,
    pub(super) status: Option<StreamStatus>,
    /// Why its row cannot be understood. Nothing is appended to it then, and other streams are not hurt.
    pub(super) unreadable: Option<StoreError>,
    /// When it was created and updated, by its row.
    pub(super) times: Option<(Timestamp, Timestamp)>,
    /// The unique keys that are taken, of those that the group wants.
    pub(super) keys: HashSet<Vec<u8>>,
    pub(super) begun: Option<BegunStream>,
    /// When the new status is from, where it is to be written: `None` inside keeps the time.
    pub(super) status_from: Option<Option<Timestamp>>,
}

/// A stream that this transaction makes.
#[derive(Debug, Clone)]
pub(super) struct BegunStream {
    pub(super) kind: &'static str,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

/// A stream that was there before and whose status is to be written.
pub(super) struct ChangedStream<'a> {
    pub(super) name: &'a str,
    pub(super) status: &'a StreamStatus,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

/// A lease as it is and will be.
#[derive(Debug, Clone, Default)]
pub(super) struct LeaseState {
    pub(super) row: Option<(u64, Option<OwnerId>)>,
    /// The lease begins with this transaction and lasts so long.
    pub(super) opened: Option<Duration>,
    pub(super) is_released: bool,
}

/// A message as it is and will be.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageState {
    pub(super) exists: bool,
    pub(super) is_answered: bool,
    pub(super) answer: Option<Result<(), String>>,
}

/// A request that must not be done twice, as it is and will be.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState {
    /// Its owner, if it is claimed and not answered.
    pub(super) owner: Option<OwnerId>,
    pub(super) changed: Option<String>,
    pub(super) is_noted: bool,
}

/// All that a group of appends is about.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    pub(super) streams: BTreeMap<String, StreamState>,
    pub(super) leases: BTreeMap<String, LeaseState>,
    pub(super) messages: BTreeMap<i64, MessageState>,
    pub(super) requests: BTreeMap<Digest, RequestState>,
    pub(super) entries: Vec<(String, &'a Record)>,
    /// Stream, number of the first and of the last entry of each append.
    pub(super) ranges: Vec<(String, u64, u64)>,
    /// Bytes by principal and plan.
    pub(super) brought: BTreeMap<(String, String), u64>,
    /// What the appends change about offers.
    pub(super) offers: Vec<&'a OfferChange>,
}

impl<'a> Known<'a> {
    /// Names everything that these appends are about, so that it can be read.
    pub(super) fn of(appends: impl Iterator<Item = &'a Append>) -> Self {
        let mut known = Self::default();
        for append in appends {
            known.streams.entry(append.stream.to_string()).or_default();
            if append.lease != LeaseRule::None
                && let StreamName::Run(run) = &append.stream
            {
                known.leases.entry(run.as_str().to_owned()).or_default();
            }
            for (message, _) in &append.answers {
                known.messages.entry(message.0).or_default();
            }
            for claim in &append.requests {
                known.requests.entry(claim.key).or_default();
            }
        }
        known
    }

    /// Decides the appends of one request, all or nothing.
    pub(super) fn decide(&mut self, appends: &'a [Append]) -> Result<(), AppendError> {
        let before = self.before(appends);
        let entries = self.entries.len();
        let ranges = self.ranges.len();
        let offers = self.offers.len();
        let decided = appends.iter().try_for_each(|append| self.append(append));
        if decided.is_err() {
            let Self {
                streams,
                leases,
                messages,
                requests,
                brought,
                ..
            } = before;
            self.streams.extend(streams);
            self.leases.extend(leases);
            self.messages.extend(messages);
            self.requests.extend(requests);
            self.brought = brought;
            self.entries.truncate(entries);
            self.ranges.truncate(ranges);
            self.offers.truncate(offers);
        }
        decided
    }

    /// The streams that the transaction makes.
    pub(super) fn begun(
        &self,
    ) -> impl Iterator<Item = (&str, &BegunStream, Option<&StreamStatus>)> {
        self.streams.iter().filter_map(|(name, state)| {
            Some((name.as_str(), state.begun.as_ref()?, state.status.as_ref()))
        })
    }

    /// The streams whose status it writes.
    pub(super) fn changed(&self) -> impl Iterator<Item = ChangedStream<'_>> {
        self.streams.iter().filter_map(|(name, state)| {
            let (created_at, before) = state.times?;
            Some(ChangedStream {
                name,
                updated_at: state.status_from?.unwrap_or(before),
                status: state.status.as_ref()?,
                created_at,
            })
        })
    }

    /// The messages that it answers.
    pub(super) fn answered(&self) -> impl Iterator<Item = (i64, &Result<(), String>)> {
        let messages = self.messages.iter();
        messages.filter_map(|(message, state)| Some((*message, state.answer.as_ref()?)))
    }

    /// The offers that it makes.
    pub(super) fn offered(&self) -> impl Iterator<Item = &StepOffer> {
        self.offers.iter().filter_map(|change| match change {
            OfferChange::Make(offer) => Some(&**offer),
            OfferChange::End(_) => None,
        })
    }

    /// What a request may change, as it is before.
    fn before(&self, appends: &'a [Append]) -> Self {
        let mut before = Self::of(appends.iter());
        for (name, state) in &mut before.streams {
            state.clone_from(&self.streams[name]);
        }
        for (run, state) in &mut before.leases {
            state.clone_from(&self.leases[run]);
        }
        for (message, state) in &mut before.messages {
            state.clone_from(&self.messages[message]);
        }
        for (key, state) in &mut before.requests {
            state.clone_from(&self.requests[key]);
        }
        before.brought.clone_from(&self.brought);
        before
    }

    fn append(&mut self, append: &'a Append) -> Result<(), AppendError> {
        let name = append.stream.to_string();
        // A stale owner is told so before it is told that the stream has grown: it must stop, not try again.
        if let LeaseRule::Held { epoch } | LeaseRule::Release { epoch } = append.lease {
            self.check_held(run_of(&append.stream)?, epoch)?;
        }
        self.check_head(append, &name)?;
        match &append.lease {
            LeaseRule::None | LeaseRule::Held { .. } => {}
            LeaseRule::Open { owner, ttl } => {
                self.open_lease(run_of(&append.stream)?, owner, *ttl)?;
            }
            LeaseRule::Release { .. } => self.release_lease(run_of(&append.stream)?),
        }
        self.answer_messages(append)?;
        self.note_requests(append)?;
        self.count_brought(append);
        self.offers.extend(&append.offers);
        if append.records.is_empty() && append.status.is_none() {
            return Ok(());
        }
        self.write_stream(append, &name);
        self.write_entries(append, name)
    }

    fn check_held(&self, run: &RunId, ours: u64) -> Result<(), AppendError> {
        let row = self
            .leases
            .get(run.as_str())
            .and_then(|lease| lease.row.as_ref());
        match row {
            Some((epoch, Some(_))) if *epoch == ours => Ok(()),
            _ => Err(AppendError::Fenced {
                run: run.clone(),
                ours,
                found: row.map_or(0, |(epoch, _)| *epoch),
            }),
        }
    }

    fn check_head(&self, append: &Append, name: &str) -> Result<(), AppendError> {
        let state = &self.streams[name];
        if let Some(error) = &state.unreadable {
            return Err(error.clone().into());
        }
        let found = state.head.unwrap_or(Head::EMPTY);
        if found != append.expected {
            return Err(AppendError::Conflict {
                stream: append.stream.clone(),
                expected: append.expected,
                found,
            });
        }
        if state.is_sealed && !append.records.is_empty() {
            return Err(AppendError::Store(StoreError::Sealed {
                stream: append.stream.clone(),
                file: "the database".to_owned(),
            }));
        }
        let mut seq = append.expected.seq;
        for record in &append.records {
            if record.seq != seq + 1 {
                let stream = &append.stream;
                return Err(failed(format!(
                    "record {} of {stream} does not follow {seq}",
                    record.seq
                )));
            }
            seq = record.seq;
        }
        Ok(())
    }

    fn open_lease(
        &mut self,
        run: &RunId,
        owner: &OwnerId,
        ttl: Duration,
    ) -> Result<(), AppendError> {
        let lease = self.leases.entry(run.as_str().to_owned()).or_default();
        if let Some((epoch, _)) = &lease.row {
            return Err(AppendError::Fenced {
                run: run.clone(),
                ours: 1,
                found: *epoch,
            });
        }
        lease.row = Some((1, Some(owner.clone())));
        lease.opened = Some(ttl);
        Ok(())
    }

    fn release_lease(&mut self, run: &RunId) {
        let lease = self.leases.entry(run.as_str().to_owned()).or_default();
        if let Some((_, owner)) = &mut lease.row {
            *owner = None;
        }
        lease.is_released = true;
    }

    fn answer_messages(&mut self, append: &Append) -> Result<(), AppendError> {
        for (message, answer) in &append.answers {
            let state = self.messages.entry(message.0).or_default();
            if !state.exists {
                return Err(failed(format!("there is no message {}", message.0)));
            }
            if state.is_answered {
                return Err(AppendError::Duplicate {
                    stream: append.stream.clone(),
                    key: format!("answer to message {}", message.0),
                });
            }
            state.is_answered = true;
            state.answer = Some(answer.clone());
        }
        Ok(())
    }

    fn note_requests(&mut self, append: &Append) -> Result<(), AppendError> {
        for claim in &append.requests {
            let state = self.requests.entry(claim.key).or_default();
            if state.owner.as_ref() != Some(&claim.owner) {
                return Err(AppendError::Unclaimed);
            }
            let noted = state.changed.as_deref().map(super::rows::stream_name);
            let noted = noted.transpose()?;
            if says_more(noted.as_ref(), &append.stream) {
                state.changed = Some(append.stream.to_string());
                state.is_noted = true;
            }
        }
        Ok(())
    }

    fn count_brought(&mut self, append: &Append) {
        if let StreamName::Plan(plan) = &append.stream {
            for brought in &append.brought {
                let place = (brought.by.to_string(), plan.as_str().to_owned());
                let bytes = self.brought.entry(place).or_default();
                *bytes = bytes.saturating_add(brought.bytes);
            }
        }
    }

    /// Times in lists come from the journal where there is an entry, so that they can be rebuilt from it.
    fn write_stream(&mut self, append: &Append, name: &str) {
        let state = self.streams.entry(name.to_owned()).or_default();
        let last = append.records.last().map(|record| record.at);
        if !state.exists {
            let created_at = append.records.first().map_or_else(now, |record| record.at);
            state.exists = true;
            state.begun = Some(BegunStream {
                kind: match append.stream {
                    StreamName::Plan(_) => "plan",
                    StreamName::Run(_) => "run",
                },
                created_at,
                updated_at: last.unwrap_or(created_at),
            });
            state.status.clone_from(&append.status);
            return;
        }
        // A status that stays is no update.
        if append.status.is_some() && state.status != append.status {
            state.status.clone_from(&append.status);
            // A word alone says nothing new, and changes no time: it is only kept right.
            match (&mut state.begun, last) {
                (Some(begun), Some(last)) => begun.updated_at = last,
                (Some(_), None) => {}
                (None, last) => {
                    let before = state.status_from.flatten();
                    state.status_from = Some(last.or(before));
                }
            }
        }
    }

    fn write_entries(&mut self, append: &'a Append, name: String) -> Result<(), AppendError> {
        let (Some(first), Some(last)) = (append.records.first(), append.records.last()) else {
            return Ok(());
        };
        let state = self.streams.entry(name.clone()).or_default();
        for record in &append.records {
            if let Some(key) = &record.key
                && !state.keys.insert(key.as_bytes().to_vec())
            {
                return Err(AppendError::Duplicate {
                    stream: append.stream.clone(),
                    key: key.clone(),
                });
            }
            self.entries.push((name.clone(), record));
        }
        state.head = Some(last.head());
        self.ranges.push((name, first.seq, last.seq));
        Ok(())
    }
}

fn failed(reason: String) -> AppendError {
    AppendError::Store(StoreError::Failed(reason))
}

fn run_of(stream: &StreamName) -> Result<&RunId, AppendError> {
    match stream {
        StreamName::Run(run) => Ok(run),
        StreamName::Plan(_) => Err(failed(format!(
            "{stream} has no lease: only runs are owned"
        ))),
    }
}
