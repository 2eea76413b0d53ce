//! Working on a plan without putting it forward yet.

use crate::digest::Digest;
use crate::plan::Document;
use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use std::sync::Arc;

impl Review {
    pub(super) fn decide_draft(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match self.state {
            ReviewState::Active(ReviewStage::Draft) if *self.current().document == **document => {
                Ok(Vec::new())
            }
            ReviewState::Active(ReviewStage::Draft) | ReviewState::Deleted => {
                self.next_version(document, digest, by, true)
            }
            ReviewState::Archived(ReviewStage::Draft) => Err(ReviewRefusal::Archived),
            ReviewState::Active(
                ReviewStage::Proposed
                | ReviewStage::Approved
                | ReviewStage::Rejected
                | ReviewStage::NeedsReview
                | ReviewStage::ChangesRequested
                | ReviewStage::Expired,
            )
            | ReviewState::Archived(_) => Err(ReviewRefusal::NotADraft(self.state.status())),
        }
    }
}
