//! A new owner took the run over: what was in flight is settled by its effect class.

use crate::plan::StepIx;
use crate::run::{Run, RunEvent, RunState, Tally};
use crate::tool::EffectClass;

impl Run {
    /// Settles what was in flight, except the calls of `carried`: those are not over.
    pub(super) fn decide_recover(&self, carried: &[StepIx]) -> Vec<RunEvent> {
        self.schedule()
            .running()
            .filter(|ix| !carried.contains(ix))
            .filter_map(|ix| {
                self.in_flight(ix)
                    .map(|(tally, class)| self.crashed(ix, tally, class))
            })
            .collect()
    }

    /// The process ended while the call was in flight. That counts against the call only if it was
    /// the only one.
    fn crashed(&self, ix: StepIx, tally: Tally, class: EffectClass) -> RunEvent {
        let reason = "the process that made the call ended, or could not record the answer";
        let crashes = self.crashes.get(&ix).copied().unwrap_or_default();
        let alone =
            self.schedule().isolated_step() == Some(ix) && crashes.alone >= Self::MAX_INTERRUPTIONS;
        let repeatable = class != EffectClass::Unsafe && self.state != RunState::Cancelling;
        if repeatable && alone {
            let times = format!(
                "{} times while no other call was in flight",
                crashes.alone + 1
            );
            self.interrupted_too_often(ix, tally, &times, reason)
        } else if repeatable && crashes.all >= Self::MAX_CRASHES {
            let times = format!("{} times", crashes.all + 1);
            self.interrupted_too_often(ix, tally, &times, reason)
        } else {
            self.settle_lost(ix, tally, class, reason)
        }
    }
}
