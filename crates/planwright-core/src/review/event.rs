//! The events in the journal of a plan.

use super::Terms;
use crate::digest::Digest;
use crate::id::{CommentId, RunId, StepId};
use crate::journal::Journaled;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::review::PlanningRecord;
use crate::trace::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Something that happened to a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ReviewEvent {
    /// A new version was written.
    PlanProposed {
        /// Counted from 1.
        version: u32,
        /// The content.
        document: Arc<Document>,
        /// The digest of what would run, with the tools known then.
        digest: Digest,
        /// The author.
        by: Principal,
        /// The reason for the change, in the author's words.
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
        /// The record of its planning, if a model or a rule of thumb wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planning: Option<Box<PlanningRecord>>,
    },
    /// The draft is put forward as it is.
    DraftProposed {
        /// The version that was a draft.
        version: u32,
        /// The principal who put it forward.
        by: Principal,
    },
    /// A person or policy agreed.
    PlanApproved {
        /// The version that was shown.
        version: u32,
        /// The digest that was on the screen.
        digest: Digest,
        /// The approver.
        by: Principal,
        /// The assurance that it was them.
        assurance: Assurance,
        /// The terms on which it was given.
        #[serde(default, skip_serializing_if = "Terms::is_plain")]
        terms: Terms,
    },
    /// An approver sent the plan back.
    PlanRejected {
        /// The version that was shown.
        version: u32,
        /// The approver.
        by: Principal,
        /// The change that is asked for.
        reason: String,
    },
    /// A run begins and spends the approval of this digest.
    RunOpened {
        /// The id of the run.
        run: RunId,
        /// The version it executes.
        version: u32,
        /// The digest of what it executes.
        digest: Digest,
    },
    /// A run is wanted as soon as the plan is approved. This is no consent: the run starts only on
    /// an approval of exactly this digest.
    RunRequested {
        /// The version that was current.
        version: u32,
        /// The digest of what the run would execute.
        digest: Digest,
        /// The variables of the run.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        variables: Map<String, Value>,
        /// The principal who wants it.
        by: Principal,
        /// The trace of the order, if it came with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceId>,
    },
    /// A run whose journal is damaged was ended: what it did after the damage is not known.
    RunWrittenOff {
        /// The id of the run.
        run: RunId,
        /// The person who accepted the loss.
        by: Principal,
        /// The damage that was found.
        loss: String,
    },
    /// The plan was deleted.
    PlanDeleted {
        /// The principal who deleted it.
        by: Principal,
    },
    /// The author is asked to change something; this is no rejection and counts for no round.
    ChangesRequested {
        /// The version that was shown.
        version: u32,
        /// The approver.
        by: Principal,
        /// The change that is asked for.
        reason: String,
    },
    /// The plan was not touched for so long that it is not waited for any more.
    PlanExpired {
        /// The version that was current.
        version: u32,
        /// For how many days it was not touched.
        after_days: u32,
    },
    /// No run used the approval in time. This is not a no: the plan can be approved again.
    ApprovalExpired {
        /// The version that was current.
        version: u32,
        /// The digest that was approved.
        digest: Digest,
    },
    /// The unused approvals of a principal no longer count: the principal took them back, or lost
    /// their access.
    ApprovalRevoked {
        /// The version that was current.
        version: u32,
        /// The approver.
        of: Principal,
        /// The principal who revoked them.
        by: Principal,
        /// Only those that were given like this; all of them when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        given: Option<Assurance>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The plan was put away: kept, and left out of lists.
    PlanArchived {
        /// The principal who put it away.
        by: Principal,
    },
    /// The plan was brought back to the stage it had.
    PlanUnarchived {
        /// The principal who brought it back.
        by: Principal,
    },
    /// A principal said something about the plan.
    CommentAdded {
        /// The id of the comment.
        comment: CommentId,
        /// The step it is about; the plan as a whole when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<StepId>,
        /// The version that was current.
        version: u32,
        /// The first comment of the thread it belongs to; absent when it begins one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<CommentId>,
        /// The principal who said it.
        by: Principal,
        /// The text.
        text: String,
    },
    /// Nothing is left to discuss in the thread that begins with this comment.
    CommentResolved {
        /// The first comment of the thread.
        comment: CommentId,
        /// The principal who settled it.
        by: Principal,
    },
    /// Something is left to discuss after all.
    CommentReopened {
        /// The first comment of the thread.
        comment: CommentId,
        /// The principal who opened it again.
        by: Principal,
    },
}

impl ReviewEvent {
    /// Returns whether it says something about the plan and changes nothing that is decided on.
    pub(super) const fn is_remark(&self) -> bool {
        matches!(
            self,
            Self::CommentAdded { .. }
                | Self::CommentResolved { .. }
                | Self::CommentReopened { .. }
                | Self::RunRequested { .. }
        )
    }

    /// Returns the name under which the journal knows it.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::PlanProposed { .. } => "plan_proposed",
            Self::DraftProposed { .. } => "draft_proposed",
            Self::PlanApproved { .. } => "plan_approved",
            Self::PlanRejected { .. } => "plan_rejected",
            Self::RunOpened { .. } => "run_opened",
            Self::RunRequested { .. } => "run_requested",
            Self::RunWrittenOff { .. } => "run_written_off",
            Self::PlanDeleted { .. } => "plan_deleted",
            Self::ChangesRequested { .. } => "changes_requested",
            Self::PlanExpired { .. } => "plan_expired",
            Self::ApprovalExpired { .. } => "approval_expired",
            Self::ApprovalRevoked { .. } => "approval_revoked",
            Self::PlanArchived { .. } => "plan_archived",
            Self::PlanUnarchived { .. } => "plan_unarchived",
            Self::CommentAdded { .. } => "comment_added",
            Self::CommentResolved { .. } => "comment_resolved",
            Self::CommentReopened { .. } => "comment_reopened",
        }
    }
}

impl Journaled for ReviewEvent {
    fn unique_key(&self) -> Option<String> {
        match self {
            Self::PlanProposed { version, .. } => Some(format!("version {version}")),
            Self::DraftProposed { version, .. } => Some(format!("proposed {version}")),
            Self::RunOpened { run, .. } => Some(format!("run {run}")),
            Self::RunWrittenOff { run, .. } => Some(format!("written off {run}")),
            Self::CommentAdded { comment, .. } => Some(format!("comment {comment}")),
            Self::PlanApproved { .. }
            | Self::PlanRejected { .. }
            | Self::RunRequested { .. }
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
