//! Bringing an archived plan back to the stage it had.

use crate::principal::Principal;
use crate::review::{Refusal, Review, ReviewEvent, ReviewState};

impl Review {
    pub(super) fn decide_unarchive(&self, by: &Principal) -> Result<Vec<ReviewEvent>, Refusal> {
        match self.state {
            ReviewState::Archived(_) => Ok(vec![ReviewEvent::PlanUnarchived { by: by.clone() }]),
            ReviewState::Active(_) => Err(Refusal::NotArchived),
            ReviewState::Deleted => Err(Refusal::Deleted),
        }
    }
}
