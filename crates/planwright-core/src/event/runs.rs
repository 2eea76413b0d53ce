//! The events of one run.

use super::details::{MAX_TEXT, cut};
use super::fold::{FoldEventsError, KeptVersions};
use super::reviews::queued_steps;
use super::story::Story;
use super::{ErrorSummary, EventName, ResultSummary, StepDetails};
use crate::digest::Digest;
use crate::id::{RunId, StepId, split_instance};
use crate::journal::Entry;
use crate::plan::{Bounds, Plan, Step, StepIx};
use crate::principal::Principal;
use crate::run::{
    CallFate, Corrupt, Run, RunEvent, StepError, StepErrorCode, StepState, priorities,
    unit_estimate,
};
use crate::status::{RunStatus, StepStatus};
use crate::trace::TraceId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run as its events are told.
#[derive(Debug, Clone)]
pub(super) struct LiveRun {
    pub(super) trace: TraceId,
    /// Its steps, once it has ended: some may be taken back.
    steps: Arc<[StepDetails]>,
    /// `None` once it has ended: what may follow needs no state.
    run: Option<Box<Run>>,
    /// The status that was last told of each step.
    told: BTreeMap<StepIx, (StepStatus, u32)>,
}

impl LiveRun {
    pub(super) fn begin(
        id: &RunId,
        first: &Entry<RunEvent>,
        (versions, plan_trace): (&KeptVersions, TraceId),
        bounds: &Bounds,
    ) -> Result<(Self, Vec<Story>), FoldEventsError> {
        let RunEvent::RunStarted {
            version,
            digest,
            variables,
            by,
            document,
            trace,
            ..
        } = &first.event
        else {
            return Err(Corrupt::NoStart.into());
        };
        let document = match document {
            Some(document) => (**document).clone(),
            None => versions
                .find(*version)
                .ok_or_else(|| FoldEventsError::NoSuchVersion(id.clone(), *version))?
                .with_variables(variables),
        };
        let plan = Arc::new(Plan::compile(document, bounds).map_err(FoldEventsError::Plan)?);
        let priority = priorities(&plan, unit_estimate);
        let run = Run::open(id.clone(), Arc::clone(&plan), priority, first)?;
        let mut stories = vec![Story {
            version: Some(*version),
            digest: Some(*digest),
            ..Story::new(EventName::RunStarted, format!("{by} started {id}")).by(by)
        }];
        stories.extend(queued_steps(plan.document()));
        let trace = trace.as_deref().copied().unwrap_or(plan_trace);
        Ok((
            Self {
                trace,
                steps: Arc::default(),
                run: Some(Box::new(run)),
                told: BTreeMap::new(),
            },
            stories,
        ))
    }

    pub(super) fn is_open(&self) -> bool {
        self.run.is_some()
    }

    /// Tells the events that one more entry of the run means.
    pub(super) fn tell(&mut self, entry: &Entry<RunEvent>) -> Result<Vec<Story>, FoldEventsError> {
        let Some(run) = &mut self.run else {
            return Ok(self.after_the_end(&entry.event));
        };
        run.apply(entry)?;
        let mut stories = Vec::new();
        for &ix in run.changed_steps() {
            let Some(state) = public_state(run.step(ix), &entry.event) else {
                continue;
            };
            let said = (state, run.step(ix).tally().attempts);
            if self.told.insert(ix, said) != Some(said) {
                stories.push(step_story(run, ix, state, &entry.event));
            }
        }
        stories.extend(turn_story(run, &entry.event));
        stories.extend(run_story(run.id(), &entry.event));
        if run.state().is_terminal() {
            let steps = run.plan().document().steps.iter();
            let details = |step: &Step| {
                let id = step.id.clone()?;
                Some(StepDetails::new(id, step, StepStatus::Undone))
            };
            self.steps = steps.filter_map(details).collect();
            self.run = None;
            self.told = BTreeMap::new();
        }
        Ok(stories)
    }

    fn after_the_end(&self, event: &RunEvent) -> Vec<Story> {
        if let RunEvent::UndoOpened { run, by, .. } = event {
            return vec![
                Story::new(
                    EventName::RunUndoing,
                    format!("{by} has it taken back by {run}"),
                )
                .by(by),
            ];
        }
        if let RunEvent::StepUndone { step, run } = event {
            let details = self.definition(step).map(|found| StepDetails {
                id: step.clone(),
                ..found.clone()
            });
            let summary = format!("step `{step}` was undone by {run}");
            return vec![Story {
                step: details,
                ..Story::new(EventName::PlanStep, summary)
            }];
        }
        Vec::new()
    }

    /// Uses the steps of another run if they are the same, and leaves its own there if not.
    pub(super) fn share_steps(&mut self, last: &mut Arc<[StepDetails]>) {
        if *last == self.steps {
            self.steps = Arc::clone(last);
        } else {
            *last = Arc::clone(&self.steps);
        }
    }

    fn definition(&self, step: &StepId) -> Option<&StepDetails> {
        let id = split_instance(step.as_str()).map_or(step.as_str(), |(step, _)| step);
        self.steps.iter().find(|step| step.id.as_str() == id)
    }
}

/// The word for a step's state, or nothing while it only waits for its turn.
fn public_state(state: &StepState, event: &RunEvent) -> Option<StepStatus> {
    if let StepState::Ready { tally, .. } = state {
        let approved = matches!(event, RunEvent::ApprovalGranted { .. });
        let again = (tally.attempts > 0).then_some(StepStatus::RetryDue);
        return if approved {
            Some(StepStatus::Approved)
        } else {
            again
        };
    }
    (!matches!(state, StepState::Pending { .. })).then(|| state.status())
}

fn step_story(run: &Run, ix: StepIx, state: StepStatus, event: &RunEvent) -> Story {
    let id = run.step_id(ix);
    let found = run.step(ix);
    let attempt = Some(found.tally().attempts).filter(|attempts| *attempts > 0);
    let error = run.explain(found).or_else(|| last_error(state, event));
    let word = state.as_str().replace('_', " ");
    let summary = match (&error, attempt) {
        (Some(error), _) => format!("step `{id}` {word}: {}", cut(&error.message, 200)),
        (None, Some(attempt)) if attempt > 1 => format!("step `{id}` {word} (attempt {attempt})"),
        (None, _) => format!("step `{id}` {word}"),
    };
    let (by, reason, digest) = consent(event);
    Story {
        step: Some(StepDetails::new(id.clone(), run.definition(ix), state)),
        attempt,
        result: found.value().map(ResultSummary::new),
        error: error.as_ref().map(ErrorSummary::new),
        by,
        reason,
        digest,
        ..Story::new(EventName::PlanStep, summary)
    }
}

/// Tells what an executor wanted, and the decision about it.
fn turn_story(run: &Run, event: &RunEvent) -> Option<Story> {
    let RunEvent::AgentTurn {
        step,
        attempt,
        calls,
        ..
    } = event
    else {
        return None;
    };
    let ix = run.find(step.as_str()).filter(|_| !calls.is_empty())?;
    let said = calls.iter().map(|call| match &call.fate {
        CallFate::Run(child) => format!("{} ({child})", cut(&call.tool, MAX_TEXT)),
        CallFate::Refused(error) => {
            format!("{} (refused: {})", cut(&call.tool, MAX_TEXT), error.code)
        }
    });
    let said: Vec<String> = said.collect();
    let summary = cut(
        &format!("step `{step}` wants {}", said.join(", ")),
        MAX_TEXT,
    );
    let details = StepDetails::new(step.clone(), run.definition(ix), run.step(ix).status());
    Some(Story {
        step: Some(details),
        attempt: Some(*attempt),
        ..Story::new(EventName::PlanStep, summary)
    })
}

/// Returns why a step has to be tried again.
fn last_error(state: StepStatus, event: &RunEvent) -> Option<StepError> {
    if let RunEvent::AttemptInterrupted { reason, .. } = event {
        return Some(StepError::new(StepErrorCode::Interrupted, reason));
    }
    if let (RunEvent::AttemptFailed { error, .. }, StepStatus::RetryDue) = (event, state) {
        return Some(error.clone());
    }
    None
}

/// The principal who said what, where a person is asked: the digest is that of the concrete call.
fn consent(event: &RunEvent) -> (Option<Principal>, Option<String>, Option<Digest>) {
    if let RunEvent::ApprovalRequested {
        call: Some(call), ..
    } = event
    {
        return (None, Some(cut(&call.reason, MAX_TEXT)), Some(call.digest));
    }
    if let RunEvent::ApprovalGranted { by, call, .. } = event {
        return (Some(by.clone()), None, *call);
    }
    if let RunEvent::ApprovalDenied { by, reason, .. } = event {
        return (Some(by.clone()), Some(cut(reason, MAX_TEXT)), None);
    }
    if let RunEvent::InputGiven { by, .. } | RunEvent::OutcomeResolved { by, .. } = event {
        return (Some(by.clone()), None, None);
    }
    if let RunEvent::StepSkipped { by: Some(by), .. } = event {
        return (Some(by.clone()), None, None);
    }
    (None, None, None)
}

/// Tells what the entry means for the run as a whole; nothing for entries about steps.
fn run_story(id: &RunId, event: &RunEvent) -> Option<Story> {
    use EventName as N;
    let story = |name, summary| Some(Story::new(name, summary));
    let story_by = |name, by: &Principal, summary| Some(Story::new(name, summary).by(by));
    match event {
        RunEvent::RunPaused { by } => story_by(N::RunPaused, by, format!("{by} paused {id}")),
        RunEvent::RunResumed { by } => story_by(N::RunResumed, by, format!("{by} resumed {id}")),
        RunEvent::RunStalled { since } => story(
            N::RunStalled,
            format!("no process has executed {id} since {since}"),
        ),
        RunEvent::RunQueued { slots } => story(
            N::RunQueued,
            format!("{id} waits for its turn: {slots} runs are executed at once"),
        ),
        RunEvent::RunGivenUp { by, reason, .. } => {
            let told = Story::new(N::RunFailed, format!("{by} gave {id} up")).by(by);
            Some(Story {
                reason: Some(cut(reason, MAX_TEXT)),
                ..told
            })
        }
        RunEvent::CancelRequested { by } => {
            story_by(N::RunCancelling, by, format!("{by} cancels {id}"))
        }
        RunEvent::RunReflected {
            assessment,
            reasoning,
            ..
        } => {
            let told = Story::new(
                N::PlanReflected,
                format!("{id} was looked at: {assessment}"),
            );
            Some(Story {
                reason: Some(cut(reasoning, MAX_TEXT)),
                ..told
            })
        }
        RunEvent::RunAdjusted { version, .. } => {
            let told = Story::new(
                N::PlanAdjusted,
                format!("{id} continues with version {version}"),
            );
            Some(Story {
                version: Some(*version),
                ..told
            })
        }
        RunEvent::RunCompleted { failures, .. } => {
            let without = match failures {
                0 => String::new(),
                1 => " with 1 failed step".to_owned(),
                more => format!(" with {more} failed steps"),
            };
            let story = Story::new(N::RunCompleted, format!("{id} completed{without}"));
            let error = (*failures > 0).then(|| ErrorSummary {
                code: RunStatus::CompletedWithFailures.to_string(),
                message: format!(
                    "the plan says to go on without steps that fail, and {failures} did"
                ),
            });
            Some(Story { error, ..story })
        }
        RunEvent::RunFailed { .. } => story(N::RunFailed, format!("{id} failed")),
        RunEvent::RunCancelled { .. } => story(N::RunCancelled, format!("{id} was cancelled")),
        RunEvent::RunStarted { .. }
        | RunEvent::ResultReused { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::AttemptSucceeded { .. }
        | RunEvent::AttemptFailed { .. }
        | RunEvent::AttemptInterrupted { .. }
        | RunEvent::StepIsolated { .. }
        | RunEvent::IsolationEnded { .. }
        | RunEvent::AttemptCancelled { .. }
        | RunEvent::OutcomeLost { .. }
        | RunEvent::OutcomeResolved { .. }
        | RunEvent::ChildParked { .. }
        | RunEvent::ChildResumed { .. }
        | RunEvent::StepFailed { .. }
        | RunEvent::StepSkipped { .. }
        | RunEvent::ApprovalRequested { .. }
        | RunEvent::ApprovalGranted { .. }
        | RunEvent::ApprovalDenied { .. }
        | RunEvent::LoopOpened { .. }
        | RunEvent::LoopClosed { .. }
        | RunEvent::InputRequested { .. }
        | RunEvent::InputGiven { .. }
        | RunEvent::ModelUsed { .. }
        | RunEvent::AgentTurn { .. }
        | RunEvent::CriteriaChecked { .. }
        | RunEvent::UndoOpened { .. }
        | RunEvent::StepUndone { .. } => None,
    }
}
