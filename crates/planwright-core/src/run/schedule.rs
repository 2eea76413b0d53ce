//! The steps that can be acted on next.

use super::{Crashes, Run, RunState, StepState};
use crate::plan::StepIx;
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// The steps of a run by what can happen to them next, for the process that executes it.
#[derive(Debug, Clone, Copy)]
pub struct RunSchedule<'a> {
    run: &'a Run,
}

impl Run {
    /// The steps that can be acted on next.
    pub fn schedule(&self) -> RunSchedule<'_> {
        RunSchedule { run: self }
    }

    /// Moves the deadlines of calls and the times of retries, because the clock they were set by
    /// jumped forwards: the time that it left out did not pass for them. What expires by the time
    /// of day stays. The journal keeps the times as they were set, so a process that takes the run
    /// over does not know about the jump; for it a retry may be due at once.
    pub fn delay_timers(&mut self, by: Duration) {
        for (at, ix) in std::mem::take(&mut self.index.timers) {
            let later = at.plus(by);
            match &mut self.steps[ix.index()] {
                StepState::Running { deadline, .. } => *deadline = Some(later),
                StepState::RetryDue { due_at, .. } => *due_at = later,
                StepState::Pending { .. }
                | StepState::Blocked { .. }
                | StepState::Ready { .. }
                | StepState::AwaitingApproval { .. }
                | StepState::AwaitingInput { .. }
                | StepState::AwaitingPlan { .. }
                | StepState::Looping { .. }
                | StepState::Completed { .. }
                | StepState::Failed { .. }
                | StepState::Denied { .. }
                | StepState::Skipped { .. }
                | StepState::Cancelled { .. }
                | StepState::OutcomeUnknown { .. }
                | StepState::Undone { .. } => continue,
            }
            self.index.timers.insert((later, ix));
        }
    }
}

impl<'a> RunSchedule<'a> {
    /// Steps that may start now: retries that are due, then the most urgent. The caller takes as
    /// many as [`RunSchedule::free_slots`] and its own limits allow; it may pass over some, so all
    /// are offered.
    pub fn startable(self, now: Timestamp) -> impl Iterator<Item = StepIx> + use<'a> {
        let Self { run } = self;
        let offered = if self.free_slots() == 0 {
            0
        } else {
            usize::MAX
        };
        let due = run
            .index
            .timers
            .iter()
            .take_while(move |&&(at, _)| at <= now)
            .map(|&(_, ix)| ix);
        let due = due.filter(|&ix| matches!(run.step(ix), StepState::RetryDue { .. }));
        due.chain(run.index.ready.iter().map(|&(_, ix)| ix))
            .take(offered)
    }

    /// Returns how many more steps may start now.
    pub fn free_slots(self) -> usize {
        if self.run.stopping_on().is_some() || self.isolated_step().is_some() {
            return 0;
        }
        match self.run.state {
            RunState::Running => {
                let limit = self.run.start.max_concurrency as usize;
                limit.saturating_sub(self.run.index.running.len())
            }
            RunState::Paused
            | RunState::Stalled { .. }
            | RunState::Stopping { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => 0,
        }
    }

    /// Steps that wait for a person.
    pub fn waiting(self) -> impl ExactSizeIterator<Item = StepIx> + use<'a> {
        self.run.index.waiting.iter().copied()
    }

    /// Returns how many steps of the plan have not ended.
    pub fn open_steps(self) -> usize {
        self.run.index.open_own
    }

    /// Returns how many steps of the plan are completed.
    pub fn completed_steps(self) -> usize {
        self.run.index.completed
    }

    /// Returns whether other steps wait for a step, or for the loop that it is an element of.
    pub fn is_waited_for(self, ix: StepIx) -> bool {
        let own = self.run.plan_step(ix);
        !self.run.plan.graph().dependants(own).is_empty()
    }

    /// The number of runs that are executed at once, while this one waits for one of them to end.
    pub fn queued_behind(self) -> Option<u32> {
        let running = self.run.state == RunState::Running;
        self.run.queued.filter(|_| running)
    }

    /// Returns how often the process died while a call of this step was in flight, if that is often
    /// enough for the next one to be made alone. The run of a sub-plan and an executor have calls
    /// of their own.
    pub fn needs_isolation(self, ix: StepIx) -> Option<Crashes> {
        let crashes = self.run.crashes.get(&ix)?;
        let definition = self.run.definition(ix);
        let calls = definition.plan.is_none() && definition.agent.is_none();
        (crashes.all >= Run::ISOLATED_AFTER && calls).then_some(*crashes)
    }

    /// The step whose call is made alone now.
    pub fn isolated_step(self) -> Option<StepIx> {
        let in_flight = |ix: &StepIx| matches!(self.run.step(*ix), StepState::Running { .. });
        self.run.isolated.filter(in_flight)
    }

    /// Steps whose approval has to be asked for now.
    pub fn unasked_steps(self) -> impl Iterator<Item = StepIx> + use<'a> {
        let asking = matches!(self.run.state, RunState::Running | RunState::Paused)
            && self.run.stopping_on().is_none();
        let unasked = self.run.index.unasked.iter().copied();
        unasked.filter(move |_| asking)
    }

    /// Calls in flight, or in flight when the last owner died.
    pub fn running(self) -> impl ExactSizeIterator<Item = StepIx> + use<'a> {
        self.run.index.running.iter().copied()
    }

    /// Loops whose instances are all done: their values can be gathered.
    pub fn closable(self) -> impl ExactSizeIterator<Item = StepIx> + use<'a> {
        self.run.index.closable.iter().copied()
    }

    /// The next instant after `now` at which a retry falls due or a call has taken too long.
    pub fn next_timer(self, now: Timestamp) -> Option<Timestamp> {
        let later = now.plus(Duration::from_millis(1));
        let next = |timers: &BTreeSet<(Timestamp, StepIx)>| {
            timers
                .range((later, StepIx::new(0))..)
                .next()
                .map(|&(at, _)| at)
        };
        next(&self.run.index.timers)
            .into_iter()
            .chain(next(&self.run.index.expiries))
            .min()
    }
}
