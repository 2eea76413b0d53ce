//! The only code that turns events into records.
//!
//! A [`JournalWriter`] decides a command, masks the text that came from outside, applies the
//! events to the state they are about, encodes them, and builds the [`Append`] that makes them
//! durable: records, cached status, lease rule and answers to other processes. It does not touch
//! the store. Secrets it should look for have to be known before: see
//! [`learn_secrets`](crate::redaction::learning::learn_secrets).

use crate::context::current_claim;
use crate::port::{Append, LeaseRule, MessageId, RequestClaim, StreamStatus};
use crate::redaction::entry_text::EntryText;
use crate::redaction::known_secrets::Redaction;
use planwright_core::id::PlanId;
use planwright_core::journal::{Cause, Entry, Head, Journaled, Record, StreamName, encode};
use planwright_core::review::{self, Review, ReviewEvent};
use planwright_core::run::{self, Corrupt, Run, RunEvent};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::time::Duration;

/// A clock that is behind by this much was set, or runs on another machine.
const CLOCK_WENT_BACK: Duration = Duration::from_secs(1);

/// What a journal tells the life of: a plan's review or a run.
pub(crate) trait JournalState {
    type Event: Journaled + EntryText;
    type Command;
    type Refusal;

    fn decide_command(
        &self,
        command: &Self::Command,
        now: Timestamp,
    ) -> Result<Vec<Self::Event>, Self::Refusal>;

    fn apply_entry(&mut self, entry: &Entry<Self::Event>) -> Result<(), Corrupt>;

    fn plan_id(&self) -> &PlanId;

    /// Returns when the last entry was written.
    fn updated_at(&self) -> Timestamp;

    /// Returns the status that is cached beside the journal.
    fn cached_status(&self) -> CachedStatus;

    /// The short text that lists show beside that word.
    fn cached_label(&self) -> &str;
}

impl JournalState for Review {
    type Event = ReviewEvent;
    type Command = review::ReviewCommand;
    type Refusal = review::ReviewRefusal;

    fn decide_command(
        &self,
        command: &review::ReviewCommand,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, review::ReviewRefusal> {
        self.decide(command, now)
    }

    fn apply_entry(&mut self, entry: &Entry<ReviewEvent>) -> Result<(), Corrupt> {
        self.apply(entry)
    }

    fn plan_id(&self) -> &PlanId {
        self.id()
    }

    fn updated_at(&self) -> Timestamp {
        Self::updated_at(self)
    }

    fn cached_status(&self) -> CachedStatus {
        Self::cached_status(self)
    }

    fn cached_label(&self) -> &str {
        self.current().document.title.as_deref().unwrap_or_default()
    }
}

impl JournalState for Run {
    type Event = RunEvent;
    type Command = run::Command;
    type Refusal = run::Refusal;

    fn decide_command(
        &self,
        command: &run::Command,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, run::Refusal> {
        self.decide(command, now)
    }

    fn apply_entry(&mut self, entry: &Entry<RunEvent>) -> Result<(), Corrupt> {
        self.apply(entry)
    }

    fn plan_id(&self) -> &PlanId {
        self.plan().id()
    }

    fn updated_at(&self) -> Timestamp {
        Self::updated_at(self)
    }

    fn cached_status(&self) -> CachedStatus {
        self.status().into()
    }

    fn cached_label(&self) -> &str {
        ""
    }
}

/// Why a command became no entries.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError<R> {
    #[error("the command was refused")]
    Refused(R),
    #[error(transparent)]
    Corrupt(Corrupt),
}

/// Queues entries of one journal until they are appended.
#[derive(Debug, Clone)]
pub(crate) struct JournalWriter<E> {
    redaction: Redaction,
    stream: StreamName,
    epoch: u64,
    /// Where the stream must end for the queued entries to follow.
    expected: Head,
    /// They become records when they are taken.
    entries: Vec<Entry<E>>,
    answers: Vec<(MessageId, Result<(), String>)>,
    requests: Vec<RequestClaim>,
    /// What the store caches about the stream, if that is known.
    cached: Option<(CachedStatus, String)>,
}

impl<E: Journaled + EntryText> JournalWriter<E> {
    /// Writes to a stream that ends at `head`. The next append sets the cached status.
    pub(crate) fn new(redaction: &Redaction, stream: StreamName, head: Head, epoch: u64) -> Self {
        Self {
            redaction: redaction.clone(),
            stream,
            epoch,
            expected: head,
            entries: Vec::new(),
            answers: Vec::new(),
            requests: Vec::new(),
            cached: None,
        }
    }

    /// Leaves the cached status alone until the state has another one than now: that of `state` was
    /// written with the last entry.
    #[must_use]
    pub(crate) fn knowing_status_of<S: JournalState<Event = E>>(mut self, state: &S) -> Self {
        self.cached = Some((state.cached_status(), state.cached_label().to_owned()));
        self
    }

    /// Decides `command` and queues what follows. Returns the entries, which `state` has applied.
    pub(crate) fn write<S: JournalState<Event = E>>(
        &mut self,
        state: &mut S,
        command: &S::Command,
        cause: Cause,
        now: Timestamp,
    ) -> Result<&[Entry<E>], WriteError<S::Refusal>> {
        // Decided and written at the same instant, also where the clock went back.
        let now = not_before(state, now);
        let events = state
            .decide_command(command, now)
            .map_err(WriteError::Refused)?;
        self.record(state, events, cause, now)
            .map_err(WriteError::Corrupt)
    }

    /// Queues events that were decided at `at`. They are dated then: an approval that was valid
    /// when it was decided on must not have expired by the time it is written down.
    pub(crate) fn record<S: JournalState<Event = E>>(
        &mut self,
        state: &mut S,
        events: Vec<E>,
        cause: Cause,
        at: Timestamp,
    ) -> Result<&[Entry<E>], Corrupt> {
        let at = not_before(state, at);
        let first = self.entries.len();
        for event in events {
            let entry = self.make_entry(event, cause, at);
            state.apply_entry(&entry)?;
            self.entries.push(entry);
        }
        Ok(&self.entries[first..])
    }

    /// Queues the first entry of a stream; `open` makes the state it begins.
    pub(crate) fn open<S: JournalState<Event = E>>(
        &mut self,
        first: E,
        at: Timestamp,
        open: impl FnOnce(&Entry<E>) -> Result<S, Corrupt>,
    ) -> Result<S, Corrupt> {
        let entry = self.make_entry(first, Cause::Command, at);
        let state = open(&entry)?;
        self.entries.push(entry);
        Ok(state)
    }

    fn make_entry(&self, mut event: E, cause: Cause, at: Timestamp) -> Entry<E> {
        let redactor = self.redaction.redactor();
        // Masked before it is applied, so that the state in memory is what a later fold gives.
        if !redactor.is_empty() {
            event.mask(&redactor);
        }
        Entry {
            seq: self.expected.seq + self.entries.len() as u64 + 1,
            at,
            epoch: self.epoch,
            cause,
            event,
        }
    }

    /// Makes records of the queued entries.
    fn encode(&mut self) -> Vec<Record> {
        let mut head = self.expected;
        let records = self.entries.iter().map(|entry| {
            let Entry {
                at, cause, event, ..
            } = entry;
            let record = encode(head, &self.stream, *at, self.epoch, *cause, event);
            head = record.head();
            record
        });
        let records = records.collect();
        self.expected = head;
        records
    }

    /// Answers a message of another process with the next append.
    pub(crate) fn answer(&mut self, message: MessageId, verdict: Result<(), String>) {
        self.answers.push((message, verdict));
    }

    /// Says with the next append that it carries out this request.
    pub(crate) fn carry_out(&mut self, request: RequestClaim) {
        self.requests.push(request);
    }

    /// Entries that are queued.
    pub(crate) fn entries(&self) -> &[Entry<E>] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.answers.is_empty()
    }

    /// Takes everything queued as one append, and the entries that it makes durable.
    pub(crate) fn take_append<S: JournalState<Event = E>>(
        &mut self,
        state: &S,
        lease: LeaseRule,
    ) -> (Append, Vec<Entry<E>>) {
        self.take_labelled(state, state.cached_label(), lease)
    }

    /// As [`Self::take_append`], in any task: the request that this one works on is another matter.
    pub(crate) fn take_apart<S: JournalState<Event = E>>(
        &mut self,
        state: &S,
        lease: LeaseRule,
    ) -> (Append, Vec<Entry<E>>) {
        let status = self.changed_status(state, state.cached_label());
        let requests = std::mem::take(&mut self.requests);
        self.take(lease, status, requests)
    }

    /// As [`Self::take_append`], with another text for lists than the state's own.
    pub(crate) fn take_labelled<S: JournalState<Event = E>>(
        &mut self,
        state: &S,
        label: &str,
        lease: LeaseRule,
    ) -> (Append, Vec<Entry<E>>) {
        let status = self.changed_status(state, label);
        let requests = self.take_requests();
        self.take(lease, status, requests)
    }

    /// Takes the queued answers alone. The journal stays as it is.
    pub(crate) fn take_answers(&mut self, lease: LeaseRule) -> Append {
        let requests = self.take_requests();
        let (append, _) = self.take(lease, None, requests);
        append
    }

    fn take(
        &mut self,
        lease: LeaseRule,
        status: Option<StreamStatus>,
        requests: Vec<RequestClaim>,
    ) -> (Append, Vec<Entry<E>>) {
        let expected = self.expected;
        let append = Append {
            stream: self.stream.clone(),
            expected,
            records: self.encode(),
            lease,
            status,
            answers: std::mem::take(&mut self.answers),
            requests,
            brought: Vec::new(),
            offers: Vec::new(),
        };
        (append, std::mem::take(&mut self.entries))
    }

    /// Takes the claims of the queued commands, and that of the request this task works on.
    fn take_requests(&mut self) -> Vec<RequestClaim> {
        let mut requests = std::mem::take(&mut self.requests);
        if let Some(claim) = current_claim()
            && !requests.contains(&claim)
        {
            requests.push(claim);
        }
        requests
    }

    fn changed_status<S: JournalState>(&mut self, state: &S, label: &str) -> Option<StreamStatus> {
        let status = state.cached_status();
        if let Some((cached_status, cached_label)) = &self.cached
            && *cached_status == status
            && cached_label == label
        {
            return None;
        }
        self.cached = Some((status.clone(), label.to_owned()));
        Some(StreamStatus {
            plan: state.plan_id().clone(),
            status,
            label: label.to_owned(),
        })
    }
}

/// The time of the next entry: times in one journal never run backwards, also where the clock of
/// the machine did.
pub(crate) fn not_before<S: JournalState>(state: &S, now: Timestamp) -> Timestamp {
    let last = state.updated_at();
    let behind = last.since(now);
    if behind >= CLOCK_WENT_BACK {
        tracing::warn!(
            plan = %state.plan_id(),
            ?behind,
            "the clock of this machine is behind the journal: entries continue from the time of the last one"
        );
    }
    now.max(last)
}
