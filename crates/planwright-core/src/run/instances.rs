//! Steps that run once per element: the instances that a run adds to the steps of its plan.
//!
//! An instance is a step like any other, with attempts, retries, approval and everything else; its
//! index comes after those of the plan. What the step that loops comes to follows from its
//! instances: it fails with the first of them that fails for good, and is closed with the list of
//! their values when the last one is done.

use super::{Run, StepEvent, StepState, StoredValue};
use crate::id::{StepId, split_instance};
use crate::plan::{Step, StepIx};
use std::collections::BTreeMap;

/// One element's turn of a step that loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The step of the plan.
    pub step: StepIx,
    /// The element, counted from 0.
    pub index: u32,
    id: StepId,
}

/// A step that runs once per element.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The list, as it was when the loop was opened.
    pub items: StoredValue,
    /// The number of elements.
    pub count: u32,
    first: StepIx,
    /// Elements from here on have not begun.
    next: u32,
    /// Instances that are not done yet.
    open: u32,
    /// One of them failed or was denied: no other begins.
    stopped: bool,
}

impl Loop {
    /// The instances in the order of their elements.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = StepIx> + use<> {
        let first = self.first.index();
        (first..first + self.count as usize).map(StepIx::new)
    }

    /// Instances that are done.
    pub fn done_count(&self) -> u32 {
        self.count - self.open
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Loops {
    by_step: BTreeMap<StepIx, Loop>,
    instances: Vec<Instance>,
}

impl Run {
    /// The most elements one step may run over.
    pub const MAX_ELEMENTS: usize = 10_000;

    /// The most instances all steps of a run may have together.
    pub const MAX_INSTANCES: usize = 100_000;

    /// The element's turn that `ix` is, if it is not a step of the plan itself.
    pub fn instance(&self, ix: StepIx) -> Option<&Instance> {
        self.loops
            .instances
            .get(ix.index().checked_sub(self.plan.len())?)
    }

    /// The loop that `ix` has opened.
    pub fn open_loop(&self, ix: StepIx) -> Option<&Loop> {
        self.loops.by_step.get(&ix)
    }

    /// The step of the plan that `ix` is, or is an instance of.
    pub fn plan_step(&self, ix: StepIx) -> StepIx {
        self.instance(ix).map_or(ix, |instance| instance.step)
    }

    /// The step as the plan has it.
    pub fn definition(&self, ix: StepIx) -> &Step {
        self.plan.step(self.plan_step(ix))
    }

    /// Returns the id of the step or instance.
    pub fn step_id(&self, ix: StepIx) -> &StepId {
        self.instance(ix)
            .map_or_else(|| self.plan.step_id(ix), |instance| &instance.id)
    }

    /// The step or instance of this name.
    pub fn find(&self, id: &str) -> Option<StepIx> {
        if let Some(ix) = self.plan.find(id) {
            return Some(ix);
        }
        let (step, index) = split_instance(id)?;
        let opened = self.loops.by_step.get(&self.plan.find(step)?)?;
        (index < opened.count).then(|| StepIx::new(opened.first.index() + index as usize))
    }

    /// The plan's steps, then the instances in the order their loops were opened.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = StepIx> + use<> {
        (0..self.steps.len()).map(StepIx::new)
    }

    pub(super) fn instances(&self) -> usize {
        self.loops.instances.len()
    }

    /// Returns whether the step runs once per element, and is not such a run itself.
    pub fn loops(&self, ix: StepIx) -> bool {
        self.instance(ix).is_none() && self.plan.step(ix).for_each.is_some()
    }

    /// Returns whether a person is asked before anything of this step is called. A loop asks for
    /// each element.
    pub fn needs_approval(&self, ix: StepIx) -> bool {
        self.definition(ix).approval_required && !self.loops(ix) && !self.definition(ix).skip
    }

    /// Returns whether a sibling of this instance failed for good.
    pub(super) fn is_stopped(&self, ix: StepIx) -> bool {
        let opened = self
            .instance(ix)
            .and_then(|instance| self.loops.by_step.get(&instance.step));
        opened.is_some_and(|opened| opened.stopped)
    }

    /// Adds the instances of a loop and lets the first of them begin.
    pub(super) fn enter_loop(&mut self, ix: StepIx, items: &StoredValue, count: u32) {
        let first = StepIx::new(self.steps.len());
        let id = self.plan.step_id(ix).clone();
        for index in 0..count {
            self.loops.instances.push(Instance {
                step: ix,
                index,
                id: id.instance(index),
            });
            self.steps.push(StepState::Pending { waits_for: 1 });
            self.enter_index(StepIx::new(first.index() + index as usize));
        }
        let opened = Loop {
            items: items.clone(),
            count,
            first,
            next: 0,
            open: count,
            stopped: false,
        };
        self.loops.by_step.insert(ix, opened);
        let at_once = self.plan.step(ix).max_parallel.unwrap_or(u32::MAX).max(1);
        for _ in 0..count.min(at_once) {
            self.begin_next(ix);
        }
        if count == 0 {
            self.index.closable.insert(ix);
        }
    }

    /// Lets the next element begin.
    fn begin_next(&mut self, step: StepIx) {
        let Some(opened) = self.loops.by_step.get_mut(&step) else {
            return;
        };
        if opened.next == opened.count {
            return;
        }
        let ix = StepIx::new(opened.first.index() + opened.next as usize);
        opened.next += 1;
        if let Some(next) = self.step(ix).after(&StepEvent::DependencyDone) {
            self.replace(ix, next);
        }
    }

    /// What follows for a loop from something that happened to one of its instances.
    pub(super) fn settle_instance(&mut self, ix: StepIx) {
        let Some(Instance { step, index, .. }) = self.instance(ix).cloned() else {
            return;
        };
        if self.is_stopped(ix) {
            let denied = matches!(self.step(step), StepState::Denied { .. });
            if denied && self.is_critical(step) && matches!(self.step(ix), StepState::Failed { .. })
            {
                self.failed_after_denial = Some(step);
            }
            self.stop_instance(ix, step);
            return;
        }
        match self.step(ix).clone() {
            StepState::Completed { .. } | StepState::Skipped { .. } => {
                self.begin_next(step);
                let Some(opened) = self.loops.by_step.get_mut(&step) else {
                    return;
                };
                opened.open -= 1;
                if opened.open == 0 {
                    self.index.closable.insert(step);
                }
            }
            StepState::Failed { error, .. } => {
                self.stop_loop(
                    step,
                    &StepEvent::ElementFailed {
                        index,
                        error: &error,
                    },
                );
            }
            StepState::Denied { reason } => {
                self.stop_loop(
                    step,
                    &StepEvent::ElementDenied {
                        index,
                        reason: &reason,
                    },
                );
            }
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::Running { .. }
            | StepState::Looping { .. }
            | StepState::RetryDue { .. }
            | StepState::Cancelled { .. }
            | StepState::OutcomeUnknown { .. }
            | StepState::Undone { .. } => {}
        }
    }

    /// Ends a loop with what happened to one element: calls in flight finish, nothing else begins.
    fn stop_loop(&mut self, step: StepIx, event: &StepEvent<'_>) {
        let Some(opened) = self.loops.by_step.get_mut(&step) else {
            return;
        };
        opened.stopped = true;
        for ix in opened.instances() {
            self.stop_instance(ix, step);
        }
        if let Some(next) = self.step(step).after(event) {
            self.replace(step, next);
            self.propagate(step);
        }
    }

    fn stop_instance(&mut self, ix: StepIx, step: StepIx) {
        let reason = format!(
            "not run: another element of step `{}` did not succeed",
            self.plan.step_id(step)
        );
        if let Some(next) = self
            .step(ix)
            .after(&StepEvent::LoopStopped { reason: &reason })
        {
            self.replace(ix, next);
        }
    }

    /// Returns whether the loop can be closed: every instance is done.
    pub(super) fn is_closable(&self, ix: StepIx) -> bool {
        self.index.closable.contains(&ix)
    }
}
