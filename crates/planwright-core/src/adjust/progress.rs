//! The progress of each step of a run, as far as changing it is concerned.

use crate::id::StepId;
use crate::status::StepStatus;
use std::collections::BTreeMap;

/// The changes that a step may still have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepProgress {
    /// It has not run.
    Open,
    /// It ran and failed, and nothing of it was done.
    Failed,
    /// It failed, and part of it was done: some elements, some calls of an agent, some steps of
    /// another plan.
    Partial,
    /// It was executed, or it was decided that it is not. This is its status.
    Done(StepStatus),
    /// It is no step of the run, so that nothing is known about it.
    Absent,
    /// It is not known whether it happened.
    Unknown,
}

/// The progress of every step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adjustable(BTreeMap<StepId, StepProgress>);

impl Adjustable {
    /// Returns the progress of a step.
    pub fn progress(&self, step: &StepId) -> StepProgress {
        self.0.get(step).copied().unwrap_or(StepProgress::Absent)
    }

    /// Iterates over all steps in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&StepId, StepProgress)> {
        self.0.iter().map(|(step, progress)| (step, *progress))
    }
}

impl FromIterator<(StepId, StepProgress)> for Adjustable {
    fn from_iter<I: IntoIterator<Item = (StepId, StepProgress)>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}
