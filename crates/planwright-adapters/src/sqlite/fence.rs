//! The fence of a store: once it is down, nothing is written any more.
//!
//! It goes down for good when the disk failed under a commit, when the writer died, and when the
//! files that are open are not the ones with their names any more. A database that was removed or
//! replaced still takes writes, and acknowledges what no process will ever read: calls must not be made
//! on the strength of that. The files are compared by device and inode, and never opened for it:
//! closing a second descriptor would drop the locks that SQLite holds on the file.

use super::open::Options;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Commits closer together than this share one look at the files.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two looks while nothing is committed.
const WATCH_INTERVAL: Duration = Duration::from_millis(400);

/// Device and inode.
type Identity = (u64, u64);

#[derive(Debug)]
pub(super) struct Fence {
    failure: watch::Sender<Option<String>>,
    files: Mutex<Files>,
}

#[derive(Debug)]
struct Files {
    known: Vec<KnownFile>,
    looked: Instant,
}

#[derive(Debug)]
struct KnownFile {
    path: PathBuf,
    /// `None` while there is no such file yet: SQLite makes its log with the first transaction.
    identity: Option<Identity>,
}

impl Fence {
    /// Notes the files that belong to a store that has just been opened.
    pub(super) fn new(options: &Options) -> Self {
        let paths = [
            options.path.clone(),
            options.beside("-wal"),
            options.beside("-heads"),
        ];
        let known = paths.map(|path| KnownFile {
            identity: identify(&path).ok().flatten(),
            path,
        });
        Self {
            failure: watch::Sender::new(None),
            files: Mutex::new(Files {
                known: known.into(),
                looked: Instant::now(),
            }),
        }
    }

    /// Returns why nothing may be written any more, if so.
    pub(super) fn reason(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(super) fn is_down(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Lets nothing through any more. The first reason stays.
    pub(super) fn take_down(&self, reason: &str) {
        let first = self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                *failure = Some(reason.to_owned());
            }
            first
        });
        if first {
            tracing::error!(reason, "the store failed for good");
        }
    }

    /// Looks whether the files are still the ones that were opened, unless that was done a moment
    /// ago.
    pub(super) fn look(&self) {
        let mut files = self.files();
        if files.looked.elapsed() < LOOK_INTERVAL || self.is_down() {
            return;
        }
        files.looked = Instant::now();
        for file in &mut files.known {
            match identify(&file.path) {
                Ok(found) if file.identity.is_none() => file.identity = found,
                Ok(found) if found == file.identity => {}
                Ok(found) => self.take_down(&describe(&file.path, found.is_some())),
                // A moment without descriptors or memory says nothing about the file.
                Err(error) => tracing::debug!(%error, "cannot look at {}", file.path.display()),
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // What it guards is whole after every statement.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file's name without its directory: callers without a right to read paths see the reason too.
fn describe(path: &Path, replaced: bool) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    if replaced {
        format!("{name} was replaced while it was in use")
    } else {
        format!("{name} was removed while it was in use")
    }
}

fn identify(path: &Path) -> io::Result<Option<Identity>> {
    let identity = |found: Metadata| Some((found.dev(), found.ino()));
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(identity(found)),
        // A directory that is gone, or became something else, takes the file with it.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Takes the fence down if the thread that holds this panics: a commit that panicked left the
/// connection in an unknown state.
#[derive(Debug)]
pub(super) struct PanicGuard(pub(super) Arc<Fence>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.take_down("its writer has stopped");
        }
    }
}

/// Looks at the fence's files again and again, once a caller waits for its failure.
#[derive(Debug, Default)]
pub(super) struct FenceWatch(Mutex<Option<Ticker>>);

#[derive(Debug)]
struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FenceWatch {
    pub(super) fn subscribe(&self, fence: &Arc<Fence>) -> watch::Receiver<Option<String>> {
        let mut ticker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ticker.is_none() {
            *ticker = Some(Ticker::start(fence));
        }
        fence.failure.subscribe()
    }
}

impl Ticker {
    fn start(fence: &Arc<Fence>) -> Self {
        let (stop, stopped) = channel();
        let fence = Arc::clone(fence);
        let thread = std::thread::Builder::new()
            .name("planwright-fence".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    fence.look();
                }
            });
        if let Err(error) = &thread {
            // Every commit looks too; only a long pause between two of them is not covered.
            tracing::warn!(%error, "the files of the store are only looked at when something is written");
        }
        Self {
            stop: Some(stop),
            thread: thread.ok(),
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked, and if it had there would be nothing to save.
            drop(thread.join());
        }
    }
}
