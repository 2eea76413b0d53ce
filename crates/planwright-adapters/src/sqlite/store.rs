//! The store as the engine sees it: writes go to the writer, reads to a connection of their own.

use super::anchor::Anchor;
use super::changes::{ChangeWatch, Source};
use super::fault::{Stop, is_io_failure};
use super::fence::{Fence, FenceWatch, PanicGuard};
use super::heads::{Heads, Share};
use super::identity::{self, Belonging, ForeignStore};
use super::open::{self, OpenStoreError, Options};
use super::probe;
use super::reader::Reader;
use super::transaction;
use super::writer::{CertainCount, Request, Writer};
use crate::vault::Cipher;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    AcquireError, Append, AppendError, BoxFuture, Changes, FeedOf, Journal, Lease, Leases, Mailbox,
    MailboxMessage, MessageId, OwnerId, Placed, Position, RequestClaim, StoreError, StoreHealth,
    StreamCounts, StreamIndex, StreamInfo, StreamStatus,
};
use rusqlite::Connection;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot, watch};

/// The time a caller that waits for a commit alone stays awake: a little longer than a fast disk
/// takes.
const WAKEFUL: Duration = Duration::from_micros(150);

/// A journal in an SQLite file. Several stores, also in several processes, may be open on one file.
///
/// Its futures need a Tokio runtime. Dropping it waits for the writes that are queued.
pub struct SqliteStore {
    options: Arc<Options>,
    reader: Arc<Reader>,
    cipher: Arc<Cipher>,
    belonging: Arc<Belonging>,
    changes: ChangeWatch,
    mail: ChangeWatch,
    fence: Arc<Fence>,
    fence_watch: FenceWatch,
    /// `None` only while the store is being dropped.
    queue: Option<mpsc::Sender<Request>>,
    waiting: AtomicUsize,
    writer: Arc<Mutex<Writer>>,
    certain_count: Arc<CertainCount>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.options.path)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in `path`, creating it if there is none.
    pub fn open(path: &Path) -> Result<Self, OpenStoreError> {
        Self::open_with(Options::new(path))
    }

    pub fn open_with(options: Options) -> Result<Self, OpenStoreError> {
        // First of all the lock: a process that replaces the store must not do it between two of
        // our looks.
        let (heads, promises) = open_heads(&options)?;
        open::refuse_missing(&options, &promises)?;
        let (mut connection, cipher) =
            open::writer(&options).map_err(|error| name_cause(&options, error))?;
        let belonging = Arc::new(identity::claim(&mut connection, &options)?);
        let options = Arc::new(Options {
            passphrase: None,
            ..options
        });
        let cipher = Arc::new(cipher);
        let anchor = Arc::new(Anchor::new(promises, &connection)?);
        let count = Arc::new(watch::Sender::new(0));
        let (queue, requests) = mpsc::channel(options.queue);
        let changes = ChangeWatch::new(Arc::clone(&count), Source::Heads(heads.seen()));
        let mail = ChangeWatch::new(Arc::new(watch::Sender::new(0)), Source::Mail);
        let fence = Arc::new(Fence::new(&options));
        let writer = Writer::new(
            (connection, Arc::clone(&cipher)),
            (Arc::clone(&options), Arc::clone(&fence)),
            heads,
            (Arc::clone(&anchor), Arc::clone(&belonging)),
            count,
        );
        let certain_count = writer.certain_count();
        let writer = Arc::new(Mutex::new(writer));
        let thread = std::thread::Builder::new().name("planwright-writer".to_owned());
        let served = Arc::clone(&writer);
        let guard = PanicGuard(Arc::clone(&fence));
        let thread = thread
            .spawn(move || {
                let _guard = guard;
                Writer::serve_queue(&served, requests);
            })
            .map_err(OpenStoreError::Thread)?;
        Ok(Self {
            reader: Arc::new(Reader::new(
                Arc::clone(&options),
                (anchor, Arc::clone(&belonging)),
                Arc::clone(&cipher),
            )),
            cipher,
            belonging,
            options,
            changes,
            mail,
            fence,
            fence_watch: FenceWatch::default(),
            queue: Some(queue),
            waiting: AtomicUsize::new(0),
            writer,
            certain_count,
            thread: Some(thread),
        })
    }

    /// Returns why the store can only be read, if that is so: it is not its opener's.
    pub fn foreign(&self) -> Option<&ForeignStore> {
        self.belonging.foreign()
    }

    pub(super) fn belonging(&self) -> &Arc<Belonging> {
        &self.belonging
    }

    pub fn path(&self) -> &Path {
        &self.options.path
    }

    /// Asks the writer and waits for its answer, which it gives after the commit.
    pub(super) async fn ask<T, E: From<StoreError>>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Request,
    ) -> Result<T, E> {
        let stopped = || {
            self.fence.take_down("its writer has stopped");
            E::from(StoreError::Lost("its writer has stopped".to_owned()))
        };
        let waiting = Waiting::new(&self.waiting);
        let (reply, mut answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        let Err(request) = self.commit_here(request(reply), &waiting).await else {
            return answer.try_recv().unwrap_or_else(|_| Err(stopped()));
        };
        queue.send(request).await.map_err(|_| stopped())?;
        // A fast disk commits in less time than it takes to wake a sleeping thread. A caller that
        // is alone stays awake for that long; when many wait they share commits, and waking is
        // cheap beside that.
        let started = Instant::now();
        while waiting.alone() && started.elapsed() < WAKEFUL {
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Closed) => return Err(stopped()),
                Err(oneshot::error::TryRecvError::Empty) => tokio::task::yield_now().await,
            }
        }
        answer.await.map_err(|_| stopped())?
    }

    /// Commits a small request on this thread if no other one waits for the writer, and gives it
    /// back otherwise.
    ///
    /// Only on a runtime of one thread, which is that of a command that executes one run: it has
    /// nothing better to do than to wait for its commit. A service has a runtime of many threads,
    /// and a disk that hangs must not take one of them, with the requests that are queued behind
    /// it: there every commit is the writer thread's. (`block_in_place` would keep the others going
    /// too, but it moves them to another thread each time, which is the hand-over again.)
    async fn commit_here(&self, request: Request, waiting: &Waiting<'_>) -> Result<(), Request> {
        if !request.is_small() || !has_one_thread() {
            return Err(request);
        }
        // Tasks that are ready to run may be about to ask too, and then share a commit with this
        // one: they come first. Without this, 200 runs would make 200 commits one by one.
        tokio::task::yield_now().await;
        if !waiting.alone() {
            return Err(request);
        }
        if Writer::try_commit_now(&self.writer, request)?
            && let Some(queue) = &self.queue
        {
            // A queue that is full has requests in it, and maintenance follows those anyway.
            drop(queue.try_send(Request::Maintain));
        }
        Ok(())
    }

    /// Returns the cipher of the store. Large values are sealed with the same.
    pub fn cipher(&self) -> &Arc<Cipher> {
        &self.cipher
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Changes something beside the journal.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Stop<StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Request::other(reply, work)).await
    }

    /// Takes entries out of the journal, or puts them back.
    pub(super) async fn write_indexed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, Stop<StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Request::indexed(reply, work)).await
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Reads on a thread that may block. That of a runtime of one thread may, as in
    /// [`Self::commit_here`]: a hand-over and back takes longer than most reads.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if has_one_thread() {
            return work(&self.reader);
        }
        let reader = Arc::clone(&self.reader);
        let done = tokio::task::spawn_blocking(move || work(&reader)).await;
        done.unwrap_or_else(|error| {
            Err(StoreError::Failed(format!(
                "reading was interrupted: {error}"
            )))
        })
    }
}

/// Says that the disk is full where SQLite only says that writing failed.
fn name_cause(options: &Options, error: OpenStoreError) -> OpenStoreError {
    match error {
        OpenStoreError::Sqlite(ref cause)
            if is_io_failure(cause)
                && matches!(probe::take_space(options), Err(StoreError::Full)) =>
        {
            OpenStoreError::Full
        }
        error => error,
    }
}

/// Opens the heads file, and waits for a process that rewrites the store as long as for any other
/// lock.
fn open_heads(options: &Options) -> Result<(Heads, HashMap<String, Head>), OpenStoreError> {
    open::create_directory(&options.path)?;
    let path = options.beside("-heads");
    // Owners of runs from before a store was adopted must not go on in it meanwhile.
    let share = match options.adopt {
        true => Share::Alone,
        false => Share::Shared,
    };
    let deadline = Instant::now() + options.busy_timeout;
    loop {
        match Heads::open(&path, share) {
            Ok(opened) => return Ok(opened),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(OpenStoreError::File {
                    path,
                    source: error,
                });
            }
            Err(_) if Instant::now() >= deadline && options.adopt => {
                return Err(OpenStoreError::Locked);
            }
            Err(_) if Instant::now() >= deadline => return Err(OpenStoreError::Rewriting),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn has_one_thread() -> bool {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::CurrentThread)
}

/// Counts those who wait for the writer.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }

    fn alone(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked its requests were already answered with an error.
            drop(thread.join());
        }
    }
}

impl Journal for SqliteStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(self.ask(|reply| Request::Append { appends, reply }))
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let stream = stream.clone();
        Box::pin(self.look(move |reader| reader.read(&stream, after, limit)))
    }

    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>> {
        let of = of.clone();
        Box::pin(self.look(move |reader| reader.feed(&of, after, limit)))
    }

    // The small reads below take microseconds, less than moving them to another thread.

    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>> {
        Box::pin(async { self.reader.head(stream) })
    }
}

impl StreamIndex for SqliteStore {
    fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        Box::pin(self.look(Reader::plans))
    }

    fn plans_by_age<'a>(
        &'a self,
        after: Option<(Timestamp, &'a PlanId)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let after = after.map(|(at, id)| (at, id.clone()));
        Box::pin(self.look(move |reader| reader.plans_by_age(after, limit)))
    }

    fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let plan = plan.clone();
        Box::pin(self.look(move |reader| reader.runs(&plan)))
    }

    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words: Vec<String> = statuses.iter().map(ToString::to_string).collect();
        Box::pin(self.look(move |reader| reader.plans_in(&words, until)))
    }

    fn plans_with_runs(
        &self,
        status: CachedStatus,
    ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        let word = status.to_string();
        Box::pin(self.look(move |reader| reader.plans_with_runs(&word)))
    }

    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words: Vec<String> = statuses.iter().map(ToString::to_string).collect();
        Box::pin(self.look(move |reader| reader.runs_in(&words)))
    }

    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
        Box::pin(self.look(Reader::counts))
    }

    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let stream = stream.clone();
        let cipher = Arc::clone(&self.cipher);
        Box::pin(self.write(move |connection| {
            transaction::correct_status((connection, &cipher), stream, status)
        }))
    }

    fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async { self.reader.brought_bytes(by) })
    }

    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
        Box::pin(async { self.reader.info(stream) })
    }
}

impl Leases for SqliteStore {
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>> {
        let run = run.clone();
        let owner = owner.clone();
        Box::pin(self.ask(move |reply| Request::Acquire {
            run,
            owner,
            ttl,
            reply,
        }))
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        let lease = lease.clone();
        Box::pin(self.ask(move |reply| Request::Renew { lease, ttl, reply }))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        let lease = lease.clone();
        Box::pin(self.ask(move |reply| Request::Release { lease, reply }))
    }

    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>> {
        Box::pin(async { self.reader.living_owner(run) })
    }

    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(self.reader.is_dead(owner)) })
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async { self.reader.lease(run) })
    }
}

impl Mailbox for SqliteStore {
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |reply| Request::Send { run, body, reply }))
    }

    fn send_claimed<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
        claim: RequestClaim,
    ) -> BoxFuture<'a, Result<MessageId, AppendError>> {
        let run = run.clone();
        Box::pin(self.ask(move |reply| Request::SendClaimed {
            run,
            body,
            claim,
            reply,
        }))
    }

    fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>> {
        Box::pin(async { self.reader.messages(None) })
    }

    fn messages<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>> {
        Box::pin(async { self.reader.messages(Some(run)) })
    }

    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>> {
        Box::pin(async move { self.reader.answer(message) })
    }
}

impl StoreHealth for SqliteStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            self.ask(Request::probe).await?;
            let options = Arc::clone(&self.options);
            self.look(move |_| probe::take_space(&options)).await
        })
    }

    fn adopted_at(&self) -> Option<Timestamp> {
        self.belonging.writes()?.adopted_at
    }

    fn failure(&self) -> watch::Receiver<Option<String>> {
        self.fence_watch.subscribe(&self.fence)
    }
}

impl Changes for SqliteStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe(&self.options)
    }

    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.mail.subscribe(&self.options)
    }

    fn plan_changes(&self) -> Option<u64> {
        match self.writer.try_lock() {
            Ok(mut writer) => writer.plan_changes(),
            Err(TryLockError::WouldBlock) => self.certain_count.get(),
            Err(TryLockError::Poisoned(_)) => None,
        }
    }
}
