//! Putting a plan away.

use crate::principal::Principal;
use crate::review::{Refusal, Review, ReviewEvent, ReviewState};
use crate::status::RunStatus;

impl Review {
    pub(super) fn decide_archive(
        &self,
        by: &Principal,
        latest_run: Option<RunStatus>,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        match self.state {
            ReviewState::Active(_) => {}
            ReviewState::Archived(_) => return Ok(Vec::new()),
            ReviewState::Deleted => return Err(Refusal::Deleted),
        }
        let status = self.status(latest_run);
        if !status.is_over() {
            return Err(Refusal::NotOver(status));
        }
        Ok(vec![ReviewEvent::PlanArchived { by: by.clone() }])
    }
}
