//! How far each step of a run has come, as far as changing it is concerned.

use crate::id::StepId;
use std::collections::BTreeMap;

/// What may still be changed about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has not run.
    Open,
    /// It ran and failed, and nothing of it was done.
    Failed,
    /// It failed, and part of it was done: some elements, some calls of an agent, some steps of
    /// another plan.
    Partial,
    /// It was executed, or it was decided that it is not. This is its state.
    Done(&'static str),
    /// Nobody knows whether it happened.
    Unknown,
}

/// Every step of a plan with where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adjustable(BTreeMap<StepId, Standing>);

impl Adjustable {
    /// A step that nothing is known about counts as one that was executed: it cannot be changed.
    pub fn standing(&self, step: &StepId) -> Standing {
        self.0
            .get(step)
            .copied()
            .unwrap_or(Standing::Done("not known"))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&StepId, Standing)> {
        self.0.iter().map(|(step, standing)| (step, *standing))
    }
}

impl FromIterator<(StepId, Standing)> for Adjustable {
    fn from_iter<I: IntoIterator<Item = (StepId, Standing)>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}
