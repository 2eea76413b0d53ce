//! Tells when anything changed, or when a message arrived, here or in another process.
//!
//! Every commit ends with a write to the heads file, and every message with one to the mail file,
//! so watching those is enough; a slow look at SQLite's own change counter covers file systems
//! without notices. Nothing is started before a caller asks. A process that executes runs watches
//! the mail only: it must not be woken by each of its own commits.

use super::heads::Seen;
use super::open::{self, Options};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ChangeWatch {
    count: Arc<watch::Sender<u64>>,
    source: Source,
    watcher: Mutex<Option<Watcher>>,
}

/// Which file is watched.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Commits of others. Our own are told apart by the file's length.
    Heads(Arc<Seen>),
    /// Messages.
    Mail,
}

#[derive(Debug)]
struct Watcher {
    notices: Option<RecommendedWatcher>,
    stop: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl ChangeWatch {
    pub(super) fn new(count: Arc<watch::Sender<u64>>, source: Source) -> Self {
        Self {
            count,
            source,
            watcher: Mutex::default(),
        }
    }

    pub(super) fn subscribe(&self, options: &Arc<Options>) -> watch::Receiver<u64> {
        let receiver = self.count.subscribe();
        let mut watcher = self
            .watcher
            .lock()
            .expect("nothing panics while it holds the watcher");
        if watcher.is_none() {
            *watcher = Some(Watcher::start(&self.count, &self.source, options));
        }
        receiver
    }
}

fn bump(count: &watch::Sender<u64>) {
    count.send_modify(|count| *count += 1);
}

impl Watcher {
    fn start(count: &Arc<watch::Sender<u64>>, source: &Source, options: &Arc<Options>) -> Self {
        let notices = watch_file(Arc::clone(count), source.clone(), options);
        if let Err(error) = &notices {
            tracing::warn!(%error, "cannot watch for changes of other processes; looking once a second instead");
        }
        let (stop, stopped) = channel();
        let count = Arc::clone(count);
        let options = Arc::clone(options);
        let ticker = std::thread::Builder::new()
            .name("planwright-changes".to_owned())
            .spawn(move || {
                // Most commands end before the first look, and need no connection for it. What
                // changed until then is not known, so the first look counts as a change.
                let mut connection = None;
                let mut seen = None;
                while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    if connection.is_none() {
                        connection = open::reader(&options).ok();
                    }
                    let found = connection.as_ref().and_then(data_version);
                    if found != seen {
                        seen = found;
                        bump(&count);
                    }
                }
            });
        Self {
            notices: notices.ok(),
            stop: Some(stop),
            ticker: ticker.ok(),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.notices = None;
        self.stop = None;
        if let Some(ticker) = self.ticker.take() {
            // It cannot have panicked, and if it had there would be nothing to save.
            drop(ticker.join());
        }
    }
}

fn watch_file(
    count: Arc<watch::Sender<u64>>,
    source: Source,
    options: &Options,
) -> notify::Result<RecommendedWatcher> {
    let path = match source {
        Source::Heads(_) => options.beside("-heads"),
        Source::Mail => options.beside("-mail"),
    };
    if let Source::Mail = source {
        touch_mail(options).map_err(notify::Error::io)?;
    }
    let watched = path.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let news = match &source {
            // Our own commits were announced already. An error may hide those of another process.
            Source::Heads(seen) => event.is_err() || seen.differs(&watched),
            Source::Mail => true,
        };
        if news {
            bump(&count);
        }
    })?;
    watcher.watch(&path, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Wakes those who wait for messages. The file holds one byte that means nothing.
pub(super) fn touch_mail(options: &Options) -> io::Result<()> {
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(false).mode(0o600);
    open.open(options.beside("-mail"))?.write_all(b".")
}

/// A number that differs after a commit of any other connection.
fn data_version(connection: &Connection) -> Option<i64> {
    connection
        .pragma_query_value(None, "data_version", |row| row.get(0))
        .ok()
}
