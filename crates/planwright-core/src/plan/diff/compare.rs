//! Comparing two documents. The cost is that of reading both once, and of sorting their steps.

use super::{ChangeKind, FieldChange, PlanDiff, StepChange};
use crate::id::StepId;
use crate::plan::digest::{WORDS_OF_PLAN, WORDS_OF_STEP};
use crate::plan::edit::segment;
use crate::plan::{Document, SafeguardLoss, Step};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

impl PlanDiff {
    /// Compares two versions. Steps are the same if they have the same id.
    pub fn between(before: &Document, after: &Document) -> Self {
        Self {
            fields: plan_fields(before, after),
            steps: steps(before, after),
            safeguards: SafeguardLoss::between(before, after),
        }
    }
}

fn plan_fields(before: &Document, after: &Document) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let executors_are_told = before.goal_for_executors() != after.goal_for_executors();
    let context_is_told = before.context_for_executors() != after.context_for_executors();
    let before = own_fields(before);
    let after = own_fields(after);
    each_key(&before, &after, |name, one, other| {
        // The order of a scope means nothing.
        let same_set = name == "toolsRequired" && as_set(one) == as_set(other);
        let is_told = executors_are_told && matches!(name, "goal" | "title")
            || context_is_told && name == "context";
        let executable = is_told || !WORDS_OF_PLAN.contains(&name) && !same_set;
        compare(&segment(name), one, other, executable, &mut changes);
    });
    changes
}

/// The plan's own fields, without its steps.
fn own_fields(document: &Document) -> Map<String, Value> {
    let Document {
        id,
        title,
        goal,
        inputs,
        variables,
        steps: _,
        outputs,
        tools_required,
        success_criteria,
        context,
        risks,
        limits,
        planner_model,
        executor_model,
        estimated_duration,
    } = document;
    let own = Document {
        id: id.clone(),
        title: title.clone(),
        goal: goal.clone(),
        inputs: inputs.clone(),
        variables: variables.clone(),
        steps: Vec::new(),
        outputs: outputs.clone(),
        tools_required: tools_required.clone(),
        success_criteria: success_criteria.clone(),
        context: context.clone(),
        risks: risks.clone(),
        limits: limits.clone(),
        planner_model: planner_model.clone(),
        executor_model: executor_model.clone(),
        estimated_duration: *estimated_duration,
    };
    let mut fields = object(serde_json::to_value(own));
    fields.remove("steps");
    fields
}

fn object(value: serde_json::Result<Value>) -> Map<String, Value> {
    match value.expect("documents have only string keys") {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// A step and its position, counted from 0.
type Placed<'a> = (usize, &'a Step);

fn by_id(document: &Document) -> BTreeMap<StepId, Placed<'_>> {
    let steps = document.steps.iter().enumerate();
    steps
        .filter_map(|(index, step)| Some((step.id.clone()?, (index, step))))
        .collect()
}

fn steps(before: &Document, after: &Document) -> Vec<StepChange> {
    let known = by_id(before);
    let kept = by_id(after);
    let moved = moved(&known, after);
    let mut changes = Vec::new();
    for (to, step) in after.steps.iter().enumerate() {
        let Some(id) = &step.id else { continue };
        let found = known.get(id).copied();
        changes.extend(step_change(id, found, Some((to, step)), moved.contains(id)));
    }
    for (from, step) in before.steps.iter().enumerate() {
        if let Some(id) = step.id.as_ref().filter(|id| !kept.contains_key(*id)) {
            changes.extend(step_change(id, Some((from, step)), None, false));
        }
    }
    changes
}

fn step_change(
    id: &StepId,
    before: Option<Placed<'_>>,
    after: Option<Placed<'_>>,
    moved: bool,
) -> Option<StepChange> {
    let fields = match (before, after) {
        (Some((_, before)), Some((_, after))) if before == after => Vec::new(),
        _ => step_fields(before.map(|(_, step)| step), after.map(|(_, step)| step)),
    };
    let kind = match (before.is_some(), after.is_some()) {
        (false, _) => ChangeKind::Added,
        (true, false) => ChangeKind::Removed,
        (true, true) if !fields.is_empty() => ChangeKind::Changed,
        (true, true) if moved => ChangeKind::Moved,
        (true, true) => return None,
    };
    let (_, shown) = after.or(before)?;
    // The order of the steps is part of the digest: names that several steps set depend on it.
    let whole = matches!(kind, ChangeKind::Added | ChangeKind::Removed) || moved;
    Some(StepChange {
        id: id.clone(),
        kind,
        title: shown.title.clone(),
        action: shown.action_label().to_owned(),
        from: before.map(|(index, _)| index + 1),
        to: after.map(|(index, _)| index + 1),
        moved,
        executable: whole || fields.iter().any(|change| change.executable),
        fields,
    })
}

fn step_fields(before: Option<&Step>, after: Option<&Step>) -> Vec<FieldChange> {
    let fields = |step: Option<&Step>| {
        let mut fields = step
            .map(|step| object(serde_json::to_value(step)))
            .unwrap_or_default();
        fields.remove("id");
        fields
    };
    let before = fields(before);
    let after = fields(after);
    let mut changes = Vec::new();
    each_key(&before, &after, |name, one, other| {
        let same_set = name == "dependsOn" && as_set(one) == as_set(other);
        let executable = !WORDS_OF_STEP.contains(&name) && !same_set;
        compare(&segment(name), one, other, executable, &mut changes);
    });
    changes
}

/// The keys of both, each once: those of `after` first, in their order, then those that are gone.
fn each_key<'v>(
    before: &'v Map<String, Value>,
    after: &'v Map<String, Value>,
    mut visit: impl FnMut(&str, Option<&'v Value>, Option<&'v Value>),
) {
    for (name, value) in after {
        visit(name, before.get(name), Some(value));
    }
    for (name, value) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        visit(name, Some(value), None);
    }
}

fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    executable: bool,
    changes: &mut Vec<FieldChange>,
) {
    if before == after {
        return;
    }
    if let (Some(Value::Object(one)), Some(Value::Object(other))) = (before, after) {
        each_key(one, other, |name, one, other| {
            compare(
                &format!("{path}.{}", segment(name)),
                one,
                other,
                executable,
                changes,
            );
        });
        return;
    }
    changes.push(FieldChange {
        path: path.to_owned(),
        before: before.cloned(),
        after: after.cloned(),
        executable,
    });
}

fn as_set(value: Option<&Value>) -> BTreeSet<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(ToString::to_string).collect()
}

/// The fewest steps whose move explains the new order: those outside the longest part that kept its
/// order.
fn moved(known: &BTreeMap<StepId, Placed<'_>>, after: &Document) -> BTreeSet<StepId> {
    let common: Vec<(&StepId, usize)> = after
        .steps
        .iter()
        .filter_map(|step| {
            let id = step.id.as_ref()?;
            Some((id, known.get(id)?.0))
        })
        .collect();
    // Of each length, where the run that ends lowest ends; and for each step, the one before it in
    // its run.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::new();
    for (at, &(_, from)) in common.iter().enumerate() {
        let length = ends.partition_point(|&end| common[end].1 < from);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut stayed = BTreeSet::new();
    let mut at = ends.last().copied();
    while let Some(here) = at {
        stayed.insert(here);
        at = previous[here];
    }
    let outside = common
        .iter()
        .enumerate()
        .filter(|(at, _)| !stayed.contains(at));
    outside.map(|(_, (id, _))| (*id).clone()).collect()
}
