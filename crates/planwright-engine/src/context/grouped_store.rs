//! The store of an engine, with the records of reads in groups.
//!
//! What a read changes is nothing, so nothing is lost with its record but the record. Appends that say
//! only that something was read are held in memory for at most [`LATENESS`], and written together, in
//! their order: before any other append, before a run or the order of all entries is read, and when
//! there are many. A reader in this process misses none; one in another process sees them a moment
//! later. Nothing else is ever held.

use crate::port::{
    AcquireError, Append, AppendError, BoxFuture, Changes, FeedOf, Journal, Lease, Leases, Mailbox,
    MailboxMessage, MessageId, OwnerId, Placed, Position, RequestClaim, Store, StoreError,
    StoreHealth, StreamCounts, StreamIndex, StreamInfo, StreamStatus,
};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// The longest time that a record of a read is in memory alone.
const LATENESS: Duration = Duration::from_millis(100);
/// The time until a store that could not be written is tried again.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// A group is written at once when it has so much: 64 reads, with what their sessions decided.
const GROUP: usize = 2 * 64;
/// What is held at most, also while the store cannot be written. Nothing is read then.
const MAX_HELD: usize = 8 * GROUP;
/// So many records are not made on the thread that serves clients, unless it waits for them.
const MANY: usize = 8;

/// The record of a read that has ended, as long as there was no time to make it.
pub(crate) trait LateRecord: Send + fmt::Debug {
    /// Makes it, and tells those who watch what was made.
    fn make(self: Box<Self>) -> Vec<Append>;
}

/// One of the things that are held.
#[derive(Debug)]
enum Late {
    Made(Box<Append>),
    Unmade(Box<dyn LateRecord>),
}

impl Late {
    fn make(self) -> Vec<Append> {
        match self {
            Self::Made(append) => vec![*append],
            Self::Unmade(record) => record.make(),
        }
    }
}

impl From<Append> for Late {
    fn from(append: Append) -> Self {
        Self::Made(Box::new(append))
    }
}

/// The store, and what has not been written to it yet.
#[derive(Debug)]
pub(crate) struct GroupedStore {
    inner: Arc<dyn Store>,
    held: Mutex<Held>,
    /// Held while a group is written: what comes after it waits.
    writing: tokio::sync::Mutex<()>,
    me: Weak<Self>,
}

#[derive(Debug, Default)]
struct Held {
    late: Vec<Late>,
    /// So many of them are not made.
    unmade: usize,
    /// A group is being made or written.
    is_writing: bool,
    /// A task will write the group.
    is_scheduled: bool,
    /// Why the last group could not be written.
    trouble: Option<String>,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.late.is_empty() && !self.is_writing
    }

    fn take(&mut self) -> Vec<Late> {
        self.is_writing = !self.late.is_empty();
        self.unmade = 0;
        std::mem::take(&mut self.late)
    }

    /// Takes back what comes before what is held.
    fn put_back(&mut self, late: impl IntoIterator<Item = Append>) {
        self.is_writing = false;
        self.late.splice(0..0, late.into_iter().map(Late::from));
    }
}

impl GroupedStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            inner,
            held: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            me: Weak::clone(me),
        })
    }

    /// Takes an append that says only that something was read, and has it written soon. Gives it back where
    /// there is no room for it, or while the store cannot be written.
    pub(crate) fn hold(&self, append: Append) -> Option<Append> {
        let mut held = self.held();
        if held.trouble.is_some() || held.late.len() >= MAX_HELD {
            return Some(append);
        }
        self.add(&mut held, append.into());
        None
    }

    /// Returns whether what a read adds is taken now.
    pub(crate) fn has_room(&self) -> bool {
        let held = self.held();
        held.trouble.is_none() && held.late.len() < MAX_HELD
    }

    /// Takes the first entries of a read that was begun while there was room.
    pub(crate) fn hold_begun(&self, append: Append) {
        self.add(&mut self.held(), append.into());
    }

    /// Takes the record of such a read once it has ended, to be made when there is time: soon, and before
    /// anything else is written or read.
    pub(crate) fn hold_unmade(&self, record: Box<dyn LateRecord>) {
        let mut held = self.held();
        held.unmade += 1;
        self.add(&mut held, Late::Unmade(record));
    }

    fn add(&self, held: &mut Held, late: Late) {
        held.late.push(late);
        if held.late.len() == GROUP {
            self.spawn_writer(Duration::ZERO);
        } else {
            self.schedule(held);
        }
    }

    /// Makes the records that are not made on another thread, if they are many: clients wait for this one.
    async fn make_apart(&self) {
        let _one_at_a_time = self.writing.lock().await;
        let late = {
            let mut held = self.held();
            if held.unmade < MANY {
                return;
            }
            held.take()
        };
        let making = tokio::task::spawn_blocking(|| {
            late.into_iter().flat_map(Late::make).collect::<Vec<_>>()
        });
        let made = making.await;
        let made = made.inspect_err(|error| tracing::error!(%error, "records of reads were lost"));
        self.held().put_back(made.unwrap_or_default());
    }

    fn schedule(&self, held: &mut Held) {
        if !std::mem::replace(&mut held.is_scheduled, true) {
            let pause = if held.trouble.is_some() {
                TROUBLE_PAUSE
            } else {
                LATENESS
            };
            self.spawn_writer(pause);
        }
    }

    fn spawn_writer(&self, pause: Duration) {
        // Without a runtime this process is ending, and nothing writes any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(write_later(Weak::clone(&self.me), pause));
        }
    }

    /// Returns why nothing may be read without a durable record now, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.held().trouble.clone()
    }

    /// Writes what is held.
    pub(crate) async fn flush(&self) -> Result<(), AppendError> {
        if self.held().is_empty() {
            return Ok(());
        }
        self.write_group(Vec::new()).await
    }

    /// Writes what is held, and these appends with it.
    async fn write_group(&self, with: Vec<Append>) -> Result<(), AppendError> {
        let _one_at_a_time = self.writing.lock().await;
        let mut group = self.take();
        if group.late.is_empty() {
            return self.append_alone(with).await;
        }
        let together = group.late.iter().chain(&with).cloned().collect();
        let Err(error) = self.inner.append(together).await else {
            group.finish();
            return Ok(());
        };
        if let AppendError::Store(failed) = &error
            && concerns_all(failed)
        {
            self.held().trouble = Some(failed.to_string());
            return Err(error);
        }
        // One of them was refused: a run has another owner by now, for example. The others count.
        for append in &group.late {
            if let Err(error) = self.inner.append(vec![append.clone()]).await {
                tracing::warn!(stream = %append.stream, %error, "the record of a read was refused");
            }
        }
        group.finish();
        self.append_alone(with).await
    }

    async fn append_alone(&self, appends: Vec<Append>) -> Result<(), AppendError> {
        if appends.is_empty() {
            return Ok(());
        }
        self.inner.append(appends).await
    }

    fn take(&self) -> Group<'_> {
        let late = self.held().take();
        let mut group = Group {
            store: self,
            late: Vec::with_capacity(late.len()),
        };
        for late in late {
            group.late.extend(late.make());
        }
        group
    }

    /// Writes what is held before a run is read. A store that cannot be written can still be read.
    async fn settle(&self) {
        if let Err(error) = self.flush().await {
            tracing::warn!(%error, "records of reads could not be written yet");
        }
    }

    async fn settle_run(&self, stream: &StreamName) {
        if matches!(stream, StreamName::Run(_)) {
            self.settle().await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends that are being written. Those that were not, because the store failed or the writer was
/// stopped, are held again. If they were all the same, the store refuses them the next time.
struct Group<'a> {
    store: &'a GroupedStore,
    late: Vec<Append>,
}

impl Group<'_> {
    fn finish(&mut self) {
        self.late.clear();
        self.store.held().trouble = None;
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        let mut held = self.store.held();
        held.put_back(self.late.drain(..));
        if !held.late.is_empty() {
            self.store.schedule(&mut held);
        }
    }
}

/// Returns whether the store can write nothing, as against one journal.
fn concerns_all(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Damaged { .. } | StoreError::Sealed { .. }
    )
}

/// Writes what the store holds after a while. What cannot be written has the next try scheduled.
async fn write_later(store: Weak<GroupedStore>, pause: Duration) {
    tokio::time::sleep(pause).await;
    let Some(store) = store.upgrade() else {
        return;
    };
    store.held().is_scheduled = false;
    store.make_apart().await;
    if let Err(error) = store.flush().await {
        tracing::warn!(%error, "records of reads wait for the store");
    }
}

impl Journal for GroupedStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        if self.held().is_empty() {
            return self.inner.append(appends);
        }
        Box::pin(self.write_group(appends))
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        if self.held().is_empty() {
            return self.inner.read(stream, after, limit);
        }
        Box::pin(async move {
            self.settle_run(stream).await;
            self.inner.read(stream, after, limit).await
        })
    }

    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>> {
        if self.held().is_empty() {
            return self.inner.feed(of, after, limit);
        }
        Box::pin(async move {
            self.settle().await;
            self.inner.feed(of, after, limit).await
        })
    }

    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>> {
        if self.held().is_empty() {
            return self.inner.head(stream);
        }
        Box::pin(async move {
            self.settle_run(stream).await;
            self.inner.head(stream).await
        })
    }
}

/// Where plans stand does not depend on what was read in them.
impl StreamIndex for GroupedStore {
    fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.plans()
    }

    fn plans_by_age<'a>(
        &'a self,
        after: Option<(Timestamp, &'a PlanId)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.plans_by_age(after, limit)
    }

    fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.runs(plan).await
        })
    }

    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.plans_in(statuses, until)
    }

    fn plans_with_runs(
        &self,
        status: CachedStatus,
    ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.plans_with_runs(status)
    }

    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let is_over = |status: &CachedStatus| {
            let status = status.run_status();
            status.is_none_or(|status| status.is_terminal())
        };
        // A read that is held asks nothing of a person and stands still for none.
        if !statuses.iter().any(is_over) {
            return self.inner.runs_in(statuses);
        }
        Box::pin(async move {
            self.settle().await;
            self.inner.runs_in(statuses).await
        })
    }

    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.counts().await
        })
    }

    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.correct_status(stream, status)
    }

    fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.inner.brought_bytes(by)
    }

    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
        if self.held().is_empty() {
            return self.inner.info(stream);
        }
        Box::pin(async move {
            self.settle_run(stream).await;
            self.inner.info(stream).await
        })
    }
}

impl Leases for GroupedStore {
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.acquire(run, owner, ttl).await
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        if self.held().is_empty() {
            return self.inner.renew(lease, ttl);
        }
        Box::pin(async move {
            // The lease may be one of those that are taken with what is held.
            self.flush().await?;
            self.inner.renew(lease, ttl).await
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.release(lease).await
        })
    }

    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.living_owner(run).await
        })
    }

    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.is_dead(owner)
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async move {
            self.settle().await;
            self.inner.lease(run).await
        })
    }
}

impl Mailbox for GroupedStore {
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
        self.inner.send(run, body)
    }

    fn send_claimed<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
        claim: RequestClaim,
    ) -> BoxFuture<'a, Result<MessageId, AppendError>> {
        self.inner.send_claimed(run, body, claim)
    }

    fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>> {
        self.inner.mail()
    }

    fn messages<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>> {
        self.inner.messages(run)
    }

    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>> {
        self.inner.answer(message)
    }
}

impl Changes for GroupedStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.inner.mail_changes()
    }

    /// What is held is about runs.
    fn plan_changes(&self) -> Option<u64> {
        self.inner.plan_changes()
    }
}

impl StoreHealth for GroupedStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.probe()
    }

    fn adopted_at(&self) -> Option<Timestamp> {
        self.inner.adopted_at()
    }

    fn failure(&self) -> watch::Receiver<Option<String>> {
        self.inner.failure()
    }
}

#[cfg(test)]
mod laws {
    use super::*;
    use crate::memory::MemoryStore;

    /// What is not held is the store's own.
    fn make() -> (Arc<dyn Store>, ()) {
        (GroupedStore::new(Arc::new(MemoryStore::new())), ())
    }

    crate::store_laws!(make);
}
