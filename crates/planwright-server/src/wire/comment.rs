//! What was said about a plan.

use super::schema::PrincipalShape;
use planwright_core::plan::Document;
use planwright_core::principal::Principal;
use planwright_core::review::{Comment, Review, Thread};
use serde::Serialize;
use utoipa::ToSchema;

/// A comment and the answers to it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    /// The id of the first comment.
    pub id: String,
    /// The step it is about; the plan as a whole when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The step is not in the current version any more.
    pub outdated: bool,
    /// Nothing is left to discuss.
    pub resolved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PrincipalShape>)]
    pub resolved_by: Option<Principal>,
    /// All that was said, in order.
    pub comments: Vec<CommentLine>,
}

/// One thing somebody said.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CommentLine {
    pub id: String,
    #[schema(value_type = PrincipalShape)]
    pub by: Principal,
    pub text: String,
    /// The version that was current.
    pub version: u32,
    pub at: String,
}

impl ThreadLine {
    /// All threads of a plan, the oldest first.
    pub fn all(review: &Review) -> Vec<Self> {
        review.threads().iter().map(|thread| Self::new(thread, &review.current().document)).collect()
    }

    pub fn new(thread: &Thread, current: &Document) -> Self {
        Self {
            id: thread.id().to_string(),
            step: thread.on.as_ref().map(ToString::to_string),
            outdated: thread.is_outdated(current),
            resolved: !thread.is_open(),
            resolved_by: thread.resolved.as_ref().map(|resolved| resolved.by.clone()),
            comments: thread.comments().map(CommentLine::new).collect(),
        }
    }
}

impl CommentLine {
    fn new(comment: &Comment) -> Self {
        Self {
            id: comment.id.to_string(),
            by: comment.by.clone(),
            text: comment.text.clone(),
            version: comment.version,
            at: comment.at.to_string(),
        }
    }
}
