//! What a server writes to its standard error: kept in a bounded file, never on the user's
//! terminal.

use super::wire::Wire;
use crate::files::{create_directory, nofollow};
use planwright_core::secret::RedactedStream;
use planwright_core::text::sanitize_line;
use planwright_engine::Redaction;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The file and the one before it together hold at most 1 MiB.
const MAX_FILE_BYTES: u64 = 512 << 10;
const MAX_TAIL_BYTES: usize = 2 << 10;
/// The bytes remembered for the tail before it is masked: a secret at its edge must still be
/// recognised.
const MAX_REMEMBERED_BYTES: usize = MAX_TAIL_BYTES + (16 << 10);
const CHUNK: usize = 16 << 10;
/// A server that writes without end is slowed down to about 3 MiB a second, so that it does not
/// wear out the disk.
const PAUSE: Duration = Duration::from_millis(5);

/// The time the last words of a process may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The log of one server, shared by all its processes.
#[derive(Debug, Clone)]
pub(super) struct StderrLog {
    sink: Arc<Mutex<Sink>>,
    tail: Arc<Mutex<VecDeque<u8>>>,
    redaction: Redaction,
    /// The number of pipes that are still being emptied.
    open: watch::Sender<usize>,
}

/// The file that is written to, while it can be.
#[derive(Debug)]
struct Sink {
    path: PathBuf,
    /// `true` if there is a file. In an encrypted workspace there is none.
    kept: bool,
    file: Option<File>,
    written: u64,
}

impl StderrLog {
    pub(super) fn new(directory: &Path, server: &str, redaction: Redaction) -> Self {
        let sink = Sink {
            path: directory.join(format!("{server}.log")),
            kept: true,
            file: None,
            written: 0,
        };
        Self {
            sink: Arc::new(Mutex::new(sink)),
            tail: Arc::default(),
            redaction,
            open: watch::Sender::new(0),
        }
    }

    /// Keeps a file, or only the tail in memory.
    pub(super) fn kept(self, kept: bool) -> Self {
        self.sink().kept = kept;
        self
    }

    /// A pipe for a child's standard error, whose lines `told` passes on as well. A thread of its own empties it, regardless of what the
    /// runtime does.
    pub(super) fn pipe(&self, told: Option<Arc<Wire>>) -> std::io::Result<Stdio> {
        let (reader, writer) = std::io::pipe()?;
        let log = self.clone();
        log.lock().clear();
        let emptied = move || {
            log.drain(reader, told.as_deref());
            log.open.send_modify(|open| *open = open.saturating_sub(1));
        };
        self.open.send_modify(|open| *open += 1);
        if let Err(error) = std::thread::Builder::new()
            .name("mcp stderr".into())
            .spawn(emptied)
        {
            self.open.send_modify(|open| *open = open.saturating_sub(1));
            return Err(error);
        }
        Ok(Stdio::from(writer))
    }

    /// Waits until the last words of a process that ended are here, but not for one that holds the
    /// pipe open.
    pub(super) async fn settle(&self) {
        let mut open = self.open.subscribe();
        let emptied = open.wait_for(|open| *open == 0);
        // What has not come by then is not waited for.
        drop(tokio::time::timeout(LAST_WORDS, emptied).await);
    }

    /// The end of what was written last, in one line that a terminal can show.
    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = self.lock().iter().copied().collect();
        let masked = self.redaction.redactor().bytes(bytes);
        let shown = &masked[masked.len().saturating_sub(MAX_TAIL_BYTES)..];
        sanitize_line(String::from_utf8_lossy(shown).trim()).into_owned()
    }

    /// A file that cannot be written costs the log, never the server: the pipe is emptied all the
    /// same.
    fn drain(&self, mut reader: PipeReader, told: Option<&Wire>) {
        self.sink().open();
        let mut masked = RedactedStream::default();
        let mut lines = Lines::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match reader.read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(read @ 1..) => read,
                Ok(0) | Err(_) => {
                    let last = masked.finish(&self.redaction.redactor());
                    if let Some(wire) = told {
                        lines.push(&last, |line| wire.pass_stderr_line(line));
                    }
                    return self.sink().write(&last);
                }
            };
            self.remember(&chunk[..read]);
            let said = masked.push(&self.redaction.redactor(), &chunk[..read]);
            self.sink().write(&said);
            if let Some(wire) = told {
                lines.push(&said, |line| wire.pass_stderr_line(line));
            }
            if read == CHUNK {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, chunk: &[u8]) {
        let mut tail = self.lock();
        tail.extend(chunk);
        let surplus = tail.len().saturating_sub(MAX_REMEMBERED_BYTES);
        tail.drain(..surplus);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<u8>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the folder of logs. It may have come with a clone, and must not lead elsewhere.
pub(super) fn make_log_folder(path: &Path) -> Option<()> {
    std::fs::create_dir_all(path.parent()?).ok()?;
    create_directory(path).ok()
}

/// Lines out of pieces.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// A line may have so many bytes; what is longer is told in parts.
    const MAX_BYTES: usize = 8 << 10;

    /// Takes a piece, and tells every line that is whole now, as a terminal can show it.
    fn push(&mut self, piece: &[u8], tell: impl Fn(&str)) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(part);
            if part.ends_with(b"\n") || self.0.len() >= Self::MAX_BYTES {
                let text = String::from_utf8_lossy(&self.0);
                let line = sanitize_line(text.trim_end());
                if !line.is_empty() {
                    tell(&line);
                }
                self.0.clear();
            }
        }
    }
}

impl Sink {
    /// Opens the file, again if need be: it may have been removed since.
    fn open(&mut self) {
        self.file = self.opened();
        let data = self.file.as_ref().and_then(|file| file.metadata().ok());
        self.written = data.map_or(0, |data| data.len());
    }

    fn opened(&self) -> Option<File> {
        if !self.kept {
            return None;
        }
        make_log_folder(self.path.parent()?)?;
        File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(nofollow())
            .open(&self.path)
            .ok()
    }

    fn start_over(&mut self) {
        let moved = std::fs::rename(&self.path, self.path.with_extension("log.1"));
        self.file = moved.ok().and_then(|()| self.opened());
        self.written = 0;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.written + bytes.len() as u64 > MAX_FILE_BYTES {
            self.start_over();
        }
        if let Some(open) = &mut self.file {
            match open.write_all(bytes) {
                Ok(()) => self.written += bytes.len() as u64,
                Err(_) => self.file = None,
            }
        }
    }
}
