//! Deleting a plan. Its journal is kept.

use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewState};

impl Review {
    pub(super) fn decide_delete(
        &self,
        by: &Principal,
        executing: bool,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        if executing {
            return Err(ReviewRefusal::Executing);
        }
        match self.state {
            ReviewState::Active(_) | ReviewState::Archived(_) => {
                Ok(vec![ReviewEvent::PlanDeleted { by: by.clone() }])
            }
            ReviewState::Deleted => Err(ReviewRefusal::Deleted),
        }
    }
}
