//! Putting a plan away.

use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewState};
use crate::status::RunStatus;

impl Review {
    pub(super) fn decide_archive(
        &self,
        by: &Principal,
        latest_run: Option<RunStatus>,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match self.state {
            ReviewState::Active(_) => {}
            ReviewState::Archived(_) => return Ok(Vec::new()),
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
        }
        let status = self.status(latest_run);
        if !status.is_over() {
            return Err(ReviewRefusal::NotOver(status));
        }
        Ok(vec![ReviewEvent::PlanArchived { by: by.clone() }])
    }
}
