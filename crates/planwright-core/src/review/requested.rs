//! A run that is wanted as soon as the plan is approved.

use super::{Review, ReviewStage, ReviewState};
use crate::digest::Digest;
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::trace::TraceId;
use serde_json::{Map, Value};
use std::time::Duration;

/// A run that is wanted as soon as the plan is approved. It is no consent: the run needs an approval
/// of exactly its digest.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedRun {
    /// The version that was current.
    pub version: u32,
    /// The digest of what the run would execute.
    pub digest: Digest,
    /// The variables of the run.
    pub variables: Map<String, Value>,
    /// The principal who wants it.
    pub by: Principal,
    /// The trace of the order, if it came with one.
    pub trace: Option<TraceId>,
    /// The time at which it was requested.
    pub at: Timestamp,
}

impl RequestedRun {
    /// A person who takes longer starts the run themselves.
    pub const VALID_FOR: Duration = Duration::from_hours(24);

    /// Returns whether the run is still wanted at this time.
    pub fn is_wanted(&self, now: Timestamp) -> bool {
        now.since(self.at) < Self::VALID_FOR
    }
}

impl Review {
    /// The run that is wanted once the plan is approved, if it still is at this time. Changing the
    /// plan, sending it back and every run of it end the request.
    pub fn requested_run(&self, now: Timestamp) -> Option<&RequestedRun> {
        let requested = self.requested.as_deref()?;
        (self.takes_requests() && requested.is_wanted(now)).then_some(requested)
    }

    /// Returns the run that is wanted if its approvals are there.
    pub fn startable_run(&self, now: Timestamp) -> Option<&RequestedRun> {
        let requested = self.requested_run(now)?;
        self.usable_approvals(&requested.digest, now)
            .map(|_| requested)
    }

    /// Returns whether an approval could let the current version run.
    pub(super) fn takes_requests(&self) -> bool {
        matches!(
            self.state,
            ReviewState::Active(
                ReviewStage::Proposed | ReviewStage::Approved | ReviewStage::NeedsReview
            )
        )
    }
}
