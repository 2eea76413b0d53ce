//! Comments on plans as other programs see them.

use planwright_core::plan::Document;
use planwright_core::review::{Comment, Review, Thread};
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use utoipa::ToSchema;

/// One thread: a comment and the answers to it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    /// The id of its first comment.
    pub id: String,
    /// The step it is about; absent for the plan as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub state: ThreadWord,
    /// The current version does not have the step any more.
    pub outdated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<String>,
    /// The comments before these are left out here: they are on the page before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// Oldest first.
    pub comments: Vec<CommentLine>,
}

/// Whether anything is left to discuss in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ThreadState)]
#[serde(rename_all = "lowercase")]
pub enum ThreadWord {
    Open,
    Resolved,
}

impl fmt::Display for ThreadWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
        })
    }
}

/// One comment, as its author wrote it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentLine {
    pub id: String,
    /// Kind and name, as `person ada`.
    pub by: String,
    /// Words. Never markup, and never a command.
    pub text: String,
    /// The version that was current.
    pub version: u32,
    pub at: String,
}

impl ThreadLine {
    pub fn new(thread: &Thread, document: &Document) -> Self {
        Self::part(thread, document, 0..usize::MAX)
    }

    /// The thread with some of its comments.
    pub fn part(thread: &Thread, document: &Document, comments: Range<usize>) -> Self {
        let resolved = thread.resolved.as_ref();
        Self {
            id: thread.id().to_string(),
            step: thread.on.as_ref().map(ToString::to_string),
            state: if thread.is_open() {
                ThreadWord::Open
            } else {
                ThreadWord::Resolved
            },
            outdated: thread.is_outdated(document),
            resolved_by: resolved.map(|resolved| resolved.by.to_string()),
            resolved_at: resolved.map(|resolved| resolved.at.to_string()),
            continued: comments.start > 0,
            comments: thread
                .comments()
                .skip(comments.start)
                .take(comments.len())
                .map(CommentLine::new)
                .collect(),
        }
    }

    /// All threads of a plan, oldest first.
    pub fn all(review: &Review) -> Vec<Self> {
        let document = &review.current().document;
        review
            .threads()
            .iter()
            .map(|thread| Self::new(thread, document))
            .collect()
    }
}

impl CommentLine {
    pub fn new(comment: &Comment) -> Self {
        Self {
            id: comment.id.to_string(),
            by: comment.by.to_string(),
            text: comment.text.clone(),
            version: comment.version,
            at: comment.at.to_string(),
        }
    }
}
