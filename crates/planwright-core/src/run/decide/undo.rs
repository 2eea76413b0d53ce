//! Taking an ended run back, and going on with the runs of sub-plans.

use crate::digest::Digest;
use crate::id::RunId;
use crate::plan::StepIx;
use crate::principal::{Assurance, Principal};
use crate::run::{Refusal, Run, RunEvent, StepEvent, StepState};

impl Run {
    /// Returns whether an earlier undo has ended is for the caller to know: it has a journal of its
    /// own.
    pub(super) fn decide_undo(
        &self,
        run: &RunId,
        digest: Digest,
        by: &Principal,
        assurance: Assurance,
    ) -> Result<Vec<RunEvent>, Refusal> {
        if !by.may_approve() {
            return Err(Refusal::MayNotApprove(by.clone()));
        }
        if self.undoable().next().is_none() {
            return Err(self.nothing_to_undo());
        }
        Ok(vec![RunEvent::UndoOpened {
            run: run.clone(),
            digest,
            by: by.clone(),
            assurance,
        }])
    }

    /// Returns why there is nothing to take back.
    pub(in crate::run) fn nothing_to_undo(&self) -> Refusal {
        let taken_back = self
            .index
            .finished
            .iter()
            .any(|&ix| matches!(self.step(ix), StepState::Undone { .. }));
        match self.undos.last() {
            Some(run) if taken_back => Refusal::AlreadyUndone { run: run.clone() },
            Some(_) | None => Refusal::NothingToUndo,
        }
    }

    pub(super) fn decide_undone(&self, ix: StepIx, run: &RunId) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.plan.step_id(ix).clone();
        match self
            .step(ix)
            .after(&StepEvent::Undone)
            .filter(|_| self.undos.last() == Some(run))
        {
            Some(_) => Ok(vec![RunEvent::StepUndone {
                step,
                run: run.clone(),
            }]),
            None => Err(Refusal::NothingToUndo),
        }
    }

    pub(super) fn decide_resume_children(&self) -> Vec<RunEvent> {
        let waiting = self
            .schedule()
            .waiting()
            .filter(|&ix| matches!(self.step(ix), StepState::AwaitingPlan { .. }));
        waiting
            .map(|ix| RunEvent::ChildResumed {
                step: self.step_id(ix).clone(),
            })
            .collect()
    }
}
