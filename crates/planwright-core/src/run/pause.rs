//! The pause of a run: its author, and those who may end it.

use super::{PauseOrder, Refusal, Run};
use crate::principal::{Principal, PrincipalKind};

/// The orders by which a run stands still or continues.
#[derive(Debug, Clone, Copy)]
pub struct RunPause<'a> {
    run: &'a Run,
}

impl Run {
    /// The orders to pause and to resume.
    pub fn pause(&self) -> RunPause<'_> {
        RunPause { run: self }
    }
}

impl<'a> RunPause<'a> {
    /// The order by which the run stands still, if a principal gave one.
    pub fn pause_order(self) -> Option<&'a PauseOrder> {
        self.run.paused.as_ref()
    }

    /// The last order by which it continued.
    pub fn resume_order(self) -> Option<&'a PauseOrder> {
        self.run.resumed.as_ref()
    }

    /// Returns whether a person wants the run to stand still.
    pub fn is_by_person(self) -> bool {
        self.pause_order()
            .is_some_and(|order| order.by.kind == PrincipalKind::Person)
    }

    /// Checks that this principal may let the run continue: what a person paused, only a person
    /// resumes.
    pub fn check_may_lift(self, by: &Principal) -> Result<(), Refusal> {
        // What came with a store from elsewhere was approved there, not here: the run is ended, and
        // what is left of it is approved anew.
        if self.run.held {
            return Err(Refusal::HeldRun);
        }
        match self.pause_order() {
            Some(order) if self.is_by_person() && by.kind != PrincipalKind::Person => {
                Err(Refusal::PausedByPerson {
                    paused_by: order.by.clone(),
                    by: by.clone(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}
