//! All processes that were started here, and how they end together.

use super::group::ProcessGroup;
use super::record::{Record, Records};
use super::table;
use super::watchdog::Watchdog;
use crate::scarcity::wait_for_room;
use planwright_core::id::{AttemptNo, RunId, StepId};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The variable that marks a child and all it starts.
pub(super) const MARK: &str = "PLANWRIGHT_CHILD";

/// Ends the part of a mark that all children of this process share.
pub(super) const TOKEN_END: char = '-';

/// The time that those who watch over the groups get to end them in good order. They give their
/// groups two seconds after SIGTERM.
const GOOD_ORDER: Duration = Duration::from_secs(3);
/// The time between a SIGKILL and the end that it brings about.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// The processes that were started here. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Children(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The common beginning of all marks. No other process uses it; it is no secret.
    token: String,
    started: AtomicU64,
    watchdog: Watchdog,
    records: Option<Records>,
    stopping: CancellationToken,
    /// The groups whose leaders have not been reaped: their numbers mean nothing else.
    groups: Mutex<BTreeMap<u64, Pid>>,
    /// Told when a group is gone.
    gone: Notify,
}

/// The call that a child works for.
#[derive(Debug, Clone)]
pub(crate) struct WorkOf {
    pub(crate) run: RunId,
    pub(crate) step: StepId,
    pub(crate) attempt: AttemptNo,
}

impl Default for Children {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Children {
    /// Starts nothing yet. `records` is the directory for the files that say which processes work
    /// for which calls; without it nothing is left for the next process to find.
    pub fn new(records: Option<PathBuf>) -> Self {
        let token = unique_token();
        Self(Arc::new(Shared {
            watchdog: Watchdog::new(format!("{MARK}={token}")),
            token,
            started: AtomicU64::new(0),
            records: records.map(Records::new),
            stopping: CancellationToken::new(),
            groups: Mutex::default(),
            gone: Notify::new(),
        }))
    }

    /// Starts the process of a call. Never returns once this process is about to end: a call that
    /// was not made for that must not be reported as failed, and the next process finds it
    /// interrupted.
    pub(crate) async fn start_call(
        &self,
        command: &mut Command,
        work: &WorkOf,
        cancelled: &CancellationToken,
    ) -> io::Result<ProcessGroup> {
        match wait_for_room(cancelled, || self.start(command, Some(work))).await {
            Err(_) if self.0.stopping.is_cancelled() => std::future::pending().await,
            started => started,
        }
    }

    /// Starts a process in a group of its own. The record of what it works for is written first.
    pub(crate) fn start(
        &self,
        command: &mut Command,
        work: Option<&WorkOf>,
    ) -> io::Result<ProcessGroup> {
        if self.0.stopping.is_cancelled() {
            return Err(io::Error::other("Planwright is about to end"));
        }
        let number = self.0.started.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}{TOKEN_END}{number}", self.0.token);
        let mut record = match (&self.0.records, work) {
            (Some(records), Some(work)) => Some(records.create(&mark, work)?),
            _ => None,
        };
        self.0.watchdog.wake();
        let spawned = command.env(MARK, &mark).process_group(0).spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                record.into_iter().for_each(Record::remove);
                return Err(error);
            }
        };
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            self.0.watchdog.watch(id);
            self.groups().insert(number, id);
            if let Some(record) = &mut record {
                record.note_leader(id);
            }
        }
        Ok(ProcessGroup::new(
            self.clone(),
            number,
            mark,
            child,
            id,
            record,
        ))
    }

    /// Waits until everything has to end because this process does. Nothing is started from then
    /// on.
    pub(crate) async fn stopping(&self) {
        self.0.stopping.cancelled().await;
    }

    /// Ends everything that was started, in good order where that does not take too long. Nothing
    /// can be started afterwards.
    pub async fn end(&self) {
        self.0.stopping.cancel();
        let in_time = tokio::time::timeout(GOOD_ORDER, self.all_gone()).await;
        if in_time.is_err() {
            self.signal_all(Signal::KILL);
        }
        self.see_off().await;
    }

    /// Kills everything that was started. Nothing can be started afterwards.
    pub async fn kill(&self) {
        // In this order: who watches over a group must know why it ended.
        self.0.stopping.cancel();
        self.signal_all(Signal::KILL);
        self.see_off().await;
    }

    /// Waits for the groups, ends what has left them, and lets the watchdog go.
    async fn see_off(&self) {
        if self.0.started.load(Ordering::Relaxed) > 0 {
            if tokio::time::timeout(AFTER_KILL, self.all_gone())
                .await
                .is_err()
            {
                tracing::warn!("a process that was started here has not been seen to end");
            }
            self.end_marked(format!("{}{TOKEN_END}", self.0.token))
                .await;
        }
        self.0.watchdog.dismiss();
    }

    /// Kills the processes whose mark begins like this, and waits for their end.
    pub(super) async fn end_marked(&self, mark: String) {
        let ending = tokio::task::spawn_blocking(move || end_marked(&mark));
        match ending.await {
            Ok(true) => {}
            Ok(false) => tracing::warn!("a process that left its group could not be ended"),
            Err(error) => tracing::warn!(%error, "looking for processes was given up"),
        }
    }

    async fn all_gone(&self) {
        loop {
            let gone = self.0.gone.notified();
            if self.groups().is_empty() {
                return;
            }
            gone.await;
        }
    }

    fn signal_all(&self, signal: Signal) {
        for group in self.groups().values() {
            signal_group(*group, signal);
        }
    }

    /// Forgets a group, whose number may mean another one from now on.
    pub(super) fn forget(&self, number: u64, group: Pid) {
        self.0.watchdog.forget(group);
        self.groups().remove(&number);
        self.0.gone.notify_one();
    }

    pub(super) fn records(&self) -> Option<&Records> {
        self.0.records.as_ref()
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<u64, Pid>> {
        self.0.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn signal_group(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // No process is left to hear it.
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
        Err(error) => tracing::warn!(%error, "a process group could not be signalled"),
    }
}

/// Returns whether all of them have ended.
fn end_marked(mark: &str) -> bool {
    const PAUSE: Duration = Duration::from_millis(5);
    let since = Instant::now();
    loop {
        let left = table::find_marked(mark);
        if left.is_empty() {
            return true;
        }
        if since.elapsed() > AFTER_KILL {
            return false;
        }
        for process in left {
            // One that cannot be killed is still there when the time is over.
            process.kill().unwrap_or_default();
        }
        std::thread::sleep(PAUSE);
    }
}

/// 128 random bits. Without randomness the time and our number are unique enough.
fn unique_token() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        bytes = (nanos << 32 | u128::from(std::process::id())).to_le_bytes();
    }
    format!("{:032x}", u128::from_le_bytes(bytes))
}
