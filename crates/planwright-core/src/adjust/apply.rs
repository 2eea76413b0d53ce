//! Making a set of adjustments: all of them, or none.

use super::{Adjustable, Adjustment, StepProgress};
use crate::id::StepId;
use crate::plan::{Bounds, Document, Plan, Step};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Why a set of adjustments cannot be made. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjustError {
    /// Everything that is wrong, in the order of the adjustments.
    pub problems: Vec<String>,
}

impl fmt::Display for AdjustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for AdjustError {}

impl Adjustment {
    /// More than these are not made at once.
    pub const MAX: usize = 100;
}

impl Document {
    /// The document after all these adjustments, checked as a set. What was executed stays exactly
    /// as it is.
    pub fn apply_adjustments(
        &self,
        adjustments: &[Adjustment],
        state: &Adjustable,
        bounds: &Bounds,
    ) -> Result<Self, AdjustError> {
        let mut problems = Vec::new();
        check_set(adjustments, state, &mut problems);
        for adjustment in adjustments {
            check(self, adjustment, state, &mut problems);
        }
        check_ids(self, adjustments, &mut problems);
        if !problems.is_empty() {
            return Err(AdjustError { problems });
        }
        let mut document = self.clone();
        for adjustment in adjustments {
            make(&mut document, adjustment);
        }
        check_result(self, &document, state, bounds)?;
        Ok(document)
    }
}

/// A fault of the set as such.
fn check_set(adjustments: &[Adjustment], state: &Adjustable, problems: &mut Vec<String>) {
    if adjustments.is_empty() {
        problems.push("there is nothing to adjust".to_owned());
    }
    if adjustments.len() > Adjustment::MAX {
        problems.push(format!(
            "{} adjustments are too many: at most {} are made at once",
            adjustments.len(),
            Adjustment::MAX
        ));
    }
    let mut changed = BTreeSet::new();
    for adjustment in adjustments
        .iter()
        .filter(|adjustment| adjustment.changes_its_step())
    {
        if !changed.insert(adjustment.step()) {
            problems.push(format!("step `{}` is changed twice", adjustment.step()));
        }
    }
    for (step, progress) in state.iter() {
        match progress {
            StepProgress::Unknown => problems.push(format!(
                "whether step `{step}` happened is not known: a person has to say first"
            )),
            StepProgress::Partial if !is_left_behind(adjustments, step) => problems.push(format!(
                "part of step `{step}` was done, and it would be done again: skip or replace it"
            )),
            StepProgress::Partial
            | StepProgress::Open
            | StepProgress::Failed
            | StepProgress::Done(_)
            | StepProgress::Absent => {}
        }
    }
}

/// Returns whether the step, as it is, does not run again.
fn is_left_behind(adjustments: &[Adjustment], step: &StepId) -> bool {
    adjustments.iter().any(|adjustment| {
        matches!(
            adjustment,
            Adjustment::Skip { .. } | Adjustment::Replace { .. }
        ) && adjustment.step() == step
    })
}

impl Adjustment {
    /// Returns whether the step itself becomes another one; inserting beside it can be done any
    /// number of times.
    fn changes_its_step(&self) -> bool {
        match self {
            Self::Modify { .. } | Self::Retry { .. } | Self::Skip { .. } | Self::Replace { .. } => {
                true
            }
            Self::AddBefore { .. } | Self::AddAfter { .. } => false,
        }
    }

    /// The step it brings in.
    fn new_step(&self) -> Option<&Step> {
        match self {
            Self::AddBefore { new, .. } | Self::AddAfter { new, .. } => Some(new),
            Self::Modify { .. } | Self::Retry { .. } | Self::Skip { .. } | Self::Replace { .. } => {
                None
            }
        }
    }
}

/// Whether this adjustment may be made to the step as it stands.
fn check(
    document: &Document,
    adjustment: &Adjustment,
    state: &Adjustable,
    problems: &mut Vec<String>,
) {
    let id = adjustment.step();
    let word = adjustment.word();
    let Some(step) = find(document, id).map(|index| &document.steps[index]) else {
        problems.push(format!("{word}: there is no step `{id}`"));
        return;
    };
    let progress = state.progress(id);
    let refused = match (adjustment, progress) {
        (_, StepProgress::Unknown) | (Adjustment::AddAfter { .. }, _) => None,
        (_, StepProgress::Done(word)) => Some(format!(
            "it is {word}, and what was executed cannot be changed"
        )),
        (_, StepProgress::Absent) => {
            Some("it is not known, and what was executed cannot be changed".to_owned())
        }
        (Adjustment::Modify { .. }, StepProgress::Failed) => {
            Some("it has run and failed: retry it with other arguments".to_owned())
        }
        (Adjustment::Retry { .. }, StepProgress::Open) => Some("it has not failed".to_owned()),
        (
            Adjustment::Modify { .. } | Adjustment::Retry { .. } | Adjustment::AddBefore { .. },
            StepProgress::Partial,
        ) => Some("part of it was done".to_owned()),
        (
            Adjustment::Modify { .. }
            | Adjustment::Retry { .. }
            | Adjustment::Skip { .. }
            | Adjustment::Replace { .. }
            | Adjustment::AddBefore { .. },
            StepProgress::Open | StepProgress::Failed | StepProgress::Partial,
        ) => None,
    };
    problems.extend(refused.map(|why| format!("{word} of step `{id}`: {why}")));
    let has_args = matches!(
        adjustment,
        Adjustment::Modify { .. } | Adjustment::Retry { args: Some(_), .. }
    );
    if has_args && step.tool.is_none() {
        problems.push(format!(
            "{word} of step `{id}`: only the arguments of a tool can be changed"
        ));
    }
}

/// New steps have ids of their own.
fn check_ids(document: &Document, adjustments: &[Adjustment], problems: &mut Vec<String>) {
    let mut ids: BTreeSet<&StepId> = document
        .steps
        .iter()
        .filter_map(|step| step.id.as_ref())
        .collect();
    for id in adjustments
        .iter()
        .filter_map(|adjustment| adjustment.new_step()?.id.as_ref())
    {
        if !ids.insert(id) {
            problems.push(format!("there is a step `{id}` already"));
        }
    }
}

fn make(document: &mut Document, adjustment: &Adjustment) {
    let Some(index) = find(document, adjustment.step()) else {
        return;
    };
    match adjustment {
        Adjustment::Modify { args, .. } => set_args(&mut document.steps[index], args),
        Adjustment::Retry { args, .. } => {
            if let Some(args) = args {
                set_args(&mut document.steps[index], args);
            }
        }
        Adjustment::Skip { .. } => document.steps[index].skip = true,
        Adjustment::AddBefore { new, .. } => {
            let (new, id) = named(document, new);
            document.steps[index].depends_on.push(id);
            document.steps.insert(index, new);
        }
        Adjustment::AddAfter { step, new } => {
            let (mut new, _) = named(document, new);
            if !new.depends_on.contains(step) {
                new.depends_on.push(step.clone());
            }
            document.steps.insert(index + 1, new);
        }
        Adjustment::Replace { new, .. } => {
            let replaced = replacement(&document.steps[index], new);
            document.steps[index] = replaced;
        }
    }
}

/// All arguments are said anew: what is left out is gone.
fn set_args(step: &mut Step, args: &Map<String, Value>) {
    step.args.clone_from(args);
}

/// The new step under the id of the old one. What it waited for it still waits for, what narrowed it
/// still does, and what others call its value stays the same.
fn replacement(old: &Step, new: &Step) -> Step {
    let mut step = new.clone().keeping_safeguards_of(old);
    step.id.clone_from(&old.id);
    for dependency in &old.depends_on {
        if !step.depends_on.contains(dependency) {
            step.depends_on.push(dependency.clone());
        }
    }
    if step.result.is_none() {
        step.result.clone_from(&old.result);
    }
    step
}

/// The step with an id: its own, or the next one that is free.
fn named(document: &Document, new: &Step) -> (Step, StepId) {
    let mut step = new.clone();
    let id = step.id.clone().unwrap_or_else(|| {
        let free = (1..)
            .map(|number| format!("added-{number}"))
            .find_map(|name| {
                let id: StepId = name
                    .parse()
                    .expect("words and numbers make a valid step id");
                find(document, &id).is_none().then_some(id)
            });
        free.expect("there is always a next number")
    });
    step.id = Some(id.clone());
    (step, id)
}

fn find(document: &Document, id: &StepId) -> Option<usize> {
    document
        .steps
        .iter()
        .position(|step| step.id.as_ref() == Some(id))
}

/// The result is a sound plan in which everything that was executed is as it was.
fn check_result(
    before: &Document,
    after: &Document,
    state: &Adjustable,
    bounds: &Bounds,
) -> Result<(), AdjustError> {
    let failed = |problems| Err(AdjustError { problems });
    let bytes = serde_json::to_vec(after)
        .expect("documents have only string keys")
        .len();
    if bytes > bounds.max_document_bytes {
        let limit = bounds.max_document_bytes;
        return failed(vec![format!(
            "the adjusted plan has {bytes} bytes, at most {limit} are kept"
        )]);
    }
    if let Err(findings) = Plan::compile(after.clone(), bounds) {
        return failed(
            findings
                .into_iter()
                .map(|finding| finding.to_string())
                .collect(),
        );
    }
    for step in &before.steps {
        let Some(id) = &step.id else { continue };
        let is_same = find(after, id).is_some_and(|index| after.steps[index] == *step);
        if matches!(
            state.progress(id),
            StepProgress::Done(_) | StepProgress::Absent
        ) && !is_same
        {
            return failed(vec![format!(
                "step `{id}` was executed, and cannot be changed"
            )]);
        }
    }
    Ok(())
}
