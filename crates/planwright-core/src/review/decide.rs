//! What may happen to a plan.

use super::{
    Approval, CommentCommand, CommentRefusal, Creation, Offer, Review, ReviewEvent, ReviewState,
    Revision, Revocation, Terms,
};
use crate::digest::Digest;
use crate::id::{CommentId, PlanId, RunId};
use crate::plan::Document;
use crate::policy::{OpenComments, Permission};
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::run::Shown;
use crate::status::{PlanStatus, RunStatus};
use crate::time::Timestamp;
use std::sync::Arc;

/// A change that a caller asks for in a plan.
#[derive(Debug, Clone)]
pub enum Command {
    /// Begin a plan that does not exist yet.
    Create(Creation),
    /// Propose the next version.
    Propose {
        document: Arc<Document>,
        digest: Digest,
        by: Principal,
    },
    /// Work on a plan without putting it forward yet.
    Draft {
        document: Arc<Document>,
        digest: Digest,
        by: Principal,
    },
    /// Put the draft forward as it is.
    ProposeDraft {
        by: Principal,
    },
    /// Change the plan as it was at one version.
    Edit(Box<Revision>),
    /// Agree to what was shown. `digest` is what would run now.
    Approve {
        shown: Shown,
        digest: Digest,
        by: Principal,
        assurance: Assurance,
        offer: Box<Offer>,
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
    /// Ask the author to change something, without rejecting the plan.
    RequestChanges {
        shown: Shown,
        digest: Digest,
        by: Principal,
        reason: String,
    },
    /// Time passed: note that the plan was not touched for so many days.
    Expire {
        after_days: u32,
        latest_run: Option<RunStatus>,
    },
    /// Time passed: note that an approval was not used.
    ExpireApprovals,
    /// Void the approvals of a principal that no run has used.
    RevokeApprovals(Box<Revocation>),
    /// Put the plan away.
    Archive {
        by: Principal,
        latest_run: Option<RunStatus>,
    },
    Unarchive {
        by: Principal,
    },
    Comment(CommentCommand),
}

/// A command that may not happen now. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is a plan `{0}` already")]
    Exists(PlanId),
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
    #[error("the approval expired at {at}, before it was used")]
    Expired { at: Timestamp },
    #[error("{}", Revocation::words(of, by))]
    Revoked { of: Principal, by: Principal },
    #[error(
        "{by} may not revoke an approval of {of}: that is for them, and for those who {}",
        Permission::Administer
    )]
    MayNotRevoke { of: Principal, by: Principal },
    #[error("{0} has given no approval of this plan that could still be used")]
    NothingToRevoke(Principal),
    #[error("{given} of {required} people have approved it")]
    NotEnough { given: usize, required: u32 },
    #[error("{0} proposed this version, and another person has to approve it")]
    FourEyes(Principal),
    #[error("policy asks about step `{0}`, so only a person may approve")]
    PolicyAsks(String),
    #[error("the plan is at version {current}, the edit was made to version {based_on}")]
    Conflict { based_on: u32, current: u32 },
    #[error("the plan is a draft: propose it first")]
    Draft,
    #[error("the plan is {0} and no draft")]
    NotADraft(PlanStatus),
    #[error("the draft has no steps yet")]
    NoSteps,
    #[error(
        "the draft was put together without a model: a person has to look at it and propose it"
    )]
    Fallback,
    #[error("the plan has no version {0}")]
    NoSuchVersion(u32),
    #[error("the plan has {0} versions, and no more are kept")]
    TooManyVersions(u32),
    #[error("the reason has {0} bytes, at most {limit} are kept", limit = Review::MAX_REASON)]
    ReasonTooLong(usize),
    #[error("the plan is executing: cancel the run first")]
    Executing,
    #[error("changes were asked for: change the plan and propose it again")]
    ChangesRequested,
    #[error("the plan expired because it was not touched for too long: propose it again")]
    PlanExpired,
    #[error("the plan is archived")]
    Archived,
    #[error("the plan is not archived")]
    NotArchived,
    #[error("the plan is {0}: only a plan that is over can be archived")]
    NotOver(PlanStatus),
    #[error("{count} {} left to discuss, the first of them {first}", if *count == 1 { "comment is" } else { "comments are" })]
    OpenThreads { count: usize, first: CommentId },
    #[error(transparent)]
    Comment(#[from] CommentRefusal),
    #[error(transparent)]
    Decision(#[from] crate::run::Refusal),
}

impl Review {
    /// Says what happens if `command` is given now.
    pub fn decide(&self, command: &Command, now: Timestamp) -> Result<Vec<ReviewEvent>, Refusal> {
        match command {
            Command::Create(creation) => self.decide_create(creation),
            Command::Propose {
                document,
                digest,
                by,
            } => self.decide_propose(document, *digest, by),
            Command::Draft {
                document,
                digest,
                by,
            } => self.decide_draft(document, *digest, by),
            Command::ProposeDraft { by } => self.decide_propose_draft(by),
            Command::Edit(revision) => self.decide_edit(revision),
            Command::Approve {
                shown,
                digest,
                by,
                assurance,
                offer,
            } => {
                let terms = self.decide_approve(*shown, *digest, by, offer, now)?;
                let version = self.current().number;
                let by = by.clone();
                let assurance = *assurance;
                Ok(vec![ReviewEvent::PlanApproved {
                    version,
                    digest: *digest,
                    by,
                    assurance,
                    terms,
                }])
            }
            Command::Reject {
                shown,
                digest,
                by,
                reason,
            } => self.decide_reject(*shown, *digest, by, reason),
            Command::OpenRun { run, digest } => self.decide_open_run(run, *digest, now),
            Command::Delete { by, executing } => self.decide_delete(by, *executing),
            Command::RequestChanges {
                shown,
                digest,
                by,
                reason,
            } => self.decide_request_changes(*shown, *digest, by, reason),
            Command::Expire {
                after_days,
                latest_run,
            } => Ok(self.decide_expire(*after_days, *latest_run, now)),
            Command::ExpireApprovals => Ok(self.decide_expire_approvals(now)),
            Command::RevokeApprovals(revocation) => self.decide_revoke(revocation, now),
            Command::Archive { by, latest_run } => self.decide_archive(by, *latest_run),
            Command::Unarchive { by } => self.decide_unarchive(by),
            Command::Comment(command) => self.decide_comment(command),
        }
    }

    fn decide_approve(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        offer: &Offer,
        now: Timestamp,
    ) -> Result<Terms, Refusal> {
        self.check_approver(by, offer)?;
        shown.check(self.current().number, digest)?;
        self.check_discussed(offer)?;
        match self.state {
            _ if self.archived => return Err(Refusal::Archived),
            ReviewState::Proposed | ReviewState::NeedsReview => {}
            // Approving again is void, unless what would run has changed since or the approval has
            // expired.
            ReviewState::Approved if self.usable_approvals(&digest, now).is_some() => {
                return Err(Refusal::NothingToDecide("approved already"));
            }
            ReviewState::Approved => {}
            ReviewState::Draft => return Err(Refusal::Draft),
            ReviewState::Rejected => return Err(Refusal::Rejected),
            ReviewState::ChangesRequested => return Err(Refusal::ChangesRequested),
            ReviewState::Expired => return Err(Refusal::PlanExpired),
            ReviewState::Deleted => return Err(Refusal::Deleted),
        }
        if self
            .given_approvals(&digest, now)
            .iter()
            .any(|approval| approval.by == *by)
        {
            return Err(Refusal::NothingToDecide(
                "approved by you already, and waits for others",
            ));
        }
        Ok(Terms {
            builds_on: self.agreed_before(now),
            ..offer.terms(now)
        })
    }

    /// Returns whether this principal may say yes to what is offered.
    fn check_approver(&self, by: &Principal, offer: &Offer) -> Result<(), Refusal> {
        if !by.may_approve() || !offer.policy.roles.permits(by, Permission::Approve) {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        if by.kind == PrincipalKind::Policy {
            let asks = offer.asks_about.clone();
            return asks.map_or(Ok(()), |step| Err(Refusal::PolicyAsks(step)));
        }
        if offer.policy.approval.four_eyes && self.current().by == *by {
            return Err(Refusal::FourEyes(by.clone()));
        }
        Ok(())
    }

    /// Returns whether everything was discussed, where the policy wants that.
    fn check_discussed(&self, offer: &Offer) -> Result<(), Refusal> {
        if offer.policy.approval.open_comments == OpenComments::Note {
            return Ok(());
        }
        let mut open = self.open_threads();
        match open.next() {
            Some(first) => Err(Refusal::OpenThreads {
                first: first.id().clone(),
                count: 1 + open.count(),
            }),
            None => Ok(()),
        }
    }

    fn decide_reject(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let version = self.check_sent_back(shown, digest, by)?;
        Ok(vec![ReviewEvent::PlanRejected {
            version,
            by: by.clone(),
            reason: reason.to_owned(),
        }])
    }

    fn decide_request_changes(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let version = self.check_sent_back(shown, digest, by)?;
        Ok(vec![ReviewEvent::ChangesRequested {
            version,
            by: by.clone(),
            reason: reason.to_owned(),
        }])
    }

    /// Returns whether this principal may send back what was shown. Returns its version.
    fn check_sent_back(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
    ) -> Result<u32, Refusal> {
        if !by.may_approve() {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        let version = self.current().number;
        shown.check(version, digest)?;
        match self.state {
            _ if self.archived => Err(Refusal::Archived),
            ReviewState::Proposed | ReviewState::Approved => Ok(version),
            ReviewState::Draft => Err(Refusal::Draft),
            ReviewState::Rejected => Err(Refusal::NothingToDecide("rejected already")),
            ReviewState::NeedsReview => Err(Refusal::NothingToDecide(
                "rejected already, for the third time",
            )),
            ReviewState::ChangesRequested => {
                Err(Refusal::NothingToDecide("sent back for changes already"))
            }
            ReviewState::Expired => Err(Refusal::PlanExpired),
            ReviewState::Deleted => Err(Refusal::Deleted),
        }
    }

    fn decide_open_run(
        &self,
        run: &RunId,
        digest: Digest,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let version = self.current().number;
        match self.state {
            ReviewState::Deleted => return Err(Refusal::Deleted),
            _ if self.archived => return Err(Refusal::Archived),
            ReviewState::Draft => return Err(Refusal::Draft),
            ReviewState::Rejected | ReviewState::NeedsReview => return Err(Refusal::Rejected),
            ReviewState::ChangesRequested => return Err(Refusal::ChangesRequested),
            ReviewState::Expired => return Err(Refusal::PlanExpired),
            ReviewState::Proposed | ReviewState::Approved => {}
        }
        if self.usable_approvals(&digest, now).is_some() {
            return Ok(vec![ReviewEvent::RunOpened {
                run: run.clone(),
                version,
                digest,
            }]);
        }
        Err(self.why_not_approved(digest, now))
    }

    /// The best reason why no approval covers this digest.
    fn why_not_approved(&self, digest: Digest, now: Timestamp) -> Refusal {
        let given = self.given_approvals(&digest, now);
        if let Some(required) = given.iter().map(|approval| approval.terms.required()).max() {
            return Refusal::NotEnough {
                given: given.len(),
                required,
            };
        }
        if let Some((of, by)) = self.last_revoked(digest) {
            return Refusal::Revoked {
                of: of.clone(),
                by: by.clone(),
            };
        }
        let open: Vec<&Approval> = self
            .approvals
            .iter()
            .rev()
            .filter(|approval| approval.is_open())
            .collect();
        let expired = open.iter().find(|approval| approval.digest == digest);
        match (
            expired.and_then(|approval| approval.terms.expires_at),
            open.first(),
        ) {
            (Some(at), _) => Refusal::Expired { at },
            (None, Some(approval)) => Refusal::Changed {
                approved: approval.digest,
                current: digest,
            },
            (None, None) => Refusal::NotApproved,
        }
    }

    fn decide_delete(&self, by: &Principal, executing: bool) -> Result<Vec<ReviewEvent>, Refusal> {
        if executing {
            return Err(Refusal::Executing);
        }
        match self.state {
            ReviewState::Deleted => Err(Refusal::Deleted),
            ReviewState::Draft
            | ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested
            | ReviewState::Expired => Ok(vec![ReviewEvent::PlanDeleted { by: by.clone() }]),
        }
    }
}
