//! Threads of comments as far as there is room for them: one thread may have many megabytes.

use planwright_api::{CommentLine, ThreadLine};
use planwright_core::plan::Document;
use planwright_core::review::{Comment, Review, Thread};

/// Bytes of the comments in an answer about something else.
const MAX_BYTES: usize = 1 << 20;

/// Threads in the document of a plan.
const MAX_THREADS: usize = 200;

/// The comments of a thread from this one on that fit into so many bytes, and at least one. Returns
/// how many of the thread were given by then.
pub(crate) fn thread_within(
    thread: &Thread,
    document: &Document,
    (first, bytes): (usize, usize),
) -> (ThreadLine, usize) {
    let fitting = fitting(thread.comments().skip(first), bytes).max(1);
    let end = first.saturating_add(fitting);
    (ThreadLine::part(thread, document, first..end), end)
}

/// The newest comments of a thread, and at least one.
pub(crate) fn newest_part(thread: &Thread, document: &Document) -> ThreadLine {
    let count = thread.comments().count();
    let fitting = fitting(newest_first(thread), MAX_BYTES).max(1);
    ThreadLine::part(thread, document, count.saturating_sub(fitting)..count)
}

/// The newest threads, oldest first, and how many comments are left out before them.
pub(super) fn newest_threads(review: &Review) -> (Vec<ThreadLine>, usize) {
    let document = &review.current().document;
    let mut left = MAX_BYTES;
    let mut lines = Vec::new();
    let mut left_out = 0;
    for thread in review.threads().iter().rev() {
        let count = thread.comments().count();
        let fitting = match left_out == 0 && lines.len() < MAX_THREADS {
            true => fitting(newest_first(thread), left),
            false => 0,
        };
        left_out += count - fitting;
        if fitting > 0 {
            let part = ThreadLine::part(thread, document, count - fitting..count);
            let bytes: usize = thread.comments().skip(count - fitting).map(size).sum();
            left = left.saturating_sub(bytes);
            lines.push(part);
        }
    }
    lines.reverse();
    (lines, left_out)
}

fn newest_first(thread: &Thread) -> impl Iterator<Item = &Comment> {
    thread
        .replies
        .iter()
        .rev()
        .chain(std::iter::once(&thread.first))
}

/// How many of these comments fit into so many bytes.
fn fitting<'a>(comments: impl Iterator<Item = &'a Comment>, bytes: usize) -> usize {
    let mut left = bytes;
    comments
        .take_while(|comment| match left.checked_sub(size(comment)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count()
}

/// Bytes of a comment in an answer.
fn size(comment: &Comment) -> usize {
    serde_json::to_vec(&CommentLine::new(comment)).map_or(usize::MAX, |json| json.len() + 1)
}
