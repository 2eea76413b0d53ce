//! Starting a run from a point of another one: which results can be taken over.

use super::{Run, StoredValue};
use crate::plan::{Plan, StepIx};
use std::collections::BTreeSet;

/// A value that a fork takes over.
#[derive(Debug, Clone, PartialEq)]
pub struct ReusedResult {
    pub step: StepIx,
    pub value: StoredValue,
}

/// The results of `source` that a run of `plan` can take over if the steps in `from`, and all that follow from
/// them, run again. A result is taken over only if the step is written exactly as it was and everything it depends
/// on is taken over too. Steps come in dependency order.
pub fn reusable_results(source: &Run, plan: &Plan, from: &[StepIx]) -> Vec<ReusedResult> {
    let mut again: BTreeSet<StepIx> = from.iter().copied().collect();
    let mut reused = Vec::new();
    for &ix in plan.graph().order() {
        let stale = again.contains(&ix) || plan.graph().dependencies(ix).iter().any(|d| again.contains(d));
        match same_result(source, plan, ix).filter(|_| !stale) {
            Some(value) => reused.push(ReusedResult { step: ix, value }),
            None => {
                again.insert(ix);
            }
        }
    }
    reused
}

fn same_result(source: &Run, plan: &Plan, ix: StepIx) -> Option<StoredValue> {
    let old = source.plan().find(plan.step_id(ix).as_str())?;
    let unchanged = source.plan().step(old) == plan.step(ix)
        && source.plan().document().variables == plan.document().variables;
    source.step(old).value().filter(|_| unchanged).cloned()
}
