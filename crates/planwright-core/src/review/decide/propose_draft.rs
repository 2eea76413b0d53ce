//! Putting a draft forward as it is.

use crate::principal::{Principal, PrincipalKind};
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};

impl Review {
    /// A draft is put forward, and so is again what expired.
    pub(super) fn decide_propose_draft(
        &self,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let current = self.current();
        match self.state {
            ReviewState::Active(ReviewStage::Draft) => self.check_proposable(by)?,
            ReviewState::Active(ReviewStage::Expired)
            | ReviewState::Archived(ReviewStage::Expired) => {
                return self.next_version(&current.document, current.digest, by, false);
            }
            ReviewState::Archived(ReviewStage::Draft) => return Err(ReviewRefusal::Archived),
            ReviewState::Active(
                ReviewStage::Proposed
                | ReviewStage::Approved
                | ReviewStage::Rejected
                | ReviewStage::NeedsReview
                | ReviewStage::ChangesRequested,
            )
            | ReviewState::Archived(_) => {
                return Err(ReviewRefusal::NotADraft(self.state.status()));
            }
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
        }
        Ok(vec![ReviewEvent::DraftProposed {
            version: current.number,
            by: by.clone(),
        }])
    }

    fn check_proposable(&self, by: &Principal) -> Result<(), ReviewRefusal> {
        let current = self.current();
        if current.document.steps.is_empty() {
            return Err(ReviewRefusal::NoSteps);
        }
        // No person has thought about a fallback yet, and an agent would only pass it on.
        if current.is_fallback() && by.kind != PrincipalKind::Person {
            return Err(ReviewRefusal::Fallback);
        }
        Ok(())
    }
}
