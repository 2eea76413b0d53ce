//! What can be written into the journal of a plan.

use super::Terms;
use crate::digest::Digest;
use crate::id::{CommentId, RunId, StepId};
use crate::journal::Journaled;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::review::PlanningRecord;
use crate::trace::TraceId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Something that happened to a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ReviewEvent {
    PlanProposed {
        version: u32,
        document: Arc<Document>,
        digest: Digest,
        by: Principal,
        /// Why it was changed, in the author's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The earlier version whose content this one has again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored_from: Option<u32>,
        /// Not put forward yet: no approver is asked about it and nothing of it runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        draft: bool,
        /// The trace of the order that brought it, if it came with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceId>,
        /// How it came about, if a model or a rule of thumb wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planning: Option<Box<PlanningRecord>>,
    },
    /// The draft is put forward as it is.
    DraftProposed {
        version: u32,
        by: Principal,
    },
    PlanApproved {
        version: u32,
        /// What was on the screen.
        digest: Digest,
        by: Principal,
        assurance: Assurance,
        #[serde(default, skip_serializing_if = "Terms::is_plain")]
        terms: Terms,
    },
    PlanRejected {
        version: u32,
        by: Principal,
        reason: String,
    },
    /// A run begins and spends the approval of this digest.
    RunOpened {
        run: RunId,
        version: u32,
        digest: Digest,
    },
    PlanDeleted {
        by: Principal,
    },
    /// The author is asked to change something; this is no rejection and counts for no round.
    ChangesRequested {
        version: u32,
        by: Principal,
        reason: String,
    },
    /// The plan was not touched for so long that it is not waited for any more.
    PlanExpired {
        version: u32,
        after_days: u32,
    },
    /// No run used the approval in time. This is not a no: the plan can be approved again.
    ApprovalExpired {
        version: u32,
        digest: Digest,
    },
    /// The unused approvals of a principal no longer count: the principal took them back, or lost
    /// their access.
    ApprovalRevoked {
        version: u32,
        /// Whose approvals.
        of: Principal,
        by: Principal,
        /// Only those that were given like this; all of them when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        given: Option<Assurance>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The plan was put away: kept, and left out of lists.
    PlanArchived {
        by: Principal,
    },
    PlanUnarchived {
        by: Principal,
    },
    CommentAdded {
        comment: CommentId,
        /// The step it is about; the plan as a whole when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<StepId>,
        /// The version that was current.
        version: u32,
        /// The first comment of the thread it belongs to; absent when it begins one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<CommentId>,
        by: Principal,
        text: String,
    },
    /// Nothing is left to discuss in the thread that begins with this comment.
    CommentResolved {
        comment: CommentId,
        by: Principal,
    },
    CommentReopened {
        comment: CommentId,
        by: Principal,
    },
}

impl Journaled for ReviewEvent {
    fn unique_key(&self) -> Option<String> {
        match self {
            Self::PlanProposed { version, .. } => Some(format!("version {version}")),
            Self::DraftProposed { version, .. } => Some(format!("proposed {version}")),
            Self::RunOpened { run, .. } => Some(format!("run {run}")),
            Self::CommentAdded { comment, .. } => Some(format!("comment {comment}")),
            Self::PlanApproved { .. }
            | Self::PlanRejected { .. }
            | Self::PlanDeleted { .. }
            | Self::ChangesRequested { .. }
            | Self::PlanExpired { .. }
            | Self::ApprovalExpired { .. }
            | Self::ApprovalRevoked { .. }
            | Self::PlanArchived { .. }
            | Self::PlanUnarchived { .. }
            | Self::CommentResolved { .. }
            | Self::CommentReopened { .. } => None,
        }
    }
}
