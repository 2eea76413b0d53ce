//! A plan as people see it in a terminal, with the marks of one of its runs.

use planwright_core::plan::{Glyph, Plan};
use planwright_core::run::{Run, StepState};

/// The steps of a plan, each with a mark for where it stands in `run`.
pub(crate) fn render(plan: &Plan, run: Option<&Run>) -> String {
    let before = |ix| {
        if plan.step(ix).skip {
            Glyph::Skipped
        } else {
            Glyph::Pending
        }
    };
    planwright_core::plan::render(plan, |ix| {
        run.map_or_else(|| before(ix), |run| glyph(run.step(ix)))
    })
}

pub(crate) fn glyph(state: &StepState) -> Glyph {
    match state {
        StepState::Pending { .. } => Glyph::Pending,
        StepState::Blocked { .. } => Glyph::Blocked,
        StepState::Ready { .. } => Glyph::Ready,
        StepState::AwaitingApproval { .. } => Glyph::AwaitingApproval,
        StepState::AwaitingInput { .. }
        | StepState::AwaitingPlan { .. }
        | StepState::Running {
            question: Some(_), ..
        } => Glyph::AwaitingInput,
        StepState::Running { .. } | StepState::Looping { .. } => Glyph::Running,
        StepState::RetryDue { .. } => Glyph::RetryDue,
        StepState::Completed { .. } => Glyph::Completed,
        StepState::Failed { .. } => Glyph::Failed,
        StepState::Denied { .. } => Glyph::Denied,
        StepState::Skipped { .. } => Glyph::Skipped,
        StepState::Cancelled { .. } => Glyph::Cancelled,
        StepState::OutcomeUnknown { .. } => Glyph::OutcomeUnknown,
        StepState::Undone { .. } => Glyph::Undone,
    }
}
