//! Starting a run from a point of another one: which results can be taken over.

use super::{Run, RunEvent, StepState, StoredValue};
use crate::plan::{Plan, StepIx};
use std::collections::BTreeSet;

/// A value that a fork takes over.
#[derive(Debug, Clone, PartialEq)]
pub struct ReusedResult {
    /// The step or element.
    pub step: StepIx,
    /// The value that came back.
    pub value: StoredValue,
}

/// The results of `source` that a run of `plan` can take over if the steps in `from`, and all that
/// follow from them, run again. A result is taken over only if the step is written exactly as it
/// was and everything it depends on is taken over too. Steps come in dependency order.
pub fn reusable_results(source: &Run, plan: &Plan, from: &[StepIx]) -> Vec<ReusedResult> {
    let mut again: BTreeSet<StepIx> = from.iter().copied().collect();
    let mut reused = Vec::new();
    for &ix in plan.graph().order() {
        let stale = again.contains(&ix)
            || plan
                .graph()
                .dependencies(ix)
                .iter()
                .any(|d| again.contains(d));
        match same_result(source, plan, ix).filter(|_| !stale) {
            Some(value) => reused.push(ReusedResult { step: ix, value }),
            None => {
                again.insert(ix);
            }
        }
    }
    reused
}

/// What a run of `plan` takes over from the run that it goes on from: values as above, and steps
/// that were skipped, so that nothing that was executed after them is executed again.
pub fn carry_over(source: &Run, plan: &Plan) -> Vec<RunEvent> {
    let mut again: BTreeSet<StepIx> = BTreeSet::new();
    let mut taken_over = Vec::new();
    for &ix in plan.graph().order() {
        let stale = plan
            .graph()
            .dependencies(ix)
            .iter()
            .any(|dependency| again.contains(dependency));
        let step = plan.step_id(ix).clone();
        let value = same_result(source, plan, ix).map(|value| RunEvent::ResultReused {
            step: step.clone(),
            value,
        });
        let skipped = || {
            let reason = same_skip(source, plan, ix)?;
            Some(RunEvent::StepSkipped {
                step: step.clone(),
                reason,
                by: None,
            })
        };
        match value.or_else(skipped).filter(|_| !stale) {
            Some(event) => taken_over.push(event),
            None => {
                again.insert(ix);
            }
        }
    }
    taken_over
}

fn same_skip(source: &Run, plan: &Plan, ix: StepIx) -> Option<String> {
    let old = source.plan().find(plan.step_id(ix).as_str())?;
    let StepState::Skipped { reason } = source.step(old) else {
        return None;
    };
    (source.plan().step(old) == plan.step(ix)).then(|| reason.to_string())
}

fn same_result(source: &Run, plan: &Plan, ix: StepIx) -> Option<StoredValue> {
    let old = source.plan().find(plan.step_id(ix).as_str())?;
    let unchanged = source.plan().step(old) == plan.step(ix)
        && source.plan().document().variables == plan.document().variables;
    source.step(old).value().filter(|_| unchanged).cloned()
}
