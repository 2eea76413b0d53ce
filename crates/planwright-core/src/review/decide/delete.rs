//! Deleting a plan. Its journal is kept.

use crate::principal::Principal;
use crate::review::{Refusal, Review, ReviewEvent, ReviewState};

impl Review {
    pub(super) fn decide_delete(
        &self,
        by: &Principal,
        executing: bool,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        if executing {
            return Err(Refusal::Executing);
        }
        match self.state {
            ReviewState::Active(_) | ReviewState::Archived(_) => {
                Ok(vec![ReviewEvent::PlanDeleted { by: by.clone() }])
            }
            ReviewState::Deleted => Err(Refusal::Deleted),
        }
    }
}
