//! The one writer of a store. It takes everything that is queued, commits it at once, and only then
//! answers.
//!
//! A thread of the store's own serves the queue. A caller that is alone may commit its one request
//! on its own thread instead ([`Writer::try_commit_now`]): two hand-overs between threads cost more
//! than a commit on a fast disk, and many times more on a machine whose processors are busy. The
//! commit of a caller never waits for another process, and never makes a checkpoint.

mod maintenance;

pub(in crate::sqlite) use maintenance::note_losses;

use super::anchor::Anchor;
use super::answers;
use super::changes::touch_mail;
use super::entry_index::EntryIndex;
use super::fault::{Stop, describe, failed, is_io_failure};
use super::fence::Fence;
use super::heads::Heads;
use super::identity::Belonging;
use super::known_streams::KnownStreams;
use super::lease;
use super::lock_holder::find_lock_holder;
use super::log_room::LogRoom;
use super::open::Options;
use super::owner::Owners;
use super::probe;
use super::transaction::{self, Session};
use crate::sealing::mask_head;
use crate::vault::Cipher;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::{
    AcquireError, Append, AppendError, Asking, Claim, Lease, MessageId, OwnerId, RequestClaim,
    StoreError,
};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// More than this many requests are not committed at once, so that the first does not wait for the
/// last.
const MAX_GROUP: usize = 512;
const PAGE_BYTES: u64 = 4096;
/// The time the writer stays awake after a commit.
const WAKEFUL: Duration = Duration::from_micros(50);
/// A caller commits on its own thread only while the last commit took less than this: nothing else
/// happens on that thread meanwhile. It leaves room for commits that a busy machine interrupted.
const MAX_BLOCKED: Duration = Duration::from_millis(20);
/// A caller commits on its own thread only this many entries, and this many bytes of them. More
/// of them take long enough for other work to be done beside them.
const MAX_INLINE_ENTRIES: usize = 8;
const MAX_INLINE_BYTES: usize = 64 * 1024;

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// A request to the writer.
pub(super) enum Request {
    Append {
        appends: Vec<Append>,
        reply: Reply<(), AppendError>,
    },
    Acquire {
        run: RunId,
        owner: OwnerId,
        ttl: Duration,
        reply: Reply<Lease, AcquireError>,
    },
    Renew {
        lease: Lease,
        ttl: Duration,
        reply: Reply<Lease, AppendError>,
    },
    Release {
        lease: Lease,
        reply: Reply<(), StoreError>,
    },
    Send {
        run: RunId,
        body: Vec<u8>,
        reply: Reply<MessageId, StoreError>,
    },
    /// As `Send`, for a request.
    SendClaimed {
        run: RunId,
        body: Vec<u8>,
        claim: RequestClaim,
        reply: Reply<MessageId, AppendError>,
    },
    /// A small change beside the journal.
    Other(Work),
    /// Work that is too much for the thread of a caller.
    Large(Work),
    /// Nothing but the work that is due after commits: checkpoints, a shorter heads file.
    Maintain,
}

impl Request {
    /// Returns whether a caller may commit this on its own thread.
    pub(super) fn is_small(&self) -> bool {
        match self {
            Self::Append { appends, .. } => {
                let records = || appends.iter().flat_map(|append| &append.records);
                records().count() <= MAX_INLINE_ENTRIES
                    && records().map(|record| record.body.len()).sum::<usize>() <= MAX_INLINE_BYTES
            }
            Self::Acquire { .. }
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Send { .. }
            | Self::SendClaimed { .. }
            | Self::Other(_) => true,
            Self::Large(_) | Self::Maintain => false,
        }
    }

    /// Returns whether this may write the journal of a plan, or what is cached about one.
    fn may_touch_plans(&self) -> bool {
        match self {
            Self::Append { appends, .. } => appends
                .iter()
                .any(|append| matches!(append.stream, StreamName::Plan(_))),
            Self::Other(_) | Self::Large(_) => true,
            Self::Acquire { .. }
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Send { .. }
            | Self::SendClaimed { .. }
            | Self::Maintain => false,
        }
    }

    /// A change that changes nothing, and is written all the same.
    pub(super) fn probe(reply: Reply<(), StoreError>) -> Self {
        Self::Other(Box::new(move |writer, Turn { alone, begun }| {
            writer.guarded(reply, alone, begun, |writer| {
                writer.logged_pages += 1;
                Ok(probe::rewrite_page(&writer.connection)?)
            })
        }))
    }

    /// Work on the journal and its indexes, in the transaction of the group it falls into.
    pub(super) fn indexed<T: Send + 'static>(
        reply: Reply<T, StoreError>,
        work: impl FnOnce(&mut Writer) -> Result<T, Stop<StoreError>> + Send + 'static,
    ) -> Self {
        Self::Large(Box::new(move |writer, Turn { alone, begun }| {
            writer.guarded(reply, alone, begun, work)
        }))
    }

    /// The claim of a request, by an owner that shows itself alive with it.
    pub(super) fn claim(reply: Reply<Claim, StoreError>, asking: Asking, now: Timestamp) -> Self {
        Self::Other(Box::new(move |writer, Turn { alone, begun }| {
            writer.guarded(reply, alone, begun, |writer| {
                let tables = (&writer.connection, &*writer.cipher);
                let living = (&mut writer.owners, &*writer.owners_directory);
                answers::claim(tables, living, &asking, now)
            })
        }))
    }

    /// Work on the connection, in the transaction of the group it falls into.
    pub(super) fn other<T: Send + 'static>(
        reply: Reply<T, StoreError>,
        work: impl FnOnce(&Connection) -> Result<T, Stop<StoreError>> + Send + 'static,
    ) -> Self {
        Self::Other(Box::new(move |writer, Turn { alone, begun }| {
            writer.guarded(reply, alone, begun, |writer| work(&writer.connection))
        }))
    }
}

/// Work that is not the journal's.
type Work = Box<dyn FnOnce(&mut Writer, Turn) -> Finish + Send>;

/// The turn of a request: whether it is alone in its group, and whether the transaction has begun.
pub(super) struct Turn {
    alone: bool,
    begun: bool,
}

/// Answers one request, once it is known whether the group was committed or why not.
pub(super) type Finish = Box<dyn FnOnce(Result<(), &StoreError>)>;

pub(super) struct Writer {
    connection: Connection,
    cipher: Arc<Cipher>,
    options: Arc<Options>,
    /// Down for good when the disk failed under a commit: what it holds is unknown until the store
    /// is opened afresh.
    fence: Arc<Fence>,
    owners_directory: PathBuf,
    heads: Heads,
    anchor: Arc<Anchor>,
    belonging: Arc<Belonging>,
    owners: Owners,
    changes: Arc<watch::Sender<u64>>,
    index: EntryIndex,
    known: KnownStreams,
    /// The heads of the streams touched by the group at hand.
    touched: Vec<(String, Head)>,
    /// Counts the groups that may have written the journals of plans, and what others committed.
    plan_changes: u64,
    /// The same for readers, while it is certain without a look at the database.
    certain: Arc<CertainCount>,
    /// SQLite's number of what others have committed, as it was last asked for.
    others: Option<i64>,
    /// The group at hand holds a message.
    mailed: bool,
    /// Why SQLite took the group at hand back by itself.
    rolled_back: Option<StoreError>,
    last_commit_took: Duration,
    /// An upper estimate of the pages in the log.
    logged_pages: u64,
    wrote: bool,
    groups: u32,
    /// Groups that were committed since the log was last emptied, as far as they are counted.
    groups_in_log: u32,
    /// Room that is made in the log, or was.
    log_room: Option<LogRoom>,
    cut_heads_at: u64,
    /// A caller has asked the writer's thread for maintenance, and it has not come to it yet.
    maintenance_asked: bool,
}

/// The count of changes to plans while a group is written that changes none. Until its commit begins no
/// other process can write.
#[derive(Debug, Default)]
pub(super) struct CertainCount(AtomicU64);

impl CertainCount {
    fn show(&self, count: u64) {
        self.0.store(count + 1, Ordering::SeqCst);
    }

    fn hide(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// The count, if it is certain now.
    pub(super) fn get(&self) -> Option<u64> {
        self.0.load(Ordering::SeqCst).checked_sub(1)
    }
}

/// Waits for a request, at first without going to sleep: in a chain the next one comes a few
/// microseconds after the answer to the last, sooner than a sleeping thread wakes up.
fn next(queue: &mut mpsc::Receiver<Request>) -> Option<Request> {
    let started = Instant::now();
    loop {
        match queue.try_recv() {
            Ok(request) => return Some(request),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) if started.elapsed() < WAKEFUL => {
                std::thread::yield_now();
            }
            Err(mpsc::error::TryRecvError::Empty) => return queue.blocking_recv(),
        }
    }
}

/// Takes the lock, unless its holder has more to do than to let go of it. The writer's thread does that a moment after it has
/// answered: a caller that came too early, and queued its request because of it, would come too early with each one after it.
fn lock_soon(writer: &Mutex<Writer>) -> Option<MutexGuard<'_, Writer>> {
    let started = Instant::now();
    loop {
        match writer.try_lock() {
            Ok(writer) => return Some(writer),
            Err(TryLockError::WouldBlock) if started.elapsed() < WAKEFUL => {
                std::thread::yield_now();
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return None,
        }
    }
}

impl Writer {
    pub(super) fn new(
        (connection, cipher): (Connection, Arc<Cipher>),
        (options, fence): (Arc<Options>, Arc<Fence>),
        heads: Heads,
        (anchor, belonging): (Arc<Anchor>, Arc<Belonging>),
        changes: Arc<watch::Sender<u64>>,
    ) -> Self {
        let owners_directory = options.beside(".owners");
        let mut writer = Self {
            connection,
            cipher,
            heads,
            anchor,
            belonging,
            owners: Owners::new(owners_directory.clone()),
            owners_directory,
            changes,
            index: EntryIndex::default(),
            known: KnownStreams::default(),
            touched: Vec::new(),
            plan_changes: 0,
            certain: Arc::default(),
            others: None,
            mailed: false,
            rolled_back: None,
            last_commit_took: Duration::ZERO,
            logged_pages: 0,
            wrote: false,
            groups: 0,
            groups_in_log: 0,
            log_room: None,
            cut_heads_at: options.max_heads_bytes,
            maintenance_asked: false,
            options,
            fence,
        };
        writer.logged_pages = writer.log_bytes() / PAGE_BYTES;
        writer
    }

    /// Serves the queue until its last sender is gone.
    pub(super) fn serve_queue(writer: &Mutex<Self>, mut queue: mpsc::Receiver<Request>) {
        let mut group = Vec::new();
        while let Some(first) = next(&mut queue) {
            // A commit that panicked left the connection in an unknown state. Leaving closes the
            // queue, and with it every request is answered with an error.
            let Ok(mut writer) = writer.lock() else {
                return;
            };
            group.push(first);
            while group.len() < MAX_GROUP
                && let Ok(next) = queue.try_recv()
            {
                group.push(next);
            }
            group.retain(|request| !matches!(request, Request::Maintain));
            if !group.is_empty() {
                writer.commit(&mut group);
            }
            writer.maintain();
        }
        if let Ok(mut writer) = writer.lock() {
            writer.leave();
        }
    }

    /// Commits one request on the caller's thread, unless that would have to wait: for another
    /// commit of this process, for another process, or for a disk that is slow. Then the request
    /// comes back, to be queued. Returns whether the thread has to be asked for maintenance.
    pub(super) fn try_commit_now(writer: &Mutex<Self>, request: Request) -> Result<bool, Request> {
        let Some(mut writer) = lock_soon(writer) else {
            return Err(request);
        };
        if writer.fence.is_down()
            || writer.belonging.foreign().is_some()
            || writer.last_commit_took > MAX_BLOCKED
            || !writer.begin_without_waiting()
        {
            return Err(request);
        }
        writer.commit_begun(&mut vec![request], Ok(()));
        // Asked for once: a thread that is woken after every commit competes with the next one.
        let wanted = writer.is_maintenance_due() && !writer.maintenance_asked;
        writer.maintenance_asked |= wanted;
        Ok(wanted)
    }

    /// Commits a group and answers it. A request that is refused does not spoil the others.
    fn commit(&mut self, group: &mut Vec<Request>) {
        // The one door that everything which is written goes through.
        let begun = match (self.fence.reason(), self.belonging.foreign()) {
            (Some(reason), _) => Err(StoreError::Lost(reason)),
            (None, Some(why)) => Err(StoreError::NotAdopted(why.to_string())),
            (None, None) => self.begin().inspect_err(|error| self.note_busy(error)),
        };
        self.commit_begun(group, begun);
    }

    /// Carries out and commits a group whose transaction has begun, or says why it has not.
    fn commit_begun(&mut self, group: &mut Vec<Request>, begun: Result<(), StoreError>) {
        let alone = group.len() == 1;
        let touches_plans = group.iter().any(Request::may_touch_plans);
        self.plan_changes += u64::from(touches_plans);
        let mut finishes = Vec::with_capacity(group.len());
        let changed_before = self.connection.total_changes();
        self.touched.clear();
        self.mailed = false;
        self.rolled_back = None;
        let begun = begun.and_then(|()| self.load_index());
        if begun.is_ok() && !touches_plans {
            self.certain.show(self.plan_changes);
        }
        for request in group.drain(..) {
            finishes.push(self.execute(request, alone, begun.is_ok()));
        }
        // The commit lets other processes in before it returns.
        self.certain.hide();
        let committed = begun
            .and_then(|()| self.end(alone))
            .and_then(|()| self.check_files());
        if committed.is_err() {
            self.forget();
        }
        crash::point("store: before the reply");
        for finish in finishes {
            finish(committed.as_ref().copied());
        }
        // The callers are already unblocked: the entries themselves are durable.
        if committed.is_ok() && self.connection.total_changes() != changed_before {
            self.announce();
        }
    }

    fn begin(&self) -> Result<(), StoreError> {
        crash::point("store: before begin");
        self.statement("BEGIN IMMEDIATE")
            .map_err(|error| failed(&error))
    }

    /// Tells the log who is in the way. Callers are not told: they may have no right to know.
    fn note_busy(&self, error: &StoreError) {
        if let StoreError::Busy(reason) = error {
            let holder = find_lock_holder(&self.options.path).map(|holder| holder.to_string());
            tracing::warn!(reason, holder, "nothing could be written");
        }
    }

    /// What was committed to files that no process will find again is not acknowledged.
    fn check_files(&self) -> Result<(), StoreError> {
        self.fence.look();
        match self.fence.reason() {
            Some(reason) => Err(StoreError::Lost(reason)),
            None => Ok(()),
        }
    }

    /// Begins a transaction if no other process has one. An error is left to the next, patient
    /// attempt, which says what it is.
    fn begin_without_waiting(&self) -> bool {
        let begun = self.connection.busy_timeout(Duration::ZERO).is_ok() && self.begin().is_ok();
        let restored = self.connection.busy_timeout(self.options.busy_timeout);
        if begun && restored.is_err() {
            self.roll_back();
        }
        begun && restored.is_ok()
    }

    /// Prepares the indexes for the transaction that has begun, or takes it back.
    fn load_index(&mut self) -> Result<(), StoreError> {
        match self.index.begin(&self.connection) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.known.forget();
                self.plan_changes += 1;
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(failed(&error))
            }
        }
    }

    /// Drops what is remembered of the file: what was last written to it was taken back.
    fn forget(&mut self) {
        self.index.forget();
        self.known.forget();
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.statement("ROLLBACK")
        {
            tracing::warn!(
                reason = describe(&error),
                "cannot roll back; the next transaction fails too"
            );
        }
    }

    fn end(&mut self, alone: bool) -> Result<(), StoreError> {
        if self.connection.is_autocommit() {
            // SQLite itself, or the one request that was refused, has taken everything back.
            self.forget();
            return if alone {
                Ok(())
            } else {
                let unknown = || StoreError::Failed("the transaction was rolled back".to_owned());
                Err(self.rolled_back.take().unwrap_or_else(unknown))
            };
        }
        let started = Instant::now();
        let indexed = self.index.write(&self.connection);
        crash::point("store: before commit");
        let committed = indexed.and_then(|()| self.statement("COMMIT"));
        self.last_commit_took = started.elapsed();
        let Err(error) = committed else {
            return Ok(());
        };
        if is_io_failure(&error) {
            // The pages of a failed fsync are gone from memory: a second one would succeed and mean
            // nothing.
            self.fence.take_down(&describe(&error));
        }
        if !self.connection.is_autocommit()
            && let Err(error) = self.statement("ROLLBACK")
        {
            self.fence.take_down(&describe(&error));
        }
        Err(match self.fence.reason() {
            Some(reason) => StoreError::Lost(reason),
            None => failed(&error),
        })
    }

    /// Tells the heads file, other processes and this one what was committed.
    fn announce(&mut self) {
        crash::point("store: after commit");
        self.wrote = true;
        self.groups += 1;
        self.groups_in_log = self.groups_in_log.saturating_add(1);
        let last = |at: usize| {
            !self.touched[at + 1..]
                .iter()
                .any(|(name, _)| *name == self.touched[at].0)
        };
        let heads = (0..self.touched.len()).filter(|at| last(*at));
        let heads = heads.map(|at| (self.touched[at].0.as_str(), self.touched[at].1));
        if let Err(error) = self.heads.note(heads) {
            // The journal itself is safe. Only the notice of its loss would be missing.
            tracing::warn!(%error, "cannot write the heads file");
        }
        if self.mailed
            && let Err(error) = touch_mail(&self.options)
        {
            // The message is durable; its reader finds it with its next slow look.
            tracing::warn!(%error, "cannot write the mail file");
        }
        self.changes.send_modify(|count| *count += 1);
    }

    fn execute(&mut self, request: Request, alone: bool, begun: bool) -> Finish {
        if !matches!(request, Request::Append { .. } | Request::Renew { .. }) {
            self.known.forget();
        }
        match request {
            Request::Append { appends, reply } => {
                self.guarded(reply, alone, begun, |writer| writer.append(&appends))
            }
            Request::Acquire {
                run,
                owner,
                ttl,
                reply,
            } => self.guarded(reply, alone, begun, |writer| {
                writer.acquire(&run, &owner, ttl)
            }),
            Request::Renew { lease, ttl, reply } => self.guarded(reply, alone, begun, |writer| {
                lease::renew(&writer.connection, &lease, ttl)
            }),
            Request::Release { lease, reply } => self.guarded(reply, alone, begun, |writer| {
                lease::release(&writer.connection, &lease)
            }),
            Request::Send { run, body, reply } => self.guarded(reply, alone, begun, |writer| {
                writer.mailed = true;
                transaction::insert_message((&writer.connection, &writer.cipher), &run, &body)
            }),
            Request::SendClaimed {
                run,
                body,
                claim,
                reply,
            } => self.guarded(reply, alone, begun, |writer| {
                let stream = StreamName::Run(run.clone());
                answers::note_change(&writer.connection, &claim, &stream)?;
                writer.mailed = true;
                let tables = (&writer.connection, &*writer.cipher);
                let sent = transaction::insert_message(tables, &run, &body);
                sent.map_err(|stop| match stop {
                    Stop::Sqlite(error) => Stop::Sqlite(error),
                    Stop::Refused(error) => Stop::Refused(error.into()),
                })
            }),
            Request::Other(work) | Request::Large(work) => work(self, Turn { alone, begun }),
            Request::Maintain => Box::new(|_| {}),
        }
    }

    /// Does one request so that it can be taken back by itself. A request that is alone needs no
    /// savepoint.
    fn guarded<T: 'static, E: From<StoreError> + 'static>(
        &mut self,
        reply: Reply<T, E>,
        alone: bool,
        begun: bool,
        work: impl FnOnce(&mut Self) -> Result<T, Stop<E>>,
    ) -> Finish {
        let result = if !begun || self.connection.is_autocommit() {
            // It is answered with the reason why the group failed.
            Err(StoreError::Failed("not attempted".to_owned()).into())
        } else {
            self.attempt(alone, work).map_err(Stop::into_error)
        };
        Box::new(move |committed| {
            let answer = match committed {
                Ok(()) => result,
                Err(error) => Err(error.clone().into()),
            };
            // The caller may have gone away; what was done stays done.
            drop(reply.send(answer));
        })
    }

    fn attempt<T, E>(
        &mut self,
        alone: bool,
        work: impl FnOnce(&mut Self) -> Result<T, Stop<E>>,
    ) -> Result<T, Stop<E>> {
        if !alone {
            self.statement("SAVEPOINT request")?;
        }
        let touched = self.touched.len();
        let mark = self.index.mark();
        let flushes = self.index.flushes();
        let result = work(self);
        let undo = match (&result, alone) {
            (Ok(_), true) => return result,
            (Ok(_), false) => "RELEASE request",
            (Err(_), true) => "ROLLBACK",
            (Err(_), false) => "ROLLBACK TO request",
        };
        if let Err(stop) = &result {
            self.known.forget();
            self.touched.truncate(touched);
            if self.index.flushes() == flushes {
                self.index.undo_to(mark);
            }
            if let Stop::Sqlite(error) = stop
                && self.connection.is_autocommit()
            {
                // Others can write from now on.
                self.certain.hide();
                self.rolled_back.get_or_insert_with(|| failed(error));
            }
        }
        if !self.connection.is_autocommit() {
            self.statement(undo)?;
        }
        // What was indexed is not indexed any more.
        if result.is_err() && self.index.flushes() != flushes {
            self.forget();
            if !self.connection.is_autocommit() {
                self.index.begin(&self.connection)?;
            }
        }
        result
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The count of [`Self::plan_changes`], as far as it can be known while this writes.
    pub(super) fn certain_count(&self) -> Arc<CertainCount> {
        Arc::clone(&self.certain)
    }

    /// Counts what may have been written to the journals of plans. Commits of this writer are known to
    /// it, and SQLite knows whether any other connection has committed.
    pub(super) fn plan_changes(&mut self) -> Option<u64> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version").ok()?;
        let others = statement.query_row([], |row| row.get(0)).ok()?;
        if self.others.replace(others) != Some(others) {
            self.plan_changes += 1;
        }
        Some(self.plan_changes)
    }

    /// Indexes every entry, so that some can be taken out.
    pub(super) fn flush_index(&mut self) -> Result<(), rusqlite::Error> {
        self.index.flush(&self.connection)
    }

    /// The transaction at hand writes about this many pages.
    pub(super) fn note_pages(&mut self, pages: u64) {
        self.logged_pages += pages;
    }

    fn append(&mut self, appends: &[Append]) -> Result<(), Stop<AppendError>> {
        for append in appends {
            let name = append.stream.to_string();
            let session = Session {
                connection: &self.connection,
                cipher: &self.cipher,
                anchor: &self.anchor,
                belonging: &self.belonging,
                owners: &mut self.owners,
                index: &mut self.index,
                known: &mut self.known,
            };
            transaction::append(session, append, &name)?;
            let bytes: usize = append.records.iter().map(|record| record.body.len()).sum();
            // The page with the entries; now and then one more, and those of the indexes.
            self.logged_pages += 2 + bytes as u64 / PAGE_BYTES;
            if let Some(head) = append.records.last().map(Record::head) {
                // The file of heads holds what the database holds, masked or not.
                let head = mask_head(&self.cipher, &name, head);
                self.touched.push((name, head));
            }
        }
        Ok(())
    }

    fn acquire(
        &mut self,
        run: &RunId,
        owner: &OwnerId,
        ttl: Duration,
    ) -> Result<Lease, Stop<AcquireError>> {
        let stream = StreamName::Run(run.clone());
        let sound = self
            .anchor
            .check(&self.connection, &stream, &stream.to_string());
        sound.map_err(|error| Stop::Refused(error.into()))?;
        lease::acquire(
            &self.connection,
            &mut self.owners,
            &self.owners_directory,
            (run, owner, ttl),
        )
    }

    fn statement(&self, sql: &str) -> Result<(), rusqlite::Error> {
        self.connection
            .prepare_cached(sql)?
            .raw_execute()
            .map(|_| ())
    }
}
