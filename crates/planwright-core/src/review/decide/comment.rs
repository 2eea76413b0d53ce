//! Adding comments, and settling or reopening their threads.

use crate::id::{CommentId, StepId};
use crate::principal::{Principal, PrincipalKind};
use crate::review::comments::has_step;
use crate::review::{CommentRefusal, Review, ReviewEvent, ReviewRefusal, ReviewState, Thread};

/// A change that a principal asks for in the comments of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum CommentCommand {
    /// Say something: about the plan, about a step, or in answer to another comment.
    Add {
        /// The id of the new comment.
        comment: CommentId,
        /// The step it is about; the plan as a whole when absent.
        on: Option<String>,
        /// The comment it answers; absent when it begins a thread.
        reply_to: Option<String>,
        /// The principal who says it.
        by: Principal,
        /// The text.
        text: String,
    },
    /// Nothing is left to discuss in the thread of this comment.
    Resolve {
        /// Any comment of the thread.
        comment: String,
        /// The principal who settles the thread.
        by: Principal,
    },
    /// Something is left after all.
    Reopen {
        /// Any comment of the thread.
        comment: String,
        /// The principal who opens the thread again.
        by: Principal,
    },
}

impl Review {
    pub(super) fn decide_comment(
        &self,
        command: &CommentCommand,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        if self.state == ReviewState::Deleted {
            return Err(ReviewRefusal::Deleted);
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
}
