//! The commands about a plan.

use super::{CommentCommand, Creation, Revision, RunRequest};
use crate::digest::Digest;
use crate::id::RunId;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::review::{Offer, Revocation};
use crate::run::Shown;
use crate::status::RunStatus;
use std::sync::Arc;

/// A change that a caller asks for in a plan.
#[derive(Debug, Clone)]
pub enum ReviewCommand {
    /// Begin a plan that does not exist yet.
    Create(Creation),
    /// Propose the next version.
    Propose {
        /// The content of the version.
        document: Arc<Document>,
        /// The digest of what would run.
        digest: Digest,
        /// The author.
        by: Principal,
    },
    /// Work on a plan without putting it forward yet.
    Draft {
        /// The content of the version.
        document: Arc<Document>,
        /// The digest of what would run.
        digest: Digest,
        /// The author.
        by: Principal,
    },
    /// Put the draft forward as it is.
    ProposeDraft {
        /// The principal who puts it forward.
        by: Principal,
    },
    /// Change the plan as it was at one version.
    Edit(Box<Revision>),
    /// Agree to what was shown.
    Approve {
        /// The version or digest that was on the screen.
        shown: Shown,
        /// The digest of what would run now.
        digest: Digest,
        /// The approver.
        by: Principal,
        /// The assurance that it is them.
        assurance: Assurance,
        /// The policy about it, and the choices of the approver.
        offer: Box<Offer>,
    },
    /// Send the plan back.
    Reject {
        /// The version or digest that was on the screen.
        shown: Shown,
        /// The digest of what would run now.
        digest: Digest,
        /// The approver.
        by: Principal,
        /// The change that is asked for.
        reason: String,
    },
    /// Begin a run of exactly this digest.
    OpenRun {
        /// The id of the run.
        run: RunId,
        /// The content that it will execute.
        digest: Digest,
    },
    /// Want a run as soon as the plan is approved.
    RequestRun(Box<RunRequest>),
    /// End a run whose journal is damaged, and accept that what it did is not known.
    WriteOffRun {
        /// The id of the run.
        run: RunId,
        /// The person who accepts the loss.
        by: Principal,
        /// The damage that was found.
        loss: String,
    },
    /// Delete the plan. Its journal is kept.
    Delete {
        /// The principal who deletes it.
        by: Principal,
        /// A run of it has not ended.
        executing: bool,
    },
    /// Ask the author to change something, without rejecting the plan.
    RequestChanges {
        /// The version or digest that was on the screen.
        shown: Shown,
        /// The digest of what would run now.
        digest: Digest,
        /// The approver.
        by: Principal,
        /// The change that is asked for.
        reason: String,
    },
    /// Time passed: note that the plan was not touched for so many days.
    Expire {
        /// The limit; 0 for none.
        after_days: u32,
        /// The status of the latest run, if there is one.
        latest_run: Option<RunStatus>,
    },
    /// Time passed: note that an approval was not used.
    ExpireApprovals,
    /// Void the approvals of a principal that no run has used.
    RevokeApprovals(Box<Revocation>),
    /// Put the plan away.
    Archive {
        /// The principal who puts it away.
        by: Principal,
        /// The status of the latest run, if there is one.
        latest_run: Option<RunStatus>,
    },
    /// Bring an archived plan back.
    Unarchive {
        /// The principal who brings it back.
        by: Principal,
    },
    /// Say something about the plan, or settle what was said.
    Comment(CommentCommand),
}
