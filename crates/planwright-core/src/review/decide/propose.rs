//! Proposing the next version.

use crate::digest::Digest;
use crate::plan::Document;
use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use std::sync::Arc;

impl Review {
    /// The same content again is the same version, unless the plan was deleted, expired or put away
    /// in between. A draft of that content is put forward.
    pub(super) fn decide_propose(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let same = *self.current().document == **document;
        match self.state {
            ReviewState::Active(ReviewStage::Draft) if same => self.decide_propose_draft(by),
            ReviewState::Active(
                ReviewStage::Proposed
                | ReviewStage::Approved
                | ReviewStage::Rejected
                | ReviewStage::NeedsReview
                | ReviewStage::ChangesRequested,
            ) if same => Ok(Vec::new()),
            ReviewState::Active(_) | ReviewState::Archived(_) | ReviewState::Deleted => {
                self.check_may_bring_back(by)?;
                self.next_version(document, digest, by, false)
            }
        }
    }
}
