//! The report of a run, as data.

use super::{Run, StepError, StepErrorCode, StepState, StoredValue};
use crate::digest::Digest;
use crate::id::{PlanId, RunId, StepId};
use crate::plan::StepIx;
use crate::status::{RunStatus, StepStatus};
use crate::time::Timestamp;
use std::time::Duration;

/// The report of a run so far: every step, in plan order.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// The plan.
    pub plan: PlanId,
    /// The run.
    pub run: RunId,
    /// The version of the plan.
    pub version: u32,
    /// The digest of exactly what runs.
    pub digest: Digest,
    /// The status of the run.
    pub status: RunStatus,
    /// The run completed.
    pub success: bool,
    /// The time it took, or takes so far.
    pub duration: Duration,
    /// The steps of the plan, in order.
    pub steps: Vec<StepReport>,
}

/// The report of a step so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// The id of the step.
    pub id: StepId,
    /// The title that the author gave it.
    pub title: Option<String>,
    /// The tool, or the kind of work.
    pub tool: String,
    /// The status of the step.
    pub status: StepStatus,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The time it took, or takes so far.
    pub duration: Duration,
    /// The value, if it completed.
    pub value: Option<StoredValue>,
    /// The error, if it did not complete.
    pub error: Option<StepError>,
    /// The run of its sub-plan, while that waits for a person.
    pub waits_for: Option<RunId>,
    /// The reports of the elements of a step that runs once for each; nothing for other steps.
    pub items: Option<Vec<ItemReport>>,
}

/// The report of one element of a loop so far.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemReport {
    /// The element, counted from 0.
    pub index: u32,
    /// The status of the element.
    pub status: StepStatus,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The time it took, or takes so far.
    pub duration: Duration,
    /// The value, if it completed.
    pub value: Option<StoredValue>,
    /// The error, if it did not complete.
    pub error: Option<StepError>,
}

impl RunReport {
    /// Reports what the run came to by now.
    pub fn new(run: &Run, now: Timestamp) -> Self {
        Self {
            plan: run.plan.id().clone(),
            run: run.id.clone(),
            version: run.start.version,
            digest: run.start.digest,
            status: run.status(),
            success: run.status() == RunStatus::Completed,
            duration: run.ended_at.unwrap_or(now).since(run.start.at),
            steps: run
                .plan
                .indices()
                .map(|ix| StepReport::new(run, ix, now))
                .collect(),
        }
    }
}

impl Run {
    /// Returns every value that the run keeps: those of its steps and their elements, and the
    /// arguments that approvers are asked about.
    pub fn stored_values(&self) -> impl Iterator<Item = &StoredValue> + '_ {
        self.indices().flat_map(|ix| {
            let state = self.step(ix);
            let asked = if let StepState::AwaitingApproval {
                call: Some(call), ..
            } = state
            {
                Some(&call.args)
            } else {
                None
            };
            state.value().into_iter().chain(asked)
        })
    }
}

impl StepReport {
    /// Reports what a step of the run came to by now.
    pub fn new(run: &Run, ix: StepIx, now: Timestamp) -> Self {
        let step = run.definition(ix);
        let state = run.step(ix);
        Self {
            id: run.step_id(ix).clone(),
            title: step.title.clone(),
            tool: step.action_label().to_owned(),
            status: state.status(),
            attempts: state.tally().attempts,
            duration: duration(state, now),
            value: state.value().cloned(),
            error: run.explain(state),
            waits_for: if let StepState::AwaitingPlan { run, .. } = state {
                Some(run.clone())
            } else {
                None
            },
            items: run.open_loop(ix).map(|opened| {
                let items = opened.instances().zip(0..);
                items
                    .map(|(ix, index)| ItemReport::new(run, ix, index, now))
                    .collect()
            }),
        }
    }
}

impl ItemReport {
    fn new(run: &Run, ix: StepIx, index: u32, now: Timestamp) -> Self {
        let state = run.step(ix);
        Self {
            index,
            status: state.status(),
            attempts: state.tally().attempts,
            duration: duration(state, now),
            value: state.value().cloned(),
            error: run.explain(state),
        }
    }
}

impl Run {
    /// Returns why a step is where it is, for those that did not complete.
    pub(crate) fn explain(&self, state: &StepState) -> Option<StepError> {
        match state {
            StepState::Failed { error, .. } => Some((**error).clone()),
            StepState::Blocked { by } => {
                let step = self.step_id(*by);
                let message = format!(
                    "step `{step}` {}, so this step cannot run",
                    self.step(*by).status()
                );
                Some(StepError::new(
                    StepErrorCode::dependency_failed(step),
                    message,
                ))
            }
            StepState::Denied { reason } => Some(StepError::new(StepErrorCode::Denied, &**reason)),
            StepState::Skipped { reason } => {
                Some(StepError::new(StepErrorCode::Skipped, &**reason))
            }
            StepState::Cancelled { reason, .. } => {
                Some(StepError::new(StepErrorCode::Cancelled, &**reason))
            }
            StepState::OutcomeUnknown { reason, .. } => {
                Some(StepError::new(StepErrorCode::OutcomeUnknown, &**reason))
            }
            StepState::AwaitingPlan { run, .. } => Some(StepError::new(
                StepErrorCode::AwaitingPlan,
                format!("{run} waits for a person"),
            )),
            StepState::Pending { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::Running { .. }
            | StepState::Looping { .. }
            | StepState::RetryDue { .. }
            | StepState::Completed { .. }
            | StepState::Undone { .. } => None,
        }
    }
}

fn duration(state: &StepState, now: Timestamp) -> Duration {
    match state {
        StepState::Completed { took, .. } | StepState::Failed { took, .. } => *took,
        StepState::Running {
            started_at: since, ..
        }
        | StepState::Looping {
            opened_at: since, ..
        } => now.since(*since),
        StepState::Pending { .. }
        | StepState::Blocked { .. }
        | StepState::Ready { .. }
        | StepState::AwaitingApproval { .. }
        | StepState::AwaitingInput { .. }
        | StepState::AwaitingPlan { .. }
        | StepState::RetryDue { .. }
        | StepState::Denied { .. }
        | StepState::Skipped { .. }
        | StepState::Cancelled { .. }
        | StepState::OutcomeUnknown { .. }
        | StepState::Undone { .. } => Duration::ZERO,
    }
}
