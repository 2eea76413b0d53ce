//! Looking at a run before it ends: when that is due, what was said, and what it means for going
//! on.

use super::{Corrupt, CriterionCheck, Reflection, Run, RunEvent, RunState, StepState};
use crate::adjust::{Adjustable, Adjustment, Assessment, StepProgress};
use crate::digest::{Digest, canonical_json};
use crate::journal::Entry;
use crate::plan::StepIx;
use serde_json::json;

/// The work that has to be done before a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Ask how it stands.
    Reflect,
    /// Make the adjustments that were proposed.
    Adjust,
    /// Have the remaining work planned anew.
    Replan,
}

/// The result of looking at a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LookedAt {
    /// Counted from 1, over all runs of the same work.
    pub cycle: u32,
    /// The state of the run as it was judged.
    pub assessment: Assessment,
    /// The reasons of the model.
    pub reasoning: String,
    /// The changes that were proposed.
    pub adjustments: Vec<Adjustment>,
}

impl Assessment {
    /// Returns whether the work cannot end well as it is.
    pub fn asks_for_change(self) -> bool {
        match self {
            Self::NeedsAdjustment | Self::OffTrack => true,
            Self::OnTrack | Self::Complete | Self::Failed | Self::Unknown => false,
        }
    }
}

/// The reflection on a run: when it is due, what it found, and how the work goes on.
#[derive(Debug, Clone, Copy)]
pub struct RunReflection<'a> {
    run: &'a Run,
}

impl Run {
    /// The reflection on the run.
    pub fn reflection(&self) -> RunReflection<'_> {
        RunReflection { run: self }
    }

    pub(super) fn note_reflected(
        &mut self,
        entry: &Entry<RunEvent>,
        found: LookedAt,
    ) -> Result<(), Corrupt> {
        if self.state.is_terminal() || self.looked_at.is_some() || self.start.reflection.is_none() {
            return Err(self.cannot_follow(entry, "run_reflected"));
        }
        self.looked_at = Some(found);
        Ok(())
    }
}

impl<'a> RunReflection<'a> {
    /// The result of looking at the run.
    pub fn looked_at(self) -> Option<&'a LookedAt> {
        self.run.looked_at.as_ref()
    }

    /// Returns whether each success criterion holds, as was found out last. Empty if they were
    /// never checked.
    pub fn criteria(self) -> &'a [CriterionCheck] {
        &self.run.checks
    }

    /// Returns the reason for declaring the run failed, if that is how it ended.
    pub fn why_given_up(self) -> Option<&'a str> {
        self.run.given_up.as_deref()
    }

    /// Returns true if the rest of the plan was planned anew.
    pub fn was_replanned(self) -> bool {
        self.run.replanned
    }

    /// Finds what has to be done before the run ends, if it would end now.
    pub fn next_look(self) -> Option<Look> {
        let reflection = self.run.start.reflection.as_ref()?;
        let would_end = match self.run.state {
            RunState::Stopping { .. } => true,
            RunState::Running | RunState::Paused => {
                self.run.index.open == 0 || self.run.stopping_on().is_some()
            }
            RunState::Stalled { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => false,
        };
        if !would_end || !self.run.index.running.is_empty() {
            return None;
        }
        let failed = self.run.failed_step().is_some();
        match &self.run.looked_at {
            None if self.may_reflect(reflection, failed) => Some(Look::Reflect),
            Some(looked)
                if looked.assessment.asks_for_change() && !looked.adjustments.is_empty() =>
            {
                Some(Look::Adjust)
            }
            None if failed && self.may_replan() => Some(Look::Replan),
            Some(looked) if failed && looked.assessment.asks_for_change() && self.may_replan() => {
                Some(Look::Replan)
            }
            None | Some(_) => None,
        }
    }

    /// A failure is looked at as long as there are cycles left. What went well is looked at once,
    /// at the end of the first run: otherwise what completed after an adjustment would be looked at
    /// for ever.
    fn may_reflect(self, reflection: &Reflection, failed: bool) -> bool {
        let worth_it = failed || (!reflection.failures_only && reflection.cycles == 0);
        worth_it && reflection.cycles < reflection.max_cycles && self.tokens_left() != Some(0)
    }

    pub(super) fn may_replan(self) -> bool {
        self.run
            .start
            .reflection
            .as_ref()
            .is_some_and(|reflection| {
                !reflection.replanned
                    && reflection.replans < reflection.max_replans
                    && self.tokens_left() != Some(0)
            })
    }

    /// Returns how many tokens models may still use; absent where nothing bounds them.
    pub fn tokens_left(self) -> Option<u64> {
        let own = self
            .run
            .start
            .reflection
            .as_ref()
            .and_then(|reflection| reflection.max_tokens);
        let budget = self
            .run
            .plan
            .document()
            .limits
            .budget
            .tokens
            .filter(|_| self.run.start.guards);
        let limit = own.into_iter().chain(budget).min()?;
        Some(limit.saturating_sub(self.run.tokens()))
    }

    /// Returns where every step stands, as far as changing it is concerned.
    pub fn adjustable(self) -> Adjustable {
        self.run
            .plan
            .indices()
            .map(|ix| (self.run.step_id(ix).clone(), self.progress(ix)))
            .collect()
    }

    fn progress(self, ix: StepIx) -> StepProgress {
        let elements = || {
            self.run
                .open_loop(ix)
                .into_iter()
                .flat_map(super::Loop::instances)
        };
        let any =
            |is: fn(&StepState) -> bool| elements().any(|instance| is(self.run.step(instance)));
        if any(|state| matches!(state, StepState::OutcomeUnknown { .. })) {
            return StepProgress::Unknown;
        }
        let partly_done = any(|state| matches!(state, StepState::Completed { .. }));
        // Other plans and executors do things of their own, and so do agents once one of their
        // calls was made.
        let written = self.run.definition(ix);
        let called = self.run.agent_work(ix).is_some_and(|work| work.calls() > 0);
        let executor = written
            .agent
            .as_ref()
            .is_some_and(|agent| agent.executor.is_some());
        let works_by_itself = written.plan.is_some() || executor || called;
        let state = self.run.step(ix);
        match state {
            StepState::OutcomeUnknown { .. } => StepProgress::Unknown,
            StepState::AwaitingPlan { .. } => StepProgress::Partial,
            StepState::Failed { .. } | StepState::RetryDue { .. } | StepState::Ready { .. }
                if works_by_itself && state.tally().attempts > 0 =>
            {
                StepProgress::Partial
            }
            StepState::Failed { .. } | StepState::Looping { .. } | StepState::Cancelled { .. }
                if partly_done =>
            {
                StepProgress::Partial
            }
            StepState::Failed { .. } | StepState::RetryDue { .. } => StepProgress::Failed,
            StepState::Ready { tally, .. } | StepState::Cancelled { tally, .. }
                if tally.attempts > 0 =>
            {
                StepProgress::Failed
            }
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::Looping { .. }
            | StepState::Cancelled { .. } => StepProgress::Open,
            StepState::Running { .. }
            | StepState::Completed { .. }
            | StepState::Denied { .. }
            | StepState::Skipped { .. }
            | StepState::Undone { .. } => StepProgress::Done(state.status()),
        }
    }

    /// What failed how, and what is tried about it. The same twice in one work is no progress.
    pub(super) fn fingerprint(self, adjustments: &[Adjustment]) -> Digest {
        let failed: Vec<_> = self
            .run
            .plan
            .indices()
            .filter_map(|ix| {
                let StepState::Failed { error, .. } = self.run.step(ix) else { return None };
                Some(
                    json!({ "step": self.run.step_id(ix), "args": self.run.definition(ix).args, "code": error.code }),
                )
            })
            .collect();
        Digest::of_parts(&[
            b"progress",
            &canonical_json(&json!({ "failed": failed, "adjustments": adjustments })),
        ])
    }

    /// How the work goes on after this run was adjusted: the bounds, less what was used up.
    pub fn continuation(self) -> Option<Reflection> {
        let RunState::Adjusted { .. } = self.run.state else {
            return None;
        };
        let before = self.run.start.reflection.clone()?;
        let looked = self.run.looked_at.as_ref();
        let mut tried = before.tried.clone();
        tried.extend(looked.map(|looked| self.fingerprint(&looked.adjustments)));
        let ended_at = self.run.ended_at.unwrap_or(self.run.updated_at);
        Some(Reflection {
            cycles: before.cycles + u32::from(looked.is_some()),
            replans: before.replans + u32::from(self.run.replanned),
            replanned: before.replanned || self.run.replanned,
            continues: Some(self.run.id.clone()),
            tried,
            spent: self.run.usage.spent(ended_at.since(self.run.start.at)),
            ..before
        })
    }
}
