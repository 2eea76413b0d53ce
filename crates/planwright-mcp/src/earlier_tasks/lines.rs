//! The input of a client, with requests about tasks under the names by which they reach the server.

use super::names::rename;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

const CHUNK: usize = 8 << 10;
/// A line that is longer is passed on as it comes: whoever reads it refuses it.
const MAX_LINE: usize = 16 << 20;

/// Passes on lines, each as soon as it is whole.
pub(crate) struct RenamedLines<R> {
    inner: R,
    chunk: Box<[u8]>,
    /// A line that has not ended.
    line: Vec<u8>,
    /// What can be passed on, and how much of it was.
    ready: Vec<u8>,
    given: usize,
    /// The line is too long to be kept until it ends.
    is_passing: bool,
}

impl<R> RenamedLines<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            line: Vec::new(),
            ready: Vec::new(),
            given: 0,
            is_passing: false,
        }
    }

    fn take(&mut self, read: usize) {
        for piece in self.chunk[..read].split_inclusive(|byte| *byte == b'\n') {
            let has_ended = piece.ends_with(b"\n");
            if self.is_passing {
                self.ready.extend_from_slice(piece);
                self.is_passing = !has_ended;
                continue;
            }
            self.line.extend_from_slice(piece);
            if has_ended {
                if let Some(renamed) = rename(&self.line) {
                    self.ready.extend(renamed);
                    self.ready.push(b'\n');
                } else {
                    self.ready.append(&mut self.line);
                }
                self.line.clear();
            } else if self.line.len() > MAX_LINE {
                self.ready.append(&mut self.line);
                self.is_passing = true;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for RenamedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = &this.ready[this.given..];
            if !left.is_empty() {
                let now = left.len().min(into.remaining());
                into.put_slice(&left[..now]);
                this.given += now;
                return Poll::Ready(Ok(()));
            }
            this.ready.clear();
            this.given = 0;
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            let read = chunk.filled().len();
            if read == 0 {
                // A last line without its end was cut, and is for the reader to judge.
                if this.line.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.ready.append(&mut this.line);
            }
            this.take(read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    async fn read(written: &[u8]) -> String {
        let mut read = String::new();
        let mut lines = RenamedLines::new(written);
        lines.read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test]
    async fn only_requests_about_tasks_are_changed() {
        let other = "{\"method\":\"ping\",\"id\":1}\r\n";
        let task = "{\"method\":\"tasks/list\",\"id\":2}\n";
        let long = format!("{{\"method\":\"{}\"}}\n", "x".repeat(3 * CHUNK));
        let cut = "{\"method\":\"tasks/li";
        let read = read(format!("{other}{task}{long}{task}{cut}").as_bytes()).await;
        let lines: Vec<&str> = read.split_inclusive('\n').collect();
        assert_eq!([lines[0], lines[2], lines[4]], [other, &long, cut]);
        for changed in [lines[1], lines[3]] {
            assert!(changed.contains("\"planwright/tasks/list\""), "{changed}");
        }
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_kept() {
        let endless = "x".repeat(MAX_LINE + 2 * CHUNK);
        let task = "{\"method\":\"tasks/list\",\"id\":2}\n";
        let read = read(format!("{endless}\n{task}").as_bytes()).await;
        let (first, second) = read.split_once('\n').unwrap();
        assert_eq!(first.len(), endless.len());
        assert!(second.contains("\"planwright/tasks/list\""), "{second}");
    }
}
