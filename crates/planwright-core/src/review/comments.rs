//! What people and agents say about a plan: threads, about the plan or about one of its steps.
//!
//! A comment is words and never more: nothing in it is an approval, a command or a template.

use super::{Review, ReviewEvent, ReviewState};
use crate::id::{CommentId, StepId};
use crate::plan::Document;
use crate::principal::{Principal, PrincipalKind};
use crate::time::Timestamp;

/// One comment by one principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub id: CommentId,
    pub by: Principal,
    pub text: String,
    /// The version that was current.
    pub version: u32,
    pub at: Timestamp,
}

/// A comment and the answers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The step it is about; the plan as a whole when absent. It stays, also when a later version
    /// has no such step.
    pub on: Option<StepId>,
    pub first: Comment,
    pub replies: Vec<Comment>,
    pub resolved: Option<Resolved>,
}

/// Who says that nothing is left to discuss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub by: Principal,
    pub at: Timestamp,
}

/// A change that a principal asks for in the comments of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum CommentCommand {
    /// Say something: about the plan, about a step, or in answer to another comment.
    Add {
        comment: CommentId,
        on: Option<String>,
        reply_to: Option<String>,
        by: Principal,
        text: String,
    },
    /// Nothing is left to discuss in the thread of this comment.
    Resolve { comment: String, by: Principal },
    /// Something is left after all.
    Reopen { comment: String, by: Principal },
}

/// Why a comment was not taken. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommentRefusal {
    #[error("a comment must not be empty")]
    Empty,
    #[error(
        "a comment has at most {} bytes, this one has {bytes}",
        Review::MAX_COMMENT_BYTES
    )]
    TooLong { bytes: usize },
    #[error("a plan has at most {} comments", Review::MAX_COMMENTS)]
    TooMany,
    #[error("there is no comment `{0}`")]
    NoSuchComment(String),
    #[error("the plan has no step `{0}`")]
    NoSuchStep(String),
    #[error("an answer belongs to the thread it answers: it names no step")]
    ReplyWithStep,
    #[error("the thread is {0} already")]
    Already(&'static str),
    #[error("{0} may not settle this thread: a person does, or the one who began it")]
    MayNotResolve(Principal),
    #[error("there is a comment `{0}` already")]
    Duplicate(CommentId),
}

impl Thread {
    pub fn id(&self) -> &CommentId {
        &self.first.id
    }

    /// All that was said, in order.
    pub fn comments(&self) -> impl Iterator<Item = &Comment> {
        std::iter::once(&self.first).chain(&self.replies)
    }

    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// The step it is about is not in this document any more.
    pub fn is_outdated(&self, document: &Document) -> bool {
        self.on
            .as_ref()
            .is_some_and(|step| !has_step(document, step.as_str()))
    }

    fn has(&self, comment: &str) -> bool {
        self.comments().any(|known| known.id.as_str() == comment)
    }
}

fn has_step(document: &Document, id: &str) -> bool {
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

    pub(super) fn decide_comment(
        &self,
        command: &CommentCommand,
    ) -> Result<Vec<ReviewEvent>, super::Refusal> {
        if self.state == ReviewState::Deleted {
            return Err(super::Refusal::Deleted);
        }
        let event = match command {
            CommentCommand::Add {
                comment,
                on,
                reply_to,
                by,
                text,
            } => self.decide_add(comment, on.as_deref(), reply_to.as_deref(), by, text)?,
            CommentCommand::Resolve { comment, by } => {
                let thread = self.thread_to_settle(comment, by)?;
                if !thread.is_open() {
                    return Err(CommentRefusal::Already("resolved").into());
                }
                ReviewEvent::CommentResolved {
                    comment: thread.id().clone(),
                    by: by.clone(),
                }
            }
            CommentCommand::Reopen { comment, by } => {
                let thread = self.thread_to_settle(comment, by)?;
                if thread.is_open() {
                    return Err(CommentRefusal::Already("open").into());
                }
                ReviewEvent::CommentReopened {
                    comment: thread.id().clone(),
                    by: by.clone(),
                }
            }
        };
        Ok(vec![event])
    }

    fn decide_add(
        &self,
        comment: &CommentId,
        on: Option<&str>,
        reply_to: Option<&str>,
        by: &Principal,
        text: &str,
    ) -> Result<ReviewEvent, CommentRefusal> {
        if text.trim().is_empty() {
            return Err(CommentRefusal::Empty);
        }
        if text.len() > Self::MAX_COMMENT_BYTES {
            return Err(CommentRefusal::TooLong { bytes: text.len() });
        }
        if self.comment_count() >= Self::MAX_COMMENTS {
            return Err(CommentRefusal::TooMany);
        }
        if self.thread_of(comment.as_str()).is_some() {
            return Err(CommentRefusal::Duplicate(comment.clone()));
        }
        let reply_to = match reply_to {
            Some(_) if on.is_some() => return Err(CommentRefusal::ReplyWithStep),
            // An answer to an answer belongs to the thread.
            Some(answered) => Some(self.known_thread(answered)?.id().clone()),
            None => None,
        };
        let on = match on {
            Some(step) => Some(self.known_step(step)?),
            None => None,
        };
        let version = self.current().number;
        let by = by.clone();
        let text = text.to_owned();
        Ok(ReviewEvent::CommentAdded {
            comment: comment.clone(),
            on,
            version,
            reply_to,
            by,
            text,
        })
    }

    fn known_step(&self, step: &str) -> Result<StepId, CommentRefusal> {
        let unknown = || CommentRefusal::NoSuchStep(step.to_owned());
        let id: StepId = step.parse().map_err(|_| unknown())?;
        if has_step(&self.current().document, id.as_str()) {
            Ok(id)
        } else {
            Err(unknown())
        }
    }

    fn known_thread(&self, comment: &str) -> Result<&Thread, CommentRefusal> {
        self.thread_of(comment)
            .ok_or_else(|| CommentRefusal::NoSuchComment(comment.to_owned()))
    }

    fn thread_to_settle(&self, comment: &str, by: &Principal) -> Result<&Thread, CommentRefusal> {
        let thread = self.known_thread(comment)?;
        if by.kind == PrincipalKind::Person || thread.first.by == *by {
            return Ok(thread);
        }
        Err(CommentRefusal::MayNotResolve(by.clone()))
    }

    fn comment_count(&self) -> usize {
        self.threads
            .iter()
            .map(|thread| 1 + thread.replies.len())
            .sum()
    }

    /// Notes a comment. Returns whether the thread it answers is there.
    pub(super) fn note_comment(
        &mut self,
        comment: Comment,
        on: Option<&StepId>,
        reply_to: Option<&CommentId>,
    ) -> bool {
        match reply_to {
            Some(root) => match self.thread_mut(root) {
                Some(thread) => thread.replies.push(comment),
                None => return false,
            },
            None => {
                let on = on.cloned();
                let replies = Vec::new();
                self.threads.push(Thread {
                    on,
                    first: comment,
                    replies,
                    resolved: None,
                });
            }
        }
        true
    }

    /// Notes that a thread was settled, or is open again. Returns whether that can be.
    pub(super) fn note_settled(&mut self, root: &CommentId, resolved: Option<Resolved>) -> bool {
        let Some(thread) = self.thread_mut(root) else {
            return false;
        };
        if thread.resolved.is_some() == resolved.is_some() {
            return false;
        }
        thread.resolved = resolved;
        true
    }

    fn thread_mut(&mut self, root: &CommentId) -> Option<&mut Thread> {
        self.threads
            .iter_mut()
            .find(|thread| thread.first.id == *root)
    }
}
