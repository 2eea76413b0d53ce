//! A journal store in memory.

use super::SystemClock;
use super::answers::RequestRow;
use super::transaction::Transaction;
use crate::port::{
    AcquireError, Append, AppendError, Brought, Clock, FeedOf, Lease, MAX_PAGE_BYTES, MessageId,
    OwnerId, Placed, Position, RequestClaim, StoreError, StreamCounts, StreamInfo, StreamStatus,
};
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// Keeps journals until it is dropped. Every call is done before its future is first polled.
#[derive(Debug)]
pub struct MemoryStore {
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<State>,
    pub(super) changes: watch::Sender<u64>,
    trouble: Mutex<Option<StoreError>>,
    pub(super) failure: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) streams: BTreeMap<StreamName, Stream>,
    /// Every record ever written: its stream and its number there.
    order: Vec<(StreamName, usize)>,
    pub(super) leases: BTreeMap<RunId, LeaseRow>,
    pub(super) messages: BTreeMap<MessageId, MessageRow>,
    pub(super) requests: BTreeMap<Digest, RequestRow>,
    /// By principal, as text.
    brought: BTreeMap<String, u64>,
    /// Counts what may have written the journal of a plan.
    pub(super) plan_changes: u64,
    dead: BTreeSet<OwnerId>,
    /// Owners whose processes are known to be alive.
    alive: BTreeSet<OwnerId>,
    damaged: BTreeMap<StreamName, String>,
}

impl State {
    pub(super) fn check_undamaged(&self, stream: &StreamName) -> Result<(), StoreError> {
        match self.damaged.get(stream) {
            Some(reason) => Err(StoreError::Damaged {
                stream: stream.clone(),
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The row of a lease that no other owner may take over yet.
    pub(super) fn live_lease(&self, run: &RunId, now: Timestamp) -> Option<Lease> {
        let row = self.leases.get(run)?;
        let owner = row
            .owner
            .as_ref()
            .filter(|owner| !self.dead.contains(*owner))?;
        (row.expires_at > now).then(|| row.lease(run, owner))
    }

    pub(super) fn living_owner(&self, run: &RunId) -> Option<OwnerId> {
        let owner = self.leases.get(run)?.owner.as_ref()?;
        self.alive.contains(owner).then(|| owner.clone())
    }

    pub(super) fn is_dead(&self, owner: &OwnerId) -> bool {
        self.dead.contains(owner)
    }

    pub(super) fn info(&self, name: &StreamName) -> Option<StreamInfo> {
        let stream = self.streams.get(name)?;
        Some(StreamInfo {
            stream: name.clone(),
            status: stream.status.clone()?,
            created_at: stream.created_at,
            updated_at: stream.updated_at,
        })
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    /// Its place in the order of creation, which settles ties of time.
    created: usize,
    records: Vec<Record>,
    pub(super) keys: BTreeSet<String>,
    status: Option<StreamStatus>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Stream {
    pub(super) fn head(&self) -> Head {
        self.records.last().map_or(Head::EMPTY, Record::head)
    }
}

/// A released lease keeps its epoch and has no owner.
#[derive(Debug, Clone)]
pub(super) struct LeaseRow {
    pub(super) epoch: u64,
    pub(super) owner: Option<OwnerId>,
    pub(super) expires_at: Timestamp,
}

impl LeaseRow {
    fn lease(&self, run: &RunId, owner: &OwnerId) -> Lease {
        Lease {
            run: run.clone(),
            owner: owner.clone(),
            epoch: self.epoch,
            expires_at: self.expires_at,
        }
    }
}

#[derive(Debug)]
pub(super) struct MessageRow {
    pub(super) run: RunId,
    pub(super) body: Vec<u8>,
    pub(super) answer: Option<Result<(), String>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Makes an empty store that uses the time of the system.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A store whose leases run out by `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            trouble: Mutex::default(),
            failure: watch::Sender::new(None),
        }
    }

    /// Makes every write fail with this error, as if the disk were full or broken; `None` makes
    /// them work again.
    pub fn fail_writes(&self, error: Option<StoreError>) {
        if let Some(StoreError::Lost(reason)) = &error {
            self.failure.send_replace(Some(reason.clone()));
        }
        *self
            .trouble
            .lock()
            .expect("nothing panics while it holds the trouble") = error;
    }

    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        let trouble = self
            .trouble
            .lock()
            .expect("nothing panics while it holds the trouble");
        trouble.clone().map_or(Ok(()), Err)
    }

    /// Makes an owner dead, as if its process had been killed: its leases can be taken over at
    /// once.
    pub fn kill_owner(&self, owner: &OwnerId) {
        let mut state = self.state();
        state.alive.remove(owner);
        state.dead.insert(owner.clone());
        drop(state);
        self.changed();
    }

    /// Shows that the process of an owner is alive, as one does that holds a lock.
    pub fn show_alive(&self, owner: &OwnerId) {
        self.state().alive.insert(owner.clone());
    }

    /// Makes a stream unreadable, as if its tail had been lost.
    pub fn damage(&self, stream: &StreamName, reason: &str) {
        self.state()
            .damaged
            .insert(stream.clone(), reason.to_owned());
        self.changed();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds the state")
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(super) fn append_now(&self, appends: Vec<Append>) -> Result<(), AppendError> {
        let now = self.clock.now();
        let mut state = self.state();
        let leases = Transaction::check(&state, now, &appends)?;
        state.leases.extend(leases);
        let is_of_plan = |append: &Append| matches!(append.stream, StreamName::Plan(_));
        state.plan_changes += u64::from(appends.iter().any(is_of_plan));
        for append in appends {
            write(&mut state, append, now);
        }
        drop(state);
        self.changed();
        Ok(())
    }

    pub(super) fn brought_now(&self, by: &Principal) -> u64 {
        let brought = self.state().brought.get(&by.to_string()).copied();
        brought.unwrap_or_default()
    }

    pub(super) fn read_now(
        &self,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let state = self.state();
        state.check_undamaged(stream)?;
        let records = state
            .streams
            .get(stream)
            .map_or(&[][..], |stream| &stream.records);
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut page = Vec::new();
        for record in records.iter().skip(after).take(limit) {
            bytes += record.body.len();
            page.push(record.clone());
            if bytes >= MAX_PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    pub(super) fn feed_now(&self, of: &FeedOf, after: Position, limit: usize) -> Vec<Placed> {
        let state = self.state();
        let after = usize::try_from(after.0).unwrap_or(usize::MAX);
        let wanted = |name: &StreamName| match (of, name) {
            (FeedOf::All, _) => true,
            (FeedOf::Plan(plan), StreamName::Plan(id)) => plan == id,
            (FeedOf::Plan(plan), StreamName::Run(_)) => state
                .info(name)
                .is_some_and(|info| info.status.plan == *plan),
        };
        let placed = (1..)
            .zip(&state.order)
            .skip(after)
            .filter(|(_, (name, _))| wanted(name));
        let placed = placed.filter_map(|(position, (name, index))| {
            let record = state.streams.get(name)?.records.get(*index)?.clone();
            Some(Placed {
                position: Position(position),
                stream: name.clone(),
                record,
            })
        });
        let mut bytes = 0;
        let mut page = Vec::new();
        for placed in placed.take(limit) {
            bytes += placed.record.body.len();
            page.push(placed);
            if bytes >= MAX_PAGE_BYTES {
                break;
            }
        }
        page
    }

    pub(super) fn correct_status_now(
        &self,
        stream: &StreamName,
        status: StreamStatus,
    ) -> Result<(), StoreError> {
        if let Some(stream) = self.state().streams.get_mut(stream) {
            stream.status = Some(status);
        }
        Ok(())
    }

    pub(super) fn acquire_now(
        &self,
        run: &RunId,
        owner: &OwnerId,
        ttl: Duration,
    ) -> Result<Lease, AcquireError> {
        let now = self.clock.now();
        let mut state = self.state();
        let stream = StreamName::Run(run.clone());
        state.check_undamaged(&stream)?;
        if !state.streams.contains_key(&stream) && !state.leases.contains_key(run) {
            return Err(AcquireError::NoSuchRun(run.clone()));
        }
        if let Some(Lease {
            owner, expires_at, ..
        }) = state.live_lease(run, now)
        {
            return Err(AcquireError::Held {
                run: run.clone(),
                owner,
                expires_at,
            });
        }
        let epoch = state.leases.get(run).map_or(0, |row| row.epoch) + 1;
        let row = LeaseRow {
            epoch,
            owner: Some(owner.clone()),
            expires_at: now.plus(ttl),
        };
        let lease = row.lease(run, owner);
        state.leases.insert(run.clone(), row);
        drop(state);
        self.changed();
        Ok(lease)
    }

    pub(super) fn renew_now(&self, lease: &Lease, ttl: Duration) -> Result<Lease, AppendError> {
        let expires_at = self.clock.now().plus(ttl);
        let mut state = self.state();
        let row = state.leases.get_mut(&lease.run);
        let found = row.as_ref().map_or(0, |row| row.epoch);
        match row.filter(|row| row.epoch == lease.epoch && row.owner.as_ref() == Some(&lease.owner))
        {
            Some(row) => {
                row.expires_at = expires_at;
                Ok(Lease {
                    expires_at,
                    ..lease.clone()
                })
            }
            None => Err(AppendError::Fenced {
                run: lease.run.clone(),
                ours: lease.epoch,
                found,
            }),
        }
    }

    pub(super) fn release_now(&self, lease: &Lease) {
        if let Some(row) = self.state().leases.get_mut(&lease.run)
            && row.epoch == lease.epoch
            && row.owner.as_ref() == Some(&lease.owner)
        {
            row.owner = None;
        }
        self.changed();
    }

    pub(super) fn send_now(&self, run: &RunId, body: Vec<u8>) -> MessageId {
        let mut state = self.state();
        let id = MessageId(state.messages.keys().next_back().map_or(0, |id| id.0) + 1);
        state.messages.insert(
            id,
            MessageRow {
                run: run.clone(),
                body,
                answer: None,
            },
        );
        drop(state);
        self.changed();
        id
    }

    pub(super) fn send_claimed_now(
        &self,
        run: &RunId,
        body: Vec<u8>,
        claim: &RequestClaim,
    ) -> Result<MessageId, AppendError> {
        let mut state = self.state();
        state.check_claimed(claim)?;
        state.note_change(claim, &StreamName::Run(run.clone()));
        drop(state);
        Ok(self.send_now(run, body))
    }

    pub(super) fn plans_now(&self, wanted: impl Fn(&StreamInfo) -> bool) -> Vec<StreamInfo> {
        let state = self.state();
        let plans = state
            .streams
            .iter()
            .filter(|(name, _)| matches!(name, StreamName::Plan(_)));
        let plans = plans.filter_map(|(name, stream)| Some((stream.created, state.info(name)?)));
        let mut plans: Vec<_> = plans.filter(|(_, info)| wanted(info)).collect();
        plans.sort_by_key(|(created, info)| std::cmp::Reverse((info.updated_at, *created)));
        plans.into_iter().map(|(_, info)| info).collect()
    }

    pub(super) fn runs_now(&self, wanted: impl Fn(&StreamInfo) -> bool) -> Vec<StreamInfo> {
        let state = self.state();
        let runs = state
            .streams
            .iter()
            .filter(|(name, _)| matches!(name, StreamName::Run(_)));
        let runs = runs.filter_map(|(name, stream)| Some((stream.created, state.info(name)?)));
        let mut runs: Vec<_> = runs.filter(|(_, info)| wanted(info)).collect();
        runs.sort_by_key(|(created, _)| *created);
        runs.into_iter().map(|(_, info)| info).collect()
    }

    pub(super) fn counts_now(&self) -> StreamCounts {
        let mut counts = StreamCounts::default();
        for (name, stream) in &self.state().streams {
            let Some(StreamStatus { status, .. }) = &stream.status else {
                continue;
            };
            let by_status = match name {
                StreamName::Plan(_) => &mut counts.plans,
                StreamName::Run(_) => &mut counts.runs,
            };
            *by_status.entry(status.clone()).or_default() += 1;
        }
        counts
    }
}

/// Writes an append that was checked.
fn write(state: &mut State, append: Append, now: Timestamp) {
    for claim in &append.requests {
        state.note_change(claim, &append.stream);
    }
    for Brought { by, bytes } in &append.brought {
        *state.brought.entry(by.to_string()).or_default() += bytes;
    }
    for (id, answer) in append.answers {
        state
            .messages
            .get_mut(&id)
            .expect("the message was found by the check")
            .answer = Some(answer);
    }
    if append.records.is_empty() && append.status.is_none() {
        return;
    }
    let created = state.streams.len();
    // Times in lists come from the journal where there is an entry, so that they can be rebuilt
    // from it.
    let name = append.stream;
    let stream = state.streams.entry(name.clone()).or_insert_with(|| {
        let created_at = append.records.first().map_or(now, |record| record.at);
        Stream {
            created,
            records: Vec::new(),
            keys: BTreeSet::new(),
            status: None,
            created_at,
            updated_at: created_at,
        }
    });
    if append.status.is_some() && append.status != stream.status {
        // A word alone says nothing new: it is only kept right.
        stream.updated_at = append
            .records
            .last()
            .map_or(stream.updated_at, |record| record.at);
        stream.status = append.status;
    }
    stream.keys.extend(
        append
            .records
            .iter()
            .filter_map(|record| record.key.clone()),
    );
    let before = stream.records.len();
    stream.records.extend(append.records);
    state
        .order
        .extend((before..stream.records.len()).map(|index| (name.clone(), index)));
}

#[cfg(test)]
mod laws {
    use super::*;
    use crate::port::Store;

    fn make() -> (Arc<dyn Store>, ()) {
        (Arc::new(MemoryStore::new()), ())
    }

    crate::store_laws!(make);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ManualClock;
    use crate::port::{Journal as _, LeaseRule, Leases as _};

    const TTL: Duration = Duration::from_secs(30);

    async fn open(store: &MemoryStore, run: &RunId, owner: &OwnerId) {
        let append = Append {
            stream: StreamName::Run(run.clone()),
            expected: Head::EMPTY,
            records: Vec::new(),
            lease: LeaseRule::Open {
                owner: owner.clone(),
                ttl: TTL,
            },
            status: None,
            answers: Vec::new(),
            requests: Vec::new(),
            brought: Vec::new(),
            offers: Vec::new(),
        };
        store.append(vec![append]).await.unwrap();
    }

    #[tokio::test]
    async fn a_lease_runs_out_by_the_clock_it_was_given() {
        let clock = ManualClock::at(Timestamp::from_millis(0));
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        let run = RunId::mint(1);
        let one = OwnerId("one".to_owned());
        let two = OwnerId("two".to_owned());
        open(&store, &run, &one).await;
        clock.advance(TTL - Duration::from_millis(1));
        assert!(matches!(
            store.acquire(&run, &two, TTL).await,
            Err(AcquireError::Held { .. })
        ));
        clock.advance(Duration::from_millis(1));
        assert_eq!(store.acquire(&run, &two, TTL).await.unwrap().epoch, 2);
    }

    #[tokio::test]
    async fn the_run_of_a_killed_owner_is_taken_over_at_once() {
        let store = MemoryStore::new();
        let run = RunId::mint(1);
        let one = OwnerId("one".to_owned());
        let two = OwnerId("two".to_owned());
        open(&store, &run, &one).await;
        store.kill_owner(&one);
        assert_eq!(store.lease(&run).await.unwrap(), None);
        assert_eq!(store.acquire(&run, &two, TTL).await.unwrap().epoch, 2);
    }

    #[tokio::test]
    async fn a_damaged_stream_is_refused_and_others_are_not() {
        let store = MemoryStore::new();
        let run = RunId::mint(1);
        let other = RunId::mint(2);
        store.damage(&StreamName::Run(run.clone()), "its tail is lost");
        assert!(matches!(
            store.head(&StreamName::Run(run)).await,
            Err(StoreError::Damaged { .. })
        ));
        assert!(store.head(&StreamName::Run(other)).await.is_ok());
    }
}
