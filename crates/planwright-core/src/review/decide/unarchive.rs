//! Bringing an archived plan back to the stage it had.

use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewState};

impl Review {
    pub(super) fn decide_unarchive(
        &self,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match self.state {
            ReviewState::Archived(_) => Ok(vec![ReviewEvent::PlanUnarchived { by: by.clone() }]),
            ReviewState::Active(_) => Err(ReviewRefusal::NotArchived),
            ReviewState::Deleted => Err(ReviewRefusal::Deleted),
        }
    }
}
