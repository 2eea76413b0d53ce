//! Keeping the sets of steps by what can happen next in step with their states.

use super::{Run, StepState};
use crate::plan::StepIx;
use std::cmp::Reverse;

impl Run {
    pub(super) fn replace(&mut self, ix: StepIx, next: StepState) {
        self.leave_index(ix);
        self.steps[ix.index()] = next;
        self.enter_index(ix);
        self.index.changed.push(ix);
    }

    fn leave_index(&mut self, ix: StepIx) {
        let key = (Reverse(self.priority(ix)), ix);
        let own = ix.index() < self.plan.len();
        let index = &mut self.index;
        match &self.steps[ix.index()] {
            StepState::Ready { .. } => {
                if !index.ready.remove(&key) {
                    index.unasked.remove(&ix);
                }
            }
            StepState::Running {
                deadline, question, ..
            } => {
                index.running.remove(&ix);
                if question.is_some() {
                    index.waiting.remove(&ix);
                }
                if let Some(at) = deadline {
                    index.timers.remove(&(*at, ix));
                }
            }
            StepState::RetryDue { due_at, .. } => {
                index.timers.remove(&(*due_at, ix));
            }
            StepState::AwaitingApproval { expires_at, .. } => {
                index.waiting.remove(&ix);
                if let Some(at) = expires_at {
                    index.expiries.remove(&(*at, ix));
                }
            }
            StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::OutcomeUnknown { .. } => {
                index.waiting.remove(&ix);
            }
            StepState::Completed { .. } => index.completed -= usize::from(own),
            StepState::Looping { .. } => {
                index.closable.remove(&ix);
            }
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Failed { .. }
            | StepState::Denied { .. }
            | StepState::Skipped { .. }
            | StepState::Cancelled { .. }
            | StepState::Undone { .. } => {}
        }
        if !self.steps[ix.index()].is_terminal() {
            index.open -= 1;
            index.open_own -= usize::from(own);
        }
    }

    pub(super) fn enter_index(&mut self, ix: StepIx) {
        let key = (Reverse(self.priority(ix)), ix);
        let gated = self.needs_approval(ix);
        let own = ix.index() < self.plan.len();
        let index = &mut self.index;
        match &self.steps[ix.index()] {
            StepState::Ready { approved, .. } => {
                if gated && !approved {
                    index.unasked.insert(ix);
                } else {
                    index.ready.insert(key);
                }
            }
            StepState::Running {
                deadline, question, ..
            } => {
                index.running.insert(ix);
                if question.is_some() {
                    index.waiting.insert(ix);
                }
                if let Some(at) = deadline {
                    index.timers.insert((*at, ix));
                }
            }
            StepState::RetryDue { due_at, .. } => {
                index.timers.insert((*due_at, ix));
            }
            StepState::AwaitingApproval { expires_at, .. } => {
                index.waiting.insert(ix);
                if let Some(at) = expires_at {
                    index.expiries.insert((*at, ix));
                }
            }
            StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::OutcomeUnknown { .. } => {
                index.waiting.insert(ix);
            }
            StepState::Completed { .. } => {
                index.completed += usize::from(own);
                if own {
                    index.finished.push(ix);
                }
            }
            StepState::Pending { .. }
            | StepState::Looping { .. }
            | StepState::Blocked { .. }
            | StepState::Failed { .. }
            | StepState::Denied { .. }
            | StepState::Skipped { .. }
            | StepState::Cancelled { .. }
            | StepState::Undone { .. } => {}
        }
        if !self.steps[ix.index()].is_terminal() {
            index.open += 1;
            index.open_own += usize::from(own);
        }
    }

    fn priority(&self, ix: StepIx) -> u64 {
        self.index
            .priority
            .get(self.plan_step(ix).index())
            .copied()
            .unwrap_or_default()
    }
}
