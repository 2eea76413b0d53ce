//! A new owner took the run over: what was in flight is settled by its effect class.

use crate::run::{Run, RunEvent};

impl Run {
    pub(super) fn decide_recover(&self) -> Vec<RunEvent> {
        let reason = "the process that made the call ended, or could not record the answer";
        self.schedule()
            .running()
            .filter_map(|ix| {
                self.in_flight(ix)
                    .map(|(tally, class)| self.interrupted(ix, tally, class, reason))
            })
            .collect()
    }
}
