//! Room in the log, so that commits do not have to make it longer. A commit that does is one of the file system as well, which
//! takes about as long again.
//!
//! SQLite reads a log up to the first frame that does not belong to it: the zeros behind it mean nothing. They are only ever
//! appended to the file, so that what SQLite writes at the same time, here or in another process, stays as it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The log grows to about this length before it is copied into the main file and written over.
pub(super) const ROOM_BYTES: u64 = 5 << 20;
/// What is appended and made durable at a time: a commit waits for no more than this.
const PIECE_BYTES: usize = 256 << 10;

/// A thread that makes room in a log. It ends early when this is dropped.
#[derive(Debug)]
pub(super) struct LogRoom {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LogRoom {
    /// Begins to make room in the log at `path`, which has to be there.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().append(true).open(path)?;
        let stopped: Arc<AtomicBool> = Arc::default();
        let told = Arc::clone(&stopped);
        let thread = std::thread::Builder::new()
            .name("planwright-log".to_owned())
            .spawn(move || {
                if let Err(error) = extend(&log, &told) {
                    // Commits make the log longer, as they would have without this.
                    tracing::debug!(%error, "there is no room made in the log");
                }
            })?;
        Ok(Self {
            stopped,
            thread: Some(thread),
        })
    }
}

impl Drop for LogRoom {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It ends with the piece that it is writing.
            drop(thread.join());
        }
    }
}

fn extend(mut log: &File, stopped: &AtomicBool) -> io::Result<()> {
    let zeros = vec![0; PIECE_BYTES];
    while !stopped.load(Ordering::Acquire) && log.metadata()?.len() < ROOM_BYTES {
        log.write_all(&zeros)?;
        log.sync_data()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_behind_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, b"frames").unwrap();
        let mut room = LogRoom::make(&path).unwrap();
        room.thread.take().unwrap().join().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"frames"));
        assert!(bytes[6..].iter().all(|byte| *byte == 0));
        assert!(bytes.len() as u64 >= ROOM_BYTES);
    }

    #[test]
    fn it_stops_when_it_is_dropped_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(LogRoom::make(&path).is_err());
        assert!(!path.exists());
        std::fs::write(&path, b"").unwrap();
        let stopped = AtomicBool::new(true);
        let log = OpenOptions::new().append(true).open(&path).unwrap();
        extend(&log, &stopped).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
