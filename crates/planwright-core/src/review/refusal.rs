//! Commands that may not happen, and why.

use super::{Review, Revocation};
use crate::digest::Digest;
use crate::id::{CommentId, PlanId, RunId};
use crate::policy::Permission;
use crate::principal::Principal;
use crate::status::PlanStatus;
use crate::time::Timestamp;

/// A command that may not happen now. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewRefusal {
    /// A plan with this id exists already.
    #[error("plan `{0}` already exists")]
    Exists(PlanId),
    /// The plan was deleted.
    #[error("the plan was deleted")]
    Deleted,
    /// The decision was made already.
    #[error("the plan is {0}, so there is nothing to decide")]
    NothingToDecide(&'static str),
    /// The plan was rejected and has not changed since.
    #[error("the plan was rejected: change it and propose it again")]
    Rejected,
    /// No approval of anything like this is left.
    #[error("the plan is not approved")]
    NotApproved,
    /// What was approved is not what would run.
    #[error(
        "the approval covers {approved}, but {current} would run: the plan, its variables or a tool changed"
    )]
    Changed {
        /// The digest that was approved last.
        approved: Digest,
        /// The digest that would run.
        current: Digest,
    },
    /// The approval was not used in time.
    #[error("the approval expired at {at}, before it was used")]
    Expired {
        /// The end of the time in which it could be used.
        at: Timestamp,
    },
    /// The approval was revoked before it was used.
    #[error("{}", Revocation::describe(of, by))]
    Revoked {
        /// The approver.
        of: Principal,
        /// The principal who revoked it.
        by: Principal,
    },
    /// The principal may not revoke approvals of another.
    #[error(
        "{by} may not revoke an approval of {of}: that is for them, and for those who {}",
        Permission::Administer
    )]
    MayNotRevoke {
        /// The approver.
        of: Principal,
        /// The principal who wanted to revoke it.
        by: Principal,
    },
    /// The principal has no approval of this plan that could still be used.
    #[error("{0} has no unused approval of this plan")]
    NothingToRevoke(Principal),
    /// More people have to agree.
    #[error("{given} of {required} people have approved it")]
    NotEnough {
        /// The number of people who have agreed.
        given: usize,
        /// The number of people who have to.
        required: u32,
    },
    /// The author of a version may not approve it.
    #[error(
        "{0} wrote it or changed it since it was last approved, and another person has to approve it"
    )]
    FourEyes(Principal),
    /// A client says that its person agreed, and that is not enough for this tool.
    #[error(
        "plans with `{0}` are approved at a terminal or signed in to the service, not through a client"
    )]
    InPerson(String),
    /// The person has not just used a passkey, and that is wanted for this tool.
    #[error("plans with `{0}` are approved with a passkey")]
    Passkey(String),
    /// Rejected too often: a person has to change or approve it.
    #[error("the plan was rejected three times: a person has to change it or approve it")]
    NeedsPerson,
    /// The version alone does not say which sub-plans, tools and policy were looked at.
    #[error(
        "its tools, sub-plans or the policy may have changed since this version: approve by the digest that was shown"
    )]
    DigestNeeded,
    /// The approval lacks a choice for arguments that are only known later: the run would be wider
    /// than it is to be.
    #[error("the plan is already approved without late {step}={choice}")]
    ApprovedWider {
        /// The plan.
        plan: PlanId,
        /// The step that the choice is about.
        step: String,
        /// The choice, as it is written.
        choice: String,
    },
    /// Policy may not approve a plan in which it asks about a step.
    #[error("policy asks about step `{0}`, so only a person may approve")]
    PolicyAsks(String),
    /// Policy may not approve a plan that lost a safeguard since a person last agreed to it.
    #[error("{0}, so only a person may approve")]
    SafeguardLost(String),
    /// The plan has moved on since the version that was edited.
    #[error("the plan is at version {current}, the edit was made to version {based_on}")]
    Conflict {
        /// The version that was edited.
        based_on: u32,
        /// The version that is current.
        current: u32,
    },
    /// The plan was not proposed yet.
    #[error("the plan is a draft: propose it first")]
    Draft,
    /// The plan was proposed already.
    #[error("the plan is {0}, not a draft")]
    NotADraft(PlanStatus),
    /// A draft without steps cannot be proposed.
    #[error("the draft has no steps yet")]
    NoSteps,
    /// A draft that no model wrote is proposed by a person.
    #[error("the draft was created without a model: a person has to review and propose it")]
    Fallback,
    /// The plan has no version of this number.
    #[error("the plan has no version {0}")]
    NoSuchVersion(u32),
    /// The plan has as many versions as are kept.
    #[error("the plan has {0} versions, and no more are kept")]
    TooManyVersions(u32),
    /// The reason has more bytes than are kept.
    #[error("the reason has {0} bytes, at most {limit} are kept", limit = Review::MAX_REASON)]
    ReasonTooLong(usize),
    /// The plan was never opened for this run.
    #[error("run {0} does not belong to the plan")]
    NoSuchRun(RunId),
    /// A run of the plan has not ended.
    #[error("the plan is executing: cancel the run first")]
    Executing,
    /// An approver asked for changes, and the plan has not changed since.
    #[error("changes were requested: edit the plan and propose it again")]
    ChangesRequested,
    /// The plan was not touched for too long.
    #[error("the plan expired because it was not touched for too long: propose it again")]
    PlanExpired,
    /// The plan is archived, and so closed to decisions.
    #[error("the plan is archived")]
    Archived,
    /// A plan that is not archived cannot be unarchived.
    #[error("the plan is not archived")]
    NotArchived,
    /// Something of the plan is still waited for.
    #[error("the plan is {0}: only a finished plan can be archived")]
    NotOver(PlanStatus),
    /// Policy wants everything discussed first.
    #[error("{count} {} left to discuss, the first of them {first}", if *count == 1 { "comment is" } else { "comments are" })]
    OpenThreads {
        /// The number of open threads.
        count: usize,
        /// The oldest of them.
        first: CommentId,
    },
    /// The comment was not taken.
    #[error(transparent)]
    Comment(#[from] CommentRefusal),
    /// The principal or what was shown to them does not fit the decision.
    #[error(transparent)]
    Decision(#[from] crate::run::Refusal),
}

/// A comment that was not taken. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommentRefusal {
    /// The comment says nothing.
    #[error("a comment must not be empty")]
    Empty,
    /// The comment has more bytes than are kept.
    #[error(
        "a comment has at most {} bytes, this one has {bytes}",
        Review::MAX_COMMENT_BYTES
    )]
    TooLong {
        /// The number of bytes it has.
        bytes: usize,
    },
    /// The plan has as many comments as are kept.
    #[error("a plan has at most {} comments", Review::MAX_COMMENTS)]
    TooMany,
    /// The plan has no such comment.
    #[error("there is no comment `{0}`")]
    NoSuchComment(String),
    /// The plan has no such step.
    #[error("the plan has no step `{0}`")]
    NoSuchStep(String),
    /// An answer names a step, and so does the thread it belongs to.
    #[error("an answer belongs to the thread it answers: it names no step")]
    ReplyWithStep,
    /// The thread is settled, or open, already.
    #[error("the thread is {0} already")]
    Already(&'static str),
    /// The principal may neither settle nor reopen this thread.
    #[error("{0} may not resolve this thread: only a person or its author can")]
    MayNotResolve(Principal),
    /// The id of the comment is taken.
    #[error("there is a comment `{0}` already")]
    Duplicate(CommentId),
}
