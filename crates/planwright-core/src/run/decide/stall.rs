//! A run that no process executes: noting that it waits for its turn, or stands still, and giving
//! it up.

use crate::principal::Principal;
use crate::run::{Refusal, Run, RunEvent, RunState};
use crate::time::Timestamp;

impl Run {
    /// Only what could go on by itself can stand still: a run that waits for a person, or is
    /// paused, is where it should be, and one that is the work of a step stands still with the run
    /// it belongs to.
    pub(super) fn decide_stall(&self, since: Timestamp) -> Vec<RunEvent> {
        let stands_still =
            self.state == RunState::Running && !self.is_parked() && self.start().parent.is_none();
        if stands_still {
            vec![RunEvent::RunStalled { since }]
        } else {
            Vec::new()
        }
    }

    /// Says once that the run waits for its turn. One that was left behind with calls in flight is
    /// settled first by the process that goes on with it.
    pub(super) fn decide_queue(&self, slots: u32) -> Vec<RunEvent> {
        let idle = self.schedule().running().len() == 0 && !self.is_parked();
        if self.state == RunState::Running && idle && self.schedule().queued_behind() != Some(slots)
        {
            vec![RunEvent::RunQueued { slots }]
        } else {
            Vec::new()
        }
    }

    /// Ends the run as failed. What is in flight has to be settled or stopped before.
    pub(super) fn decide_give_up(
        &self,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<RunEvent>, Refusal> {
        match self.state {
            RunState::Running | RunState::Paused | RunState::Stalled { .. } => {}
            // It ends by itself as soon as nothing is in flight.
            RunState::Stopping { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => return Ok(Vec::new()),
        }
        if self.schedule().running().len() > 0 {
            return Err(Refusal::InFlight {
                calls: self.schedule().running().len(),
            });
        }
        let steps_digest = self.steps_digest();
        Ok(vec![RunEvent::RunGivenUp {
            by: by.clone(),
            reason: reason.to_owned(),
            steps_digest,
        }])
    }
}
