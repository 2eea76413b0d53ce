//! Making a call alone that was in flight too often when the process died. See
//! [`Limiter::try_isolate`](crate::context::Limiter::try_isolate).

use super::run_loop::{RunError, RunLoop};
use crate::context::{Presence, Waiting, isolation_span};
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::StepIx;
use planwright_core::run::{Command, Run, RunEvent, StepState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The calls that one run has in flight, and those of them that are made alone.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    presences: BTreeMap<StepIx, Presence>,
    /// A call that is to be made alone waits for its turn, until then.
    waiting: Option<(Waiting, Duration)>,
    /// A call is made alone, until then.
    alone: Option<(StepIx, Duration)>,
    /// A call that is to be made alone was found in this turn of the loop.
    found: bool,
}

impl Isolation {
    /// When something has to be looked at again, by the time for which the machine is awake. What
    /// is overdue waits for other calls to end.
    pub(super) fn next_timer(&self, awake: Duration) -> Option<Duration> {
        let waiting = self.waiting.as_ref().map(|(_, until)| *until);
        let alone = self.alone.map(|(_, until)| until);
        let later = waiting.into_iter().chain(alone).filter(|at| *at > awake);
        later.map(|at| at - awake).min()
    }

    /// Nothing is waited for any more unless it is asked for again.
    pub(super) fn begin_turn(&mut self) {
        self.found = false;
    }

    /// Lets others start again if the call that was waited for is not to be made any more.
    pub(super) fn end_turn(&mut self) {
        if !self.found {
            self.waiting = None;
        }
    }
}

impl RunLoop {
    /// Enters a call among those of this process, or says that others have to end first.
    pub(super) fn enter_call(&mut self, step: StepIx) -> Result<Option<Presence>, RunError> {
        let limiter = Arc::clone(&self.context.limiter);
        let Some(crashes) = self.run.schedule().needs_isolation(step) else {
            return Ok(limiter.try_enter());
        };
        self.isolation.found = true;
        let awake = self.context.ports.clock.awake();
        let span = isolation_span(crashes.all - Run::ISOLATED_AFTER);
        let (waiting, until) = self
            .isolation
            .waiting
            .get_or_insert_with(|| (limiter.wait_to_be_alone(crashes.alone), awake + span));
        if let Some(presence) = limiter.try_isolate(waiting) {
            self.isolation.waiting = None;
            self.execute(&Command::Isolate { step }, Cause::Schedule)?;
            self.isolation.alone = Some((step, awake + span));
            return Ok(Some(presence));
        }
        let presence = if awake >= *until {
            limiter.enter_after_waiting()
        } else {
            None
        };
        if presence.is_some() {
            self.isolation.waiting = None;
        }
        Ok(presence)
    }

    /// Remembers a call that was started; one that was not is over.
    pub(super) fn keep_presence(&mut self, step: StepIx, presence: Presence) {
        if matches!(self.run.step(step), StepState::Running { .. }) {
            self.isolation.presences.insert(step, presence);
        } else if presence.is_alone() {
            self.isolation.alone = None;
        }
    }

    /// Forgets the calls that ended, and lets others be made beside one that was alone for long
    /// enough. A process that is told to end does not blame the call for it.
    pub(super) fn tend_isolation(&mut self, draining: bool) -> Result<(), RunError> {
        let Self { run, isolation, .. } = self;
        isolation
            .presences
            .retain(|ix, _| matches!(run.step(*ix), StepState::Running { .. }));
        let Some((step, until)) = isolation.alone else {
            return Ok(());
        };
        if !isolation.presences.contains_key(&step) {
            isolation.alone = None;
        } else if draining || self.context.ports.clock.awake() >= until {
            self.isolation.alone = None;
            self.execute(&Command::EndIsolation, Cause::Timer)?;
        }
        Ok(())
    }

    /// Lets others begin once it is durable that the call is not alone any more.
    pub(super) fn end_isolation(&mut self, entries: &[Entry<RunEvent>]) {
        for entry in entries {
            if let RunEvent::IsolationEnded { step } = &entry.event
                && let Some(ix) = self.run.find(step.as_str())
                && let Some(presence) = self.isolation.presences.get_mut(&ix)
            {
                presence.end_isolation();
            }
        }
    }
}
