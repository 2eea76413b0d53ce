//! Writing down that an approval was not used in time.

use crate::review::{Review, ReviewEvent, ReviewStage, ReviewState};
use crate::time::Timestamp;

impl Review {
    /// The approval is void from the moment it expires, written down or not: this entry tells the
    /// people who watch the plan.
    pub(super) fn decide_expire_approvals(&self, now: Timestamp) -> Vec<ReviewEvent> {
        match self.state {
            ReviewState::Active(ReviewStage::Approved) => {}
            ReviewState::Active(
                ReviewStage::Draft
                | ReviewStage::Proposed
                | ReviewStage::Rejected
                | ReviewStage::NeedsReview
                | ReviewStage::ChangesRequested
                | ReviewStage::Expired,
            )
            | ReviewState::Archived(_)
            | ReviewState::Deleted => return Vec::new(),
        }
        if self
            .open_approvals()
            .any(|approval| !approval.has_expired(now))
        {
            return Vec::new();
        }
        let version = self.current().number;
        let latest = self.open_approvals().next_back();
        latest
            .map(|approval| ReviewEvent::ApprovalExpired {
                version,
                digest: approval.digest,
            })
            .into_iter()
            .collect()
    }
}
