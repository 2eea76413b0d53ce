//! What may happen to a plan.

use super::{Review, ReviewEvent, ReviewState};
use crate::digest::Digest;
use crate::id::RunId;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::run::Shown;
use std::sync::Arc;

/// Something somebody wants to happen to a plan.
#[derive(Debug, Clone)]
pub enum Command {
    /// Propose the next version.
    Propose {
        document: Arc<Document>,
        digest: Digest,
        by: Principal,
    },
    /// Agree to what was shown. `digest` is what would run now.
    Approve {
        shown: Shown,
        digest: Digest,
        by: Principal,
        assurance: Assurance,
    },
    Reject {
        shown: Shown,
        digest: Digest,
        by: Principal,
        reason: String,
    },
    /// Begin a run of exactly this digest.
    OpenRun {
        run: RunId,
        digest: Digest,
    },
    Delete {
        by: Principal,
        executing: bool,
    },
}

/// A command that may not happen now. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the plan was deleted")]
    Deleted,
    #[error("the plan is {0}, so there is nothing to decide")]
    NothingToDecide(&'static str),
    #[error("the plan was rejected: change it and propose it again")]
    Rejected,
    #[error("the plan is not approved")]
    NotApproved,
    #[error(
        "the approval covers {approved}, but {current} would run: the plan, its variables or a tool changed"
    )]
    Changed { approved: Digest, current: Digest },
    #[error("the plan is executing: cancel the run first")]
    Executing,
    #[error(transparent)]
    Decision(#[from] crate::run::Refusal),
}

impl Review {
    /// Says what happens if `command` is given now.
    pub fn decide(&self, command: &Command) -> Result<Vec<ReviewEvent>, Refusal> {
        match command {
            Command::Propose { document, digest, by } => Ok(self.decide_propose(document, *digest, by)),
            Command::Approve { shown, digest, by, assurance } => {
                self.decide_approve(*shown, *digest, by, *assurance)
            }
            Command::Reject { shown, digest, by, reason } => self.decide_reject(*shown, *digest, by, reason),
            Command::OpenRun { run, digest } => self.decide_open_run(run, *digest),
            Command::Delete { by, executing } => self.decide_delete(by, *executing),
        }
    }

    /// The first entry of a plan's life.
    pub fn propose_first(document: Arc<Document>, digest: Digest, by: Principal) -> ReviewEvent {
        ReviewEvent::PlanProposed { version: 1, document, digest, by }
    }

    /// The same content again is the same version, unless the plan was deleted in between.
    fn decide_propose(&self, document: &Arc<Document>, digest: Digest, by: &Principal) -> Vec<ReviewEvent> {
        if *self.current().document == **document && self.state != ReviewState::Deleted {
            return Vec::new();
        }
        let version = self.current().number + 1;
        vec![ReviewEvent::PlanProposed { version, document: Arc::clone(document), digest, by: by.clone() }]
    }

    fn decide_approve(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        assurance: Assurance,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        if !by.may_approve() {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        let version = self.current().number;
        shown.check(version, digest)?;
        match self.state {
            ReviewState::Proposed | ReviewState::NeedsReview => {}
            // Approving again is void, unless what would run has changed since.
            ReviewState::Approved if self.usable_approval(&digest).is_some() => {
                return Err(Refusal::NothingToDecide("approved already"));
            }
            ReviewState::Approved => {}
            ReviewState::Rejected => return Err(Refusal::Rejected),
            ReviewState::Deleted => return Err(Refusal::Deleted),
        }
        Ok(vec![ReviewEvent::PlanApproved { version, digest, by: by.clone(), assurance }])
    }

    fn decide_reject(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        if !by.may_approve() {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        let version = self.current().number;
        shown.check(version, digest)?;
        match self.state {
            ReviewState::Proposed | ReviewState::Approved => {}
            ReviewState::Rejected => return Err(Refusal::NothingToDecide("rejected already")),
            ReviewState::NeedsReview => {
                return Err(Refusal::NothingToDecide("rejected already, for the third time"));
            }
            ReviewState::Deleted => return Err(Refusal::Deleted),
        }
        Ok(vec![ReviewEvent::PlanRejected { version, by: by.clone(), reason: reason.to_owned() }])
    }

    fn decide_open_run(&self, run: &RunId, digest: Digest) -> Result<Vec<ReviewEvent>, Refusal> {
        let version = self.current().number;
        match self.state {
            ReviewState::Deleted => return Err(Refusal::Deleted),
            ReviewState::Rejected | ReviewState::NeedsReview => return Err(Refusal::Rejected),
            ReviewState::Proposed | ReviewState::Approved => {}
        }
        if self.usable_approval(&digest).is_some() {
            return Ok(vec![ReviewEvent::RunOpened { run: run.clone(), version, digest }]);
        }
        let unspent = self.approvals.iter().rev().find(|approval| approval.is_open(version));
        Err(match unspent {
            Some(approval) => Refusal::Changed { approved: approval.digest, current: digest },
            None => Refusal::NotApproved,
        })
    }

    fn decide_delete(&self, by: &Principal, executing: bool) -> Result<Vec<ReviewEvent>, Refusal> {
        if executing {
            return Err(Refusal::Executing);
        }
        match self.state {
            ReviewState::Deleted => Err(Refusal::Deleted),
            ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview => Ok(vec![ReviewEvent::PlanDeleted { by: by.clone() }]),
        }
    }
}

impl ReviewState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::NeedsReview => "needs_review",
            Self::Deleted => "deleted",
        }
    }
}
