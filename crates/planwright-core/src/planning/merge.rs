//! Merges a planner's answer into a plan. Steps it was not asked about and steps that have run
//! stay.

use super::schema::StepSlot;
use crate::id::StepId;
use crate::plan::{Code, Document, Finding, Plan, Step};
use crate::status::StepStatus;
use serde_json::Value;
use std::collections::BTreeSet;

/// The outcome of a step in a run whose remaining work is planned again.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutcome {
    /// The step.
    pub step: StepId,
    /// Its outcome.
    pub outcome: StepFate,
}

/// The treatment of a step when the rest is planned again.
#[derive(Debug, Clone, PartialEq)]
pub enum StepFate {
    /// It is done, and stays as it is; what came out, as far as it is shown.
    Kept {
        /// Status of the step.
        status: StepStatus,
        /// Its value, as far as it is shown.
        value: Option<Value>,
    },
    /// It has to be planned again; why, if it failed.
    Open {
        /// Status of the step.
        status: StepStatus,
        /// The error it failed with.
        error: Option<String>,
    },
}

/// The plan with the steps that were asked about taken from the answer, and all others as they
/// were. What narrowed a step narrows it still: a planner is not told of it, and cannot lift it.
pub fn merge_steps(
    old: &Document,
    chosen: &[StepId],
    answer: Document,
) -> Result<Document, Vec<Finding>> {
    let mut merged = old.clone();
    let mut findings = Vec::new();
    for id in chosen {
        let place = merged
            .steps
            .iter_mut()
            .find(|step| step.id.as_ref() == Some(id));
        let new = answer
            .steps
            .iter()
            .find(|step| step.id.as_ref() == Some(id));
        match (place, new) {
            (Some(place), Some(new)) => *place = rewritten(old, place, new),
            (Some(_), None) => {
                let message = format!("the answer has no step `{id}`, which was asked for");
                findings.push(Finding::new(Code::Shape, "/steps", message));
            }
            (None, _) => {
                let message = format!("the plan has no step `{id}`");
                findings.push(Finding::new(Code::UnknownDependency, "/steps", message));
            }
        }
    }
    merged.planner_model = answer.planner_model;
    if findings.is_empty() {
        Ok(merged)
    } else {
        Err(findings)
    }
}

/// The step as it was written anew, with the safeguards of the one before it.
fn rewritten(plan: &Document, before: &Step, new: &Step) -> Step {
    let mut step = new.clone().keeping_safeguards_of(before);
    let guards = plan.guards_named_by(before);
    let lost: Vec<StepId> = guards
        .filter(|guard| !step.depends_on.contains(guard))
        .cloned()
        .collect();
    step.depends_on.extend(lost);
    step
}

/// The answer as a new version of a plan: what it does is the answer's, everything people decided
/// about it stays.
pub fn merge_whole(old: &Document, answer: Document) -> Document {
    let mut merged = Document {
        title: answer.title,
        steps: answer.steps,
        // They name steps, and those are the answer's.
        outputs: answer.outputs,
        success_criteria: answer.success_criteria,
        risks: answer.risks,
        estimated_duration: answer.estimated_duration,
        planner_model: answer.planner_model,
        ..old.clone()
    };
    merged.keep_safeguards_of(old);
    merged
}

/// The plan with the steps that have run as they were, and the answer for the rest.
pub fn merge_remaining(old: &Document, kept: &BTreeSet<StepId>, answer: Document) -> Document {
    let is_kept = |id: &Option<StepId>| id.as_ref().is_some_and(|id| kept.contains(id));
    let mut steps: Vec<_> = old
        .steps
        .iter()
        .filter(|step| is_kept(&step.id))
        .cloned()
        .collect();
    steps.extend(answer.steps.into_iter().filter(|step| !is_kept(&step.id)));
    let outputs = match answer.outputs.is_empty() {
        true => old.outputs.clone(),
        false => answer.outputs,
    };
    let planner_model = answer.planner_model;
    let mut merged = Document {
        steps,
        outputs,
        planner_model,
        ..old.clone()
    };
    merged.keep_safeguards_of(old);
    merged
}

/// The places of steps that are written anew among others that stay. Each may depend on every step
/// that cannot depend on it: on the steps before it, and on those that need none of the steps from
/// it on.
pub(super) fn slots_among(plan: &Plan, chosen: &[StepId]) -> Vec<StepSlot> {
    let mut levels = vec![0_usize; plan.indices().count()];
    let mut places = Vec::new();
    for &ix in plan.graph().order() {
        let below = plan
            .graph()
            .dependencies(ix)
            .iter()
            .map(|on| levels[on.index()])
            .max();
        levels[ix.index()] = below.unwrap_or_default();
        if chosen.contains(plan.step_id(ix)) {
            places.push(ix);
            levels[ix.index()] = places.len();
        }
    }
    let slot = |(ix, level): (&crate::plan::StepIx, usize)| {
        let before = plan.indices().filter(|other| levels[other.index()] < level);
        let earlier = before
            .map(|other| plan.step_id(other).to_string())
            .collect();
        StepSlot {
            id: plan.step_id(*ix).to_string(),
            earlier,
        }
    };
    places.iter().zip(1_usize..).map(slot).collect()
}

/// Places after steps that stay, under names that no step of the plan has had.
pub(super) fn slots_after(
    document: &Document,
    kept: &BTreeSet<StepId>,
    count: usize,
) -> Vec<StepSlot> {
    let numbers = document
        .steps
        .iter()
        .filter_map(|step| step.id.as_ref()?.as_str().strip_prefix('s'));
    let taken: Option<usize> = numbers.filter_map(|number| number.parse().ok()).max();
    let first = taken.filter(|&taken| taken < 1_000_000).unwrap_or_default() + 1;
    let mut earlier: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let mut slots = Vec::with_capacity(count);
    for number in first..first + count {
        let id = format!("s{number}");
        slots.push(StepSlot {
            id: id.clone(),
            earlier: earlier.clone(),
        });
        earlier.push(id);
    }
    slots
}
