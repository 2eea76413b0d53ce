//! Steps that others wait for because something is asked or checked there.

use crate::id::StepId;
use crate::plan::{Bounds, Document, Plan, Step, StepIx};
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether a person is asked at the step, or a check decides whether others go on.
pub(super) fn guards_others(step: &Step) -> bool {
    !step.skip && (step.approval_required || step.asks_person() || step.expect.is_some())
}

/// For each step, the guarding steps that it waits for, directly or through others.
pub(super) fn guards_before(document: &Document) -> BTreeMap<StepId, BTreeSet<StepId>> {
    let guards = document.steps.iter().any(guards_others);
    if !guards {
        return BTreeMap::new();
    }
    // Names that steps share make edges too, so the edges are those of the compiled plan. A
    // document that is no plan runs nothing: what it says itself is enough.
    match Plan::compile(document.clone(), &Bounds::default()) {
        Ok(plan) => guards_in_plan(&plan),
        Err(_) => declared_guards(document),
    }
}

fn guards_in_plan(plan: &Plan) -> BTreeMap<StepId, BTreeSet<StepId>> {
    let mut before: Vec<BTreeSet<StepIx>> = vec![BTreeSet::new(); plan.len()];
    for &ix in plan.graph().order() {
        let mut guards = BTreeSet::new();
        for &on in plan.graph().dependencies(ix) {
            guards.extend(&before[on.index()]);
            if guards_others(plan.step(on)) {
                guards.insert(on);
            }
        }
        before[ix.index()] = guards;
    }
    let named = |guards: &BTreeSet<StepIx>| {
        let ids = guards.iter().map(|&guard| plan.step_id(guard).clone());
        ids.collect()
    };
    plan.indices()
        .map(|ix| (plan.step_id(ix).clone(), named(&before[ix.index()])))
        .collect()
}

fn declared_guards(document: &Document) -> BTreeMap<StepId, BTreeSet<StepId>> {
    let guards: BTreeSet<&StepId> = document
        .steps
        .iter()
        .filter(|step| guards_others(step))
        .filter_map(|step| step.id.as_ref())
        .collect();
    let of_step = |step: &Step| {
        let waits = step.depends_on.iter().filter(|on| guards.contains(on));
        Some((step.id.clone()?, waits.cloned().collect()))
    };
    document.steps.iter().filter_map(of_step).collect()
}
