//! Messages as lines over the pipes of a child process.

use super::message::{self, Heard, MAX_BYTES};
use super::outline::{Outline, OutlineReader};
use super::wire::{End, Wire};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages between a pipe and the machinery. Few, since one may be large.
const BUFFERED: usize = 8;
const PIPE_BUFFER: usize = 64 << 10;
/// From here on a line is read on a thread that may block.
const LARGE: usize = 256 << 10;
/// The longest line that is passed over. One that is longer may have no end.
const MAX_SKIPPED: usize = 256 << 20;
/// The time that closing waits for the process to be gone. It is killed well before.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub(super) enum SendLineError {
    #[error("the message cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the server is gone")]
    Gone,
}

/// The pipes of one child as a transport.
pub(super) struct Lines {
    heard: mpsc::Receiver<ServerJsonRpcMessage>,
    to_write: mpsc::Sender<Vec<u8>>,
    wire: Arc<Wire>,
    /// The process is gone and reaped.
    reaped: CancellationToken,
}

impl Lines {
    /// Takes the pipes. Both are let go when the connection ends, which is how the child learns of
    /// it.
    pub(super) fn new(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        wire: Arc<Wire>,
        reaped: CancellationToken,
    ) -> Self {
        let (heard_sender, heard) = mpsc::channel(BUFFERED);
        let (to_write, lines) = mpsc::channel(BUFFERED);
        tokio::spawn(listen(stdout, heard_sender, Arc::clone(&wire)));
        tokio::spawn(write(stdin, lines, Arc::clone(&wire)));
        Self {
            heard,
            to_write,
            wire,
            reaped,
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = SendLineError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let line = serde_json::to_vec(&item).map(|mut line| {
            line.push(b'\n');
            line
        });
        let to_write = self.to_write.clone();
        async move { to_write.send(line?).await.map_err(|_| SendLineError::Gone) }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.heard.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A server that fell silent is being asked why; otherwise it is we who close.
        if !self.wire.silent.is_cancelled() {
            self.wire.end(End::Closed);
        }
        // An elapsed timeout changes nothing: the task that watches the process goes on.
        tokio::time::timeout(CLOSE_TIMEOUT, self.reaped.cancelled())
            .await
            .unwrap_or_default();
        Ok(())
    }
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    wire: Arc<Wire>,
) {
    let writing = async {
        while let Some(line) = lines.recv().await {
            if let Err(error) = write_line(&mut stdin, &line).await {
                // A server that ends closes its input as well; why it ends is the better reason.
                tokio::time::timeout(Duration::from_millis(500), wire.wait_until_ended())
                    .await
                    .unwrap_or_default();
                return wire.end(End::Gone(format!("it does not read its input: {error}")));
            }
        }
    };
    tokio::select! {
        // After the end nothing more is sent: the callers that wait were told so.
        biased;
        () = wire.wait_until_ended() => {}
        () = writing => {}
    }
}

async fn write_line(stdin: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    stdin.write_all(line).await?;
    stdin.flush().await
}

async fn listen(
    stdout: impl AsyncRead + Unpin,
    heard: mpsc::Sender<ServerJsonRpcMessage>,
    wire: Arc<Wire>,
) {
    let listening = async {
        let mut lines = BoundedLines::new(BufReader::with_capacity(PIPE_BUFFER, stdout));
        loop {
            match lines.next().await {
                Next::Line(line) => match understand(line, &wire).await {
                    Heard::Message(message) => {
                        if heard.send(*message).await.is_err() {
                            return;
                        }
                    }
                    Heard::Garbage => wire.ignore(),
                    Heard::TooLarge(outline, why) => {
                        let why = format!("its message is too large: {why}");
                        if !pass_over(outline, why, &heard, &wire).await {
                            return;
                        }
                    }
                },
                Next::TooLong => {
                    let why = format!("its message is larger than {} MiB", MAX_BYTES >> 20);
                    // No call waits yet, and a server that begins like this is none.
                    if !wire.settled.load(Ordering::Relaxed) {
                        return wire.end(End::Gone(why));
                    }
                    let (outline, line_ended) = lines.pass_over_line().await;
                    if !pass_over(outline, why, &heard, &wire).await {
                        return;
                    }
                    if !line_ended {
                        let limit = MAX_SKIPPED >> 20;
                        return wire.end(End::Gone(format!(
                            "its message is too large: more than {limit} MiB without an end"
                        )));
                    }
                }
                Next::End => return wire.silent.cancel(),
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = wire.wait_until_ended() => {}
    }
}

/// A message that is too large is the end of the call that it answers, and of no other. Returns
/// whether the connection goes on.
async fn pass_over(
    outline: Outline,
    why: String,
    heard: &mpsc::Sender<ServerJsonRpcMessage>,
    wire: &Wire,
) -> bool {
    let instead = match outline {
        Outline::Answer(id) => message::too_large(id, why),
        Outline::Request(id) => message::too_large_request(id),
        Outline::Noise => {
            wire.ignore();
            return true;
        }
        // Some call would wait for its answer for ever, and the message does not say which.
        Outline::Unknown => {
            wire.end(End::Gone(format!(
                "{why}, which is too large, and which call it answers cannot be told"
            )));
            return false;
        }
    };
    heard.send(instead).await.is_ok()
}

async fn understand(line: Vec<u8>, wire: &Wire) -> Heard {
    let handshake = !wire.settled.load(Ordering::Relaxed);
    if line.len() < LARGE {
        // Of a flood only so many are read as are passed on.
        if message::is_log(&line) && !wire.takes_log() {
            return Heard::Garbage;
        }
        return message::read(&line, handshake);
    }
    // A reader that panicked would be a bug of ours; the line then counts as unreadable.
    tokio::task::spawn_blocking(move || message::read(&line, handshake))
        .await
        .unwrap_or(Heard::Garbage)
}

/// Reads lines without a process behind them, and counts the messages until one is too large.
pub(super) async fn count_messages(written: &[u8], handshake: bool) -> usize {
    let mut lines = BoundedLines::new(written);
    let mut messages = 0;
    while let Next::Line(line) = lines.next().await {
        match message::read(&line, handshake) {
            Heard::Message(_) => messages += 1,
            Heard::Garbage => {}
            Heard::TooLarge(..) => break,
        }
    }
    messages
}

enum Next {
    Line(Vec<u8>),
    TooLong,
    End,
}

/// Lines of bytes, none of them longer than is read.
struct BoundedLines<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> BoundedLines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
        }
    }

    /// The next line. A last line without its end is no line: it was cut.
    async fn next(&mut self) -> Next {
        loop {
            let chunk = match self.reader.fill_buf().await {
                Ok([]) | Err(_) => return Next::End,
                Ok(chunk) => chunk,
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if self.line.len() + taken > MAX_BYTES {
                return Next::TooLong;
            }
            self.line.extend_from_slice(&chunk[..taken]);
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Next::Line(std::mem::take(&mut self.line));
            }
        }
    }

    /// Passes over the rest of a line that is too long, without keeping it. Returns what can be told
    /// of it, and whether it ended.
    async fn pass_over_line(&mut self) -> (Outline, bool) {
        let begun = std::mem::take(&mut self.line);
        let mut skipped = begun.len();
        let read_begun = tokio::task::spawn_blocking(move || {
            let mut reader = OutlineReader::default();
            reader.read(&begun);
            reader
        });
        // A reader that panicked would be a bug of ours; nothing is known of the line then.
        let Ok(mut reader) = read_begun.await else {
            return (Outline::Unknown, false);
        };
        while skipped <= MAX_SKIPPED {
            let chunk = match self.reader.fill_buf().await {
                // It was cut: the server is gone, and what it meant to say is unknown.
                Ok([]) | Err(_) => return (Outline::Noise, true),
                Ok(chunk) => chunk,
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            reader.read(&chunk[..taken]);
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return (reader.outline(), true);
            }
            skipped += taken;
        }
        (reader.outline(), false)
    }
}
