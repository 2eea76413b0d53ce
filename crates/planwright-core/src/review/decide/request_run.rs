//! Wanting a run of a plan that is not approved yet.

use crate::digest::Digest;
use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use crate::time::Timestamp;
use crate::trace::TraceId;
use serde_json::{Map, Value};

/// A run that is wanted as soon as the plan is approved.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The digest of what the run would execute.
    pub digest: Digest,
    /// The variables of the run.
    pub variables: Map<String, Value>,
    /// The principal who wants it.
    pub by: Principal,
    /// The trace of the order, if it came with one.
    pub trace: Option<TraceId>,
}

impl Review {
    /// Asking again for the same run changes nothing.
    pub(super) fn decide_request_run(
        &self,
        request: &RunRequest,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match self.state {
            ReviewState::Active(
                ReviewStage::Proposed | ReviewStage::Approved | ReviewStage::NeedsReview,
            ) => {}
            ReviewState::Active(ReviewStage::Draft) => return Err(ReviewRefusal::Draft),
            ReviewState::Active(ReviewStage::Rejected) => return Err(ReviewRefusal::Rejected),
            ReviewState::Active(ReviewStage::ChangesRequested) => {
                return Err(ReviewRefusal::ChangesRequested);
            }
            ReviewState::Active(ReviewStage::Expired) => return Err(ReviewRefusal::PlanExpired),
            ReviewState::Archived(_) => return Err(ReviewRefusal::Archived),
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
        }
        let is_same = self.requested_run(now).is_some_and(|wanted| {
            wanted.digest == request.digest
                && wanted.variables == request.variables
                && wanted.by == request.by
        });
        if is_same {
            return Ok(Vec::new());
        }
        Ok(vec![ReviewEvent::RunRequested {
            version: self.current().number,
            digest: request.digest,
            variables: request.variables.clone(),
            by: request.by.clone(),
            trace: request.trace,
        }])
    }
}
