//! What a server writes to its standard error: kept in a bounded file, never on the user's terminal.

use planwright_core::plan::printable;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The file and the one before it together hold at most 1 MiB.
const MAX_FILE_BYTES: u64 = 512 << 10;
const MAX_TAIL_BYTES: usize = 2 << 10;
const CHUNK: usize = 16 << 10;
/// A server that writes without end is slowed down to about 3 MiB a second, so that it does not wear out the disk.
const PAUSE: Duration = Duration::from_millis(5);

/// The log of one server, shared by its restarts.
#[derive(Debug, Clone)]
pub(super) struct StderrLog {
    path: PathBuf,
    tail: Arc<Mutex<VecDeque<u8>>>,
}

impl StderrLog {
    pub(super) fn new(directory: &Path, server: &str) -> Self {
        Self { path: directory.join(format!("{server}.log")), tail: Arc::default() }
    }

    /// A pipe for a child's standard error. A thread of its own empties it, whatever the runtime does.
    pub(super) fn pipe(&self) -> std::io::Result<Stdio> {
        let (reader, writer) = std::io::pipe()?;
        let log = self.clone();
        log.lock().clear();
        std::thread::Builder::new().name("mcp stderr".into()).spawn(move || log.drain(reader))?;
        Ok(Stdio::from(writer))
    }

    /// The end of what was written last, in one line that a terminal can show.
    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = self.lock().iter().copied().collect();
        printable(String::from_utf8_lossy(&bytes).trim()).into_owned()
    }

    /// A file that cannot be written costs the log, never the server: the pipe is emptied all the same.
    fn drain(&self, mut reader: PipeReader) {
        let mut file = self.open();
        let mut written = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len());
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match reader.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            self.remember(&chunk[..read]);
            if written + read as u64 > MAX_FILE_BYTES {
                file = self.start_over();
                written = 0;
            }
            if let Some(open) = &mut file {
                match open.write_all(&chunk[..read]) {
                    Ok(()) => written += read as u64,
                    Err(_) => file = None,
                }
            }
            if read == CHUNK {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn open(&self) -> Option<File> {
        std::fs::create_dir_all(self.path.parent()?).ok()?;
        File::options().create(true).append(true).open(&self.path).ok()
    }

    fn start_over(&self) -> Option<File> {
        std::fs::rename(&self.path, self.path.with_extension("log.1")).ok()?;
        self.open()
    }

    fn remember(&self, chunk: &[u8]) {
        let mut tail = self.lock();
        tail.extend(&chunk[chunk.len().saturating_sub(MAX_TAIL_BYTES)..]);
        let surplus = tail.len().saturating_sub(MAX_TAIL_BYTES);
        tail.drain(..surplus);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<u8>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
