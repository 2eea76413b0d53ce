//! Lines for stderr that wait in a queue.
//!
//! A terminal that was stopped, or a pipe that is not read, takes nothing, and a thread that writes to it
//! waits for ever. In a service every thread writes a log, so a thread of its own does the writing, and
//! beyond a limit lines are left out and counted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Bytes that wait to be written. A reader that is slow for a while loses nothing.
const MAX_WAITING: usize = 4 << 20;

/// The time the end of the program waits for a reader.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The queue of this process, once it has one.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Lines that wait.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<String>,
    bytes: usize,
    left_out: u64,
    /// A line was taken out and is not written yet.
    writing: bool,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Counts are whole after every statement that changes them.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a line at the end, if there is room.
    fn push(&self, line: String) {
        let mut waiting = self.waiting();
        if waiting.bytes.saturating_add(line.len()) > MAX_WAITING {
            waiting.left_out = waiting.left_out.saturating_add(1);
        } else {
            waiting.bytes += line.len();
            waiting.lines.push_back(line);
        }
        drop(waiting);
        self.changed.notify_all();
    }

    /// Waits for the next text to write: a line, or how many there are no more.
    fn next(&self) -> String {
        let mut waiting = self.waiting();
        waiting.writing = false;
        self.changed.notify_all();
        loop {
            let text = waiting.lines.pop_front();
            if let Some(line) = text {
                waiting.bytes -= line.len();
                waiting.writing = true;
                return line;
            }
            if waiting.left_out > 0 {
                let left_out = std::mem::take(&mut waiting.left_out);
                waiting.writing = true;
                return format!("{left_out} lines of the log were left out: stderr was not read\n");
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until everything is written, but not for ever.
    fn flush(&self, most: Duration) {
        let busy = |waiting: &mut Waiting| {
            waiting.writing || !waiting.lines.is_empty() || waiting.left_out > 0
        };
        // What could not be written by then is lost, as it is when a process is killed.
        drop(self.changed.wait_timeout_while(self.waiting(), most, busy));
    }
}

/// From here on lines wait in a queue, and no thread that writes one waits for its reader.
pub(super) fn start_queue() -> io::Result<()> {
    // A copy of its own: a thread that waits to write holds no lock that others need.
    let mut to = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let queue = Arc::new(Queue::default());
    let taken = Arc::clone(&queue);
    std::thread::Builder::new()
        .name("stderr".to_owned())
        .spawn(move || {
            loop {
                // A closed stderr is no reason to fail.
                drop(to.write_all(taken.next().as_bytes()));
            }
        })?;
    // The first one stays: it is the one that others write to.
    drop(QUEUE.set(queue));
    Ok(())
}

/// Lines that are held back, while a full screen would be painted over.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Bytes of lines that are held back. What comes later is left out.
const MAX_HELD: usize = 64 << 10;

fn held() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on lines are kept, and not written.
pub(crate) fn hold_back() {
    held().get_or_insert_default();
}

/// Returns whether lines are held back.
pub(crate) fn is_held_back() -> bool {
    held().is_some()
}

/// Takes the lines that were held back since the last time.
pub(crate) fn take_held() -> String {
    held().as_mut().map(std::mem::take).unwrap_or_default()
}

/// From here on lines are written again, those that were held back first.
pub(crate) fn release() {
    let text = held().take().unwrap_or_default();
    if !text.is_empty() {
        write(&text);
    }
}

/// Writes lines to stderr, each with its end. A closed stderr is no reason to fail.
pub(crate) fn write(text: &str) {
    if let Some(kept) = held().as_mut() {
        if kept.len() + text.len() <= MAX_HELD {
            kept.push_str(text);
        }
        return;
    }
    match QUEUE.get() {
        Some(queue) => queue.push(text.to_owned()),
        None => drop(io::stderr().lock().write_all(text.as_bytes())),
    }
}

/// Waits for what was written, if that needs no long wait.
pub(crate) fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LAST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_and_counted() {
        let queue = Queue::default();
        let line = format!("{}\n", "x".repeat(MAX_WAITING / 4));
        for _ in 0..7 {
            queue.push(line.clone());
        }
        for _ in 0..3 {
            assert_eq!(queue.next(), line);
        }
        assert_eq!(
            queue.next(),
            "4 lines of the log were left out: stderr was not read\n"
        );
        queue.push("after\n".to_owned());
        assert_eq!(queue.next(), "after\n");
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_is_not_there() {
        let queue = Queue::default();
        queue.push("a\n".to_owned());
        queue.flush(Duration::from_millis(1));
        assert_eq!(queue.next(), "a\n");
    }
}
