//! Beginning a run, which spends the approvals of what it executes.

use crate::digest::Digest;
use crate::id::RunId;
use crate::review::{Approval, Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use crate::time::Timestamp;

impl Review {
    pub(super) fn decide_open_run(
        &self,
        run: &RunId,
        digest: Digest,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match self.state {
            ReviewState::Active(ReviewStage::Proposed | ReviewStage::Approved) => {}
            ReviewState::Active(ReviewStage::Draft) => return Err(ReviewRefusal::Draft),
            ReviewState::Active(ReviewStage::Rejected | ReviewStage::NeedsReview) => {
                return Err(ReviewRefusal::Rejected);
            }
            ReviewState::Active(ReviewStage::ChangesRequested) => {
                return Err(ReviewRefusal::ChangesRequested);
            }
            ReviewState::Active(ReviewStage::Expired) => return Err(ReviewRefusal::PlanExpired),
            ReviewState::Archived(_) => return Err(ReviewRefusal::Archived),
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
        }
        if self.usable_approvals(&digest, now).is_none() {
            return Err(self.why_not_approved(digest, now));
        }
        Ok(vec![ReviewEvent::RunOpened {
            run: run.clone(),
            version: self.current().number,
            digest,
        }])
    }

    /// The best reason why no approval covers this digest.
    fn why_not_approved(&self, digest: Digest, now: Timestamp) -> ReviewRefusal {
        let given = self.given_approvals(&digest, now);
        if let Some(required) = given.iter().map(|approval| approval.terms.required()).max() {
            return ReviewRefusal::NotEnough {
                given: given.len(),
                required,
            };
        }
        if let Some((of, by)) = self.last_revoked(digest) {
            return ReviewRefusal::Revoked {
                of: of.clone(),
                by: by.clone(),
            };
        }
        let latest: Vec<&Approval> = self.open_approvals().rev().collect();
        let expired = latest.iter().find(|approval| approval.digest == digest);
        match (
            expired.and_then(|approval| approval.terms.expires_at),
            latest.first(),
        ) {
            (Some(at), _) => ReviewRefusal::Expired { at },
            (None, Some(approval)) => ReviewRefusal::Changed {
                approved: approval.digest,
                current: digest,
            },
            (None, None) => ReviewRefusal::NotApproved,
        }
    }
}
