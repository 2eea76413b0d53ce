//! The comments of people and agents: threads, about the plan or about one of its steps.
//!
//! A comment is words and never more: nothing in it is an approval, a command or a template.

use super::Review;
use crate::id::{CommentId, StepId};
use crate::plan::Document;
use crate::principal::Principal;
use crate::time::Timestamp;

/// One comment by one principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The comment's id.
    pub id: CommentId,
    /// The principal who said it.
    pub by: Principal,
    /// The text.
    pub text: String,
    /// The version that was current.
    pub version: u32,
    /// The time at which it was said.
    pub at: Timestamp,
}

/// A comment and the answers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The step it is about; the plan as a whole when absent. It stays, also when a later version
    /// has no such step.
    pub on: Option<StepId>,
    /// The comment that began it.
    pub first: Comment,
    /// The answers, oldest first.
    pub replies: Vec<Comment>,
    /// The principal who settled it; absent while something is left to discuss.
    pub resolved: Option<Resolved>,
}

/// The principal who says that nothing is left to discuss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The principal who settled the thread.
    pub by: Principal,
    /// The time at which they did.
    pub at: Timestamp,
}

impl Thread {
    /// The id of the thread: that of its first comment.
    pub fn id(&self) -> &CommentId {
        &self.first.id
    }

    /// All that was said, in order.
    pub fn comments(&self) -> impl Iterator<Item = &Comment> {
        std::iter::once(&self.first).chain(&self.replies)
    }

    /// Returns true if something is left to discuss.
    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// Returns true if the step it is about is not in this document any more.
    pub fn is_outdated(&self, document: &Document) -> bool {
        self.on
            .as_ref()
            .is_some_and(|step| !has_step(document, step.as_str()))
    }

    fn has(&self, comment: &str) -> bool {
        self.comments().any(|known| known.id.as_str() == comment)
    }
}

/// Returns true if the document has a step that goes by this id, or by its place in the list.
pub(super) fn has_step(document: &Document, id: &str) -> bool {
    document
        .steps
        .iter()
        .zip(1_usize..)
        .any(|(step, number)| match &step.id {
            Some(step) => step.as_str() == id,
            None => id == number.to_string(),
        })
}

impl Review {
    /// A comment longer than this is refused.
    pub const MAX_COMMENT_BYTES: usize = 64 * 1024;
    /// A plan has at most this many comments, answers included.
    pub const MAX_COMMENTS: usize = 1000;

    /// Every thread, oldest first.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The threads in which something is left to discuss, oldest first. The planner of the next
    /// version is told them.
    pub fn open_threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.is_open())
    }

    /// The thread that this comment begins or belongs to.
    pub fn thread_of(&self, comment: &str) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.has(comment))
    }

    /// Notes a comment, unless the thread it answers is missing.
    pub(super) fn note_comment(
        &mut self,
        comment: Comment,
        on: Option<&StepId>,
        reply_to: Option<&CommentId>,
    ) -> Option<()> {
        match reply_to {
            Some(root) => self.thread_mut(root)?.replies.push(comment),
            None => self.threads.push(Thread {
                on: on.cloned(),
                first: comment,
                replies: Vec::new(),
                resolved: None,
            }),
        }
        Some(())
    }

    /// Notes that a thread was settled, or is open again, unless it is so already.
    pub(super) fn note_settled(
        &mut self,
        root: &CommentId,
        resolved: Option<Resolved>,
    ) -> Option<()> {
        let thread = self.thread_mut(root)?;
        if thread.resolved.is_some() == resolved.is_some() {
            return None;
        }
        thread.resolved = resolved;
        Some(())
    }

    fn thread_mut(&mut self, root: &CommentId) -> Option<&mut Thread> {
        self.threads
            .iter_mut()
            .find(|thread| thread.first.id == *root)
    }
}
