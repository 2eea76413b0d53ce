//! The consent that policy gives by itself.

use crate::review::given_approval::GivenApproval;
use crate::review::plans::Candidate;
use crate::review::plans::Plans;
use planwright_core::principal::Assurance;
use planwright_core::review::{Review, ReviewStage};
use planwright_core::run::Shown;

impl Plans {
    /// Policy's yes to a plan in which nothing has to be asked about; none is needed if another
    /// approval is there to be used. A plan that was rejected too often, or that lost a safeguard, is
    /// a person's to decide, regardless of the policy.
    pub fn consent_of_policy(
        &self,
        review: &Review,
        candidate: &Candidate,
    ) -> Option<GivenApproval> {
        let approved = review
            .usable_approvals(&candidate.digest, self.context.ports.clock.now())
            .is_some();
        let decidable = matches!(
            review.stage(),
            Some(ReviewStage::Proposed | ReviewStage::Approved)
        );
        if approved || !decidable || !self.judge(&candidate.plan).is_allowed() {
            return None;
        }
        if review.lost_safeguards().is_some() {
            return None;
        }
        let by = self.context.settings.policy.principal();
        Some(GivenApproval::new(
            Shown::Digest(candidate.digest),
            by,
            Assurance::Policy,
        ))
    }
}
