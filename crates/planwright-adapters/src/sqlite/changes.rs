//! Tells when anything changed, here or in another process.
//!
//! Every commit ends with a write to the heads file, so watching that file is enough; a slow look at SQLite's own
//! change counter covers file systems without notices. Nothing is started before somebody asks.

use super::heads::Seen;
use super::open::{self, Options};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use rusqlite::Connection;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Changes {
    count: Arc<watch::Sender<u64>>,
    seen: Arc<Seen>,
    watcher: Mutex<Option<Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    notices: Option<RecommendedWatcher>,
    stop: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Changes {
    pub(super) fn new(count: Arc<watch::Sender<u64>>, seen: Arc<Seen>) -> Self {
        Self { count, seen, watcher: Mutex::default() }
    }

    pub(super) fn subscribe(&self, options: &Arc<Options>) -> watch::Receiver<u64> {
        let receiver = self.count.subscribe();
        let mut watcher = self.watcher.lock().expect("nothing panics while it holds the watcher");
        if watcher.is_none() {
            *watcher = Some(Watcher::start(&self.count, &self.seen, options));
        }
        receiver
    }
}

fn bump(count: &watch::Sender<u64>) {
    count.send_modify(|count| *count += 1);
}

impl Watcher {
    fn start(count: &Arc<watch::Sender<u64>>, seen: &Arc<Seen>, options: &Arc<Options>) -> Self {
        let notices = watch_heads(Arc::clone(count), Arc::clone(seen), options);
        if let Err(error) = &notices {
            tracing::warn!(%error, "cannot watch for changes of other processes; looking once a second instead");
        }
        let (stop, stopped) = channel();
        let (count, options) = (Arc::clone(count), Arc::clone(options));
        let ticker = std::thread::Builder::new().name("planwright-changes".to_owned()).spawn(move || {
            let Ok(connection) = open::reader(&options) else { return };
            let mut seen = data_version(&connection);
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let found = data_version(&connection);
                if found != seen {
                    seen = found;
                    bump(&count);
                }
            }
        });
        Self { notices: notices.ok(), stop: Some(stop), ticker: ticker.ok() }
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

fn watch_heads(
    count: Arc<watch::Sender<u64>>,
    seen: Arc<Seen>,
    options: &Options,
) -> notify::Result<RecommendedWatcher> {
    let path = options.beside("-heads");
    let watched = path.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own commits were announced already. An error may hide somebody else's.
        if event.is_err() || seen.differs(&watched) {
            bump(&count);
        }
    })?;
    watcher.watch(&path, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// A number that differs after a commit of any other connection.
fn data_version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}
