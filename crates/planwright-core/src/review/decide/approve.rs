//! Agreeing to what was shown.

use crate::digest::Digest;
use crate::policy::{OpenComments, Permission};
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::review::{Offer, Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState, Terms};
use crate::run::Shown;
use crate::time::Timestamp;

impl Review {
    pub(super) fn decide_approve(
        &self,
        shown: Shown,
        digest: Digest,
        (by, assurance): (&Principal, Assurance),
        offer: &Offer,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        self.check_approver(by, offer)?;
        let tools = offer.pins.keys().map(String::as_str);
        if let Some(tool) = offer.policy.wants_in_person(assurance, tools) {
            return Err(ReviewRefusal::InPerson(tool.to_owned()));
        }
        let tools = offer.pins.keys().map(String::as_str);
        if let Some(tool) = offer.policy.wants_passkey(assurance, tools) {
            return Err(ReviewRefusal::Passkey(tool.to_owned()));
        }
        shown.check(self.current().number, digest)?;
        self.check_said_by_version(shown, offer.without_inputs.unwrap_or(digest))?;
        self.check_discussed(offer)?;
        self.check_approvable(digest, now)?;
        if self
            .given_approvals(&digest, now)
            .iter()
            .any(|approval| approval.by == *by)
        {
            return Err(ReviewRefusal::NothingToDecide(
                "approved by you already, and waits for others",
            ));
        }
        Ok(vec![ReviewEvent::PlanApproved {
            version: self.current().number,
            digest,
            by: by.clone(),
            assurance,
            terms: Terms {
                builds_on: self.approval_before_edit(now),
                ..offer.terms(now)
            },
        }])
    }

    fn check_approvable(&self, digest: Digest, now: Timestamp) -> Result<(), ReviewRefusal> {
        match self.state {
            ReviewState::Active(ReviewStage::Proposed | ReviewStage::NeedsReview) => Ok(()),
            // Approving again is void, unless what would run has changed since or the approval has
            // expired.
            ReviewState::Active(ReviewStage::Approved)
                if self.usable_approvals(&digest, now).is_some() =>
            {
                Err(ReviewRefusal::NothingToDecide("approved already"))
            }
            ReviewState::Active(ReviewStage::Approved) => Ok(()),
            ReviewState::Active(ReviewStage::Draft) => Err(ReviewRefusal::Draft),
            ReviewState::Active(ReviewStage::Rejected) => Err(ReviewRefusal::Rejected),
            ReviewState::Active(ReviewStage::ChangesRequested) => {
                Err(ReviewRefusal::ChangesRequested)
            }
            ReviewState::Active(ReviewStage::Expired) => Err(ReviewRefusal::PlanExpired),
            ReviewState::Archived(_) => Err(ReviewRefusal::Archived),
            ReviewState::Deleted => Err(ReviewRefusal::Deleted),
        }
    }

    /// Checks that this principal may say yes to what is offered.
    fn check_approver(&self, by: &Principal, offer: &Offer) -> Result<(), ReviewRefusal> {
        if !by.may_approve() || !offer.policy.roles.permits(by, Permission::Approve) {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        if by.kind == PrincipalKind::Policy {
            if let Some(step) = offer.asks_about.clone() {
                return Err(ReviewRefusal::PolicyAsks(step));
            }
            return self.check_safeguards();
        }
        if offer.policy.approval.four_eyes && self.has_written(by) {
            return Err(ReviewRefusal::FourEyes(by.clone()));
        }
        Ok(())
    }

    /// Checks that nothing that narrowed the plan is gone: whether it may go is for a person to say.
    fn check_safeguards(&self) -> Result<(), ReviewRefusal> {
        let lost = self.lost_safeguards();
        lost.map_or(Ok(()), |lost| {
            Err(ReviewRefusal::SafeguardLost(lost.to_string()))
        })
    }

    /// A version does not change with the plans that it runs: they may have been others when it was
    /// looked at, also where they are again what they were when it was proposed. Nor does it change
    /// with the definitions of its tools or with the policy. Only the digest says what was shown.
    fn check_said_by_version(&self, shown: Shown, today: Digest) -> Result<(), ReviewRefusal> {
        let current = self.current();
        let says_it = current.digest == today && current.document.subplan_ids().is_empty();
        match shown {
            Shown::Version(_) if !says_it => Err(ReviewRefusal::DigestNeeded),
            Shown::Version(_) | Shown::Digest(_) => Ok(()),
        }
    }

    /// Returns whether this principal wrote what is to be approved, or changed it since it was last
    /// approved and run: an edit by another does not make it theirs alone.
    fn has_written(&self, by: &Principal) -> bool {
        let current = self.current().number;
        let was_used = |version: u32| {
            let mut approvals = self.approvals.iter();
            version < current
                && approvals
                    .any(|approval| approval.version == version && !approval.spent_by.is_empty())
        };
        let since = self.versions.iter().rev();
        since
            .take_while(|version| !was_used(version.number))
            .any(|version| version.by == *by)
    }

    /// Checks that everything was discussed, where the policy wants that.
    fn check_discussed(&self, offer: &Offer) -> Result<(), ReviewRefusal> {
        if offer.policy.approval.open_comments == OpenComments::Note {
            return Ok(());
        }
        let mut open = self.open_threads();
        match open.next() {
            Some(first) => Err(ReviewRefusal::OpenThreads {
                first: first.id().clone(),
                count: 1 + open.count(),
            }),
            None => Ok(()),
        }
    }
}
