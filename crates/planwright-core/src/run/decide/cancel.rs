//! Cancelling: durable first, then the calls in flight are told.

use crate::principal::Principal;
use crate::run::{Run, RunEvent, RunState};

impl Run {
    /// Cancelling twice is cancelling once.
    pub(super) fn decide_cancel(&self, by: &Principal) -> Vec<RunEvent> {
        if self.state == RunState::Cancelling {
            return Vec::new();
        }
        vec![RunEvent::CancelRequested { by: by.clone() }]
    }
}
