//! Kinds, codes and next steps of the refusals of reviews.

use super::{CommentRefusal, ReviewRefusal};
use crate::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use crate::run::Refusal;

impl ClassifiedError for ReviewRefusal {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Conflict, Forbidden, Invalid, NotFound, Waiting};
        match self {
            Self::Exists(_) => Conflict.with_code("plan_exists"),
            Self::Deleted => NotFound.with_code("plan_deleted"),
            Self::NothingToDecide(_) => Conflict.with_code("nothing_to_decide"),
            Self::Rejected => Waiting.with_code("plan_rejected"),
            Self::NotApproved => Waiting.with_code("not_approved"),
            Self::Changed { .. } => Conflict.with_code("plan_changed"),
            Self::Expired { .. } => Waiting.with_code("approval_expired"),
            Self::Revoked { .. } => Waiting.with_code("approval_revoked"),
            Self::MayNotRevoke { .. } => Forbidden.with_code("may_not_revoke"),
            Self::NothingToRevoke(_) => Conflict.with_code("nothing_to_revoke"),
            Self::NotEnough { .. } => Waiting.with_code("approvals_missing"),
            Self::FourEyes(_) => Forbidden.with_code("four_eyes"),
            Self::InPerson(_) => Forbidden.with_code("in_person"),
            Self::Passkey(_) => Forbidden.with_code("passkey_needed"),
            Self::NeedsPerson => Forbidden.with_code("needs_person"),
            Self::DigestNeeded => Conflict.with_code("digest_needed"),
            Self::ApprovedWider { .. } => Conflict.with_code("approved_wider"),
            Self::PolicyAsks(_) => Forbidden.with_code("policy_asks"),
            Self::SafeguardLost(_) => Forbidden.with_code("safeguard_lost"),
            Self::Conflict { .. } => Conflict.with_code("version_conflict"),
            Self::Draft => Waiting.with_code("plan_is_draft"),
            Self::NotADraft(_) => Conflict.with_code("not_a_draft"),
            Self::NoSteps => Conflict.with_code("no_steps"),
            Self::Fallback => Waiting.with_code("fallback_draft"),
            Self::NoSuchVersion(_) => NotFound.with_code("unknown_version"),
            Self::TooManyVersions(_) => Conflict.with_code("too_many_versions"),
            Self::ReasonTooLong(_) => Invalid.with_code("reason_too_long"),
            Self::NoSuchRun(_) => NotFound.with_code("unknown_run"),
            Self::Executing => Conflict.with_code("plan_executing"),
            Self::ChangesRequested => Waiting.with_code("changes_requested"),
            Self::PlanExpired => Waiting.with_code("plan_expired"),
            Self::Archived => Conflict.with_code("plan_archived"),
            Self::NotArchived => Conflict.with_code("not_archived"),
            Self::NotOver(_) => Conflict.with_code("plan_not_over"),
            Self::OpenThreads { .. } => Waiting.with_code("open_comments"),
            Self::Comment(refusal) => refusal.class(),
            Self::Decision(refusal) => refusal.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Exists(plan) => Some(Hint::EditPlan(plan.clone())),
            Self::Expired { .. } => Some(Hint::RenewApproval),
            Self::Revoked { .. } => Some(Hint::ReplaceRevokedApproval),
            Self::NotEnough { .. } => Some(Hint::AskAnotherApprover),
            Self::ApprovedWider { plan, .. } => Some(Hint::RevokeApproval(plan.clone())),
            Self::SafeguardLost(_) => Some(Hint::AskPerson),
            Self::Conflict { based_on, .. } => Some(Hint::CompareVersions {
                based_on: *based_on,
            }),
            Self::Draft => Some(Hint::Propose),
            Self::Passkey(_) => Some(Hint::UsePasskey),
            Self::NoSteps => Some(Hint::AddStep),
            Self::Fallback => Some(Hint::ReviewDraft),
            Self::NoSuchVersion(_) => Some(Hint::ListVersions),
            Self::Archived => Some(Hint::Unarchive),
            Self::DigestNeeded => Some(Hint::ApproveCurrent),
            Self::OpenThreads { .. } => Some(Hint::ResolveComments),
            Self::Comment(refusal) => refusal.hint(),
            Self::Decision(Refusal::Stale { .. }) => Some(Hint::ApproveCurrent),
            Self::Decision(refusal) => refusal.hint(),
            Self::Deleted
            | Self::NothingToDecide(_)
            | Self::Rejected
            | Self::NotApproved
            | Self::Changed { .. }
            | Self::MayNotRevoke { .. }
            | Self::NothingToRevoke(_)
            | Self::FourEyes(_)
            | Self::InPerson(_)
            | Self::NeedsPerson
            | Self::PolicyAsks(_)
            | Self::NotADraft(_)
            | Self::TooManyVersions(_)
            | Self::ReasonTooLong(_)
            | Self::NoSuchRun(_)
            | Self::Executing
            | Self::ChangesRequested
            | Self::PlanExpired
            | Self::NotArchived
            | Self::NotOver(_) => None,
        }
    }
}

impl ClassifiedError for CommentRefusal {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Conflict, Forbidden, Invalid, NotFound};
        match self {
            Self::Empty => Invalid.with_code("comment_empty"),
            Self::TooLong { .. } => Invalid.with_code("comment_too_long"),
            Self::TooMany => Conflict.with_code("too_many_comments"),
            Self::NoSuchComment(_) => NotFound.with_code("unknown_comment"),
            Self::NoSuchStep(_) => NotFound.with_code("unknown_step"),
            Self::ReplyWithStep => Invalid.with_code("reply_with_step"),
            Self::Already(_) => Conflict.with_code("thread_unchanged"),
            Self::MayNotResolve(_) => Forbidden.with_code("may_not_resolve"),
            Self::Duplicate(_) => Conflict.with_code("comment_exists"),
        }
    }
}
