//! Sending a plan back. After too many rejections a person has to step in.

use crate::digest::Digest;
use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use crate::run::Shown;

impl Review {
    pub(super) fn decide_reject(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let version = self.check_returnable(shown, digest, by)?;
        Ok(vec![ReviewEvent::PlanRejected {
            version,
            by: by.clone(),
            reason: reason.to_owned(),
        }])
    }

    /// Checks that this principal may send back what was shown. Returns its version.
    pub(super) fn check_returnable(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
    ) -> Result<u32, ReviewRefusal> {
        if !by.may_approve() {
            return Err(crate::run::Refusal::MayNotApprove(by.clone()).into());
        }
        let version = self.current().number;
        shown.check(version, digest)?;
        let decided = match self.state {
            ReviewState::Active(ReviewStage::Proposed | ReviewStage::Approved) => {
                return Ok(version);
            }
            ReviewState::Active(ReviewStage::Draft) => return Err(ReviewRefusal::Draft),
            ReviewState::Active(ReviewStage::Expired) => return Err(ReviewRefusal::PlanExpired),
            ReviewState::Archived(_) => return Err(ReviewRefusal::Archived),
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
            ReviewState::Active(ReviewStage::Rejected) => "rejected already",
            ReviewState::Active(ReviewStage::NeedsReview) => "rejected already, for the third time",
            ReviewState::Active(ReviewStage::ChangesRequested) => "sent back for changes already",
        };
        Err(ReviewRefusal::NothingToDecide(decided))
    }
}
