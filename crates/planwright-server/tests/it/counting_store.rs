//! A store in memory that notes which task reads and writes which journal: background tasks of the
//! service do not count for a request.

use planwright_core::journal::{Record, StreamName};
use planwright_engine::memory::MemoryStore;
use planwright_engine::port::{
    Append, AppendError, BoxFuture, Journal, Leases, StoreError, StoreHealth,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
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
    inner: Arc<MemoryStore>,
    accesses: Mutex<Vec<Access>>,
    probes: AtomicUsize,
    /// The next append is made, and its caller is told that the store failed.
    hides_next: AtomicBool,
    /// The next append fails, and nothing is written.
    fails_next: AtomicBool,
}

impl CountingStore {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self {
            inner: Arc::new(inner),
            accesses: Mutex::default(),
            probes: AtomicUsize::default(),
            hides_next: AtomicBool::default(),
            fails_next: AtomicBool::default(),
        }
    }

    /// Makes every write fail with this error.
    pub(crate) fn fail_writes(&self, error: Option<StoreError>) {
        self.inner.fail_writes(error);
    }

    /// The requests that this store has seen.
    pub(crate) fn answers(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.inner)
    }

    /// Makes the next append durable and says that the store failed, as one does that dies before
    /// it can answer.
    pub(crate) fn hide_next_append(&self) {
        self.hides_next.store(true, Ordering::SeqCst);
    }

    /// Makes the next append fail for a reason that no answer to a caller names.
    pub(crate) fn fail_next_append(&self) {
        self.fails_next.store(true, Ordering::SeqCst);
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

    /// Counts the reads of a journal.
    pub(crate) fn reads_of(&self, read: &StreamName) -> usize {
        let accesses = self.accesses.lock().unwrap();
        let is_read = |access: &&Access| !access.is_write && access.stream == *read;
        accesses.iter().filter(is_read).count()
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

planwright_engine::forward_ports!(CountingStore: StreamIndex, Mailbox, Changes);

impl Journal for CountingStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        for append in &appends {
            self.note(&append.stream, true);
        }
        if self.fails_next.swap(false, Ordering::SeqCst) {
            let error = StoreError::Failed("it was not written".to_owned());
            return Box::pin(std::future::ready(Err(error.into())));
        }
        if !self.hides_next.swap(false, Ordering::SeqCst) {
            return self.inner.append(appends);
        }
        Box::pin(async {
            self.inner.append(appends).await?;
            Err(StoreError::Failed("the outcome is unknown".to_owned()).into())
        })
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

    planwright_engine::forward_methods!(feed, head);
}

impl Leases for CountingStore {
    planwright_engine::forward_methods!(acquire, renew, release, living_owner, is_dead, lease);
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
