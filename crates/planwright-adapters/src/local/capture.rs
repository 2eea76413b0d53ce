//! What is kept of a stream that may be endless.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The bytes returned of one stream.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The bytes shown of a stream's end when a command fails.
const TAIL_BYTES: usize = 2048;

/// The beginning of a stream, and its last bytes. The rest is read, so that the writer is not held
/// up, and dropped.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    pub(super) truncated: bool,
}

impl Capture {
    /// Reads to the end. Dropped before that, it has what was read so far.
    pub(crate) async fn drain(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        // An error ends the stream as its end would: what matters is how the command ends.
        while let Ok(n @ 1..) = stream.read(&mut buffer).await {
            self.push(&buffer[..n]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (kept, dropped) = bytes.split_at(bytes.len().min(MAX_BYTES - self.head.len()));
        self.head.extend_from_slice(kept);
        self.truncated |= !dropped.is_empty();
        self.tail.extend_from_slice(bytes);
        self.tail
            .drain(..self.tail.len().saturating_sub(TAIL_BYTES));
    }

    /// The beginning as text. What is not UTF-8 becomes U+FFFD.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// The end as text.
    pub(crate) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_stream_keeps_its_beginning_and_its_end() {
        let mut capture = Capture::default();
        capture.push(b"first");
        for _ in 0..100 {
            capture.push(&[b'x'; 16 << 10]);
        }
        capture.push(b"last");
        assert!(capture.truncated);
        assert_eq!(capture.text().len(), MAX_BYTES);
        assert!(capture.text().starts_with("first"));
        assert!(capture.tail().ends_with("last"));
        assert!(capture.tail.capacity() < 64 << 10);
    }

    #[test]
    fn a_stream_that_fits_exactly_is_whole() {
        let mut capture = Capture::default();
        capture.push(&vec![b'x'; MAX_BYTES]);
        assert!(!capture.truncated);
    }
}
