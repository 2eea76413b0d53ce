//! Differences between two versions of a plan, in the terms of a plan: steps and fields, not lines.

mod change;
mod compare;
mod text;

pub use change::{ChangeKind, FieldChange, PlanDiff, StepChange};
