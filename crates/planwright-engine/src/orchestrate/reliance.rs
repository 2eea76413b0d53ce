//! What steps that change something rely on. Whoever agreed to such a step agreed to it after the steps before it as they
//! were: a check that a model may skip, replace or word anew is none.

use planwright_core::plan::{Action, Document, Plan, Step, StepIx};
use planwright_core::tool::Catalog;
use std::collections::BTreeSet;

/// Whether a change of a plan leaves everything alone that a step which does more than read comes after. Steps that are
/// new are not looked at here.
pub(super) fn is_left_alone(before: &Document, plan: &Plan, catalog: &Catalog) -> bool {
    before.steps.iter().all(|old| {
        let Some(ix) = old.id.as_ref().and_then(|id| plan.find(id.as_str())) else { return false };
        let new = plan.step(ix);
        let still_after = old.depends_on.iter().all(|before| new.depends_on.contains(before));
        let skipped = new.skip && !old.skip;
        let same = work(old) == work(new);
        still_after && !skipped && (same || !leads_to_a_change(plan, ix, catalog))
    })
}

/// What a step does, without its place.
fn work(step: &Step) -> Step {
    Step { depends_on: Vec::new(), ..step.clone() }
}

/// Whether anything that comes after the step does more than read.
fn leads_to_a_change(plan: &Plan, ix: StepIx, catalog: &Catalog) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = plan.graph().dependants(ix).to_vec();
    while let Some(ix) = next.pop() {
        if !seen.insert(ix) {
            continue;
        }
        if !only_reads(plan.step(ix), catalog) {
            return true;
        }
        next.extend(plan.graph().dependants(ix));
    }
    false
}

fn only_reads(step: &Step, catalog: &Catalog) -> bool {
    match step.action() {
        Some(Action::Tool { name, .. }) => catalog.resolve(name).is_ok_and(|tool| tool.is_read_only()),
        // They are given values and call nothing.
        Some(Action::Think(_) | Action::Input(_)) => true,
        Some(Action::Agent(_) | Action::Plan(_)) | None => false,
    }
}
