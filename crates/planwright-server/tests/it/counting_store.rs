//! A store in memory that notes which task reads and writes which journal: background tasks of the
//! service do not count for a request.

use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::memory::MemoryStore;
use planwright_engine::port::{
    AcquireError, Append, AppendError, BoxFuture, Changes, FeedOf, Journal, Lease, Leases, Mailbox,
    MailboxMessage, MessageId, OwnerId, Placed, Position, StoreError, StoreHealth, StreamCounts,
    StreamIndex, StreamInfo, StreamStatus,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task;

/// One use of a journal.
#[derive(Debug)]
struct Access {
    task: Option<task::Id>,
    stream: StreamName,
    is_write: bool,
}

#[derive(Debug)]
pub(crate) struct CountingStore {
    inner: MemoryStore,
    accesses: Mutex<Vec<Access>>,
    probes: AtomicUsize,
}

impl CountingStore {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            accesses: Mutex::default(),
            probes: AtomicUsize::default(),
        }
    }

    /// Makes every write fail with this error.
    pub(crate) fn fail_writes(&self, error: Option<StoreError>) {
        self.inner.fail_writes(error);
    }

    /// How often it was asked to write something that means nothing.
    pub(crate) fn probes(&self) -> usize {
        self.probes.load(Ordering::SeqCst)
    }

    fn note(&self, stream: &StreamName, is_write: bool) {
        self.accesses.lock().unwrap().push(Access {
            task: task::try_id(),
            stream: stream.clone(),
            is_write,
        });
    }

    /// Counts the reads of a journal by the task that wrote last to `written`.
    pub(crate) fn reads_by_last_writer(&self, written: &StreamName, read: &StreamName) -> usize {
        let accesses = self.accesses.lock().unwrap();
        let write = accesses
            .iter()
            .rfind(|access| access.is_write && access.stream == *written)
            .unwrap();
        assert!(write.task.is_some(), "a request is served by a task");
        accesses
            .iter()
            .filter(|access| {
                !access.is_write && access.task == write.task && access.stream == *read
            })
            .count()
    }
}

impl Journal for CountingStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        for append in &appends {
            self.note(&append.stream, true);
        }
        self.inner.append(appends)
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.note(stream, false);
        self.inner.read(stream, after, limit)
    }

    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>> {
        self.inner.feed(of, after, limit)
    }

    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>> {
        self.inner.head(stream)
    }
}

impl StreamIndex for CountingStore {
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
        self.inner.runs(plan)
    }

    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.plans_in(statuses, until)
    }

    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        self.inner.runs_in(statuses)
    }

    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
        self.inner.counts()
    }

    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.correct_status(stream, status)
    }

    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
        self.inner.info(stream)
    }
}

impl Leases for CountingStore {
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>> {
        self.inner.acquire(run, owner, ttl)
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        self.inner.renew(lease, ttl)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.release(lease)
    }

    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>> {
        self.inner.living_owner(run)
    }

    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.is_dead(owner)
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        self.inner.lease(run)
    }
}

impl Mailbox for CountingStore {
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
        self.inner.send(run, body)
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

impl Changes for CountingStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.inner.mail_changes()
    }
}

impl StoreHealth for CountingStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.probes.fetch_add(1, Ordering::SeqCst);
        self.inner.probe()
    }

    fn failure(&self) -> watch::Receiver<Option<String>> {
        self.inner.failure()
    }
}
