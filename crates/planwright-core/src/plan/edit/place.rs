//! Positions for steps, and the check that a step can stand there.

use super::EditError;
use crate::plan::compile::compile;
use crate::plan::finding::Findings;
use crate::plan::{Bounds, Document, Graph, Step, StepIx};
use crate::text::{did_you_mean, nearest_names};

/// The position for a step: at most one of the three.
#[derive(Debug, Clone, Copy)]
pub(super) struct InsertPosition<'a> {
    pub(super) before: Option<&'a str>,
    pub(super) after: Option<&'a str>,
    pub(super) to: Option<usize>,
}

impl InsertPosition<'_> {
    /// The index at which a step is put in; `None` if no place was named.
    pub(super) fn index(self, document: &Document) -> Result<Option<usize>, EditError> {
        let places = document.steps.len() + 1;
        match (self.before, self.after, self.to) {
            (None, None, None) => Ok(None),
            (Some(step), None, None) => find(document, step).map(Some),
            (None, Some(step), None) => find(document, step).map(|index| Some(index + 1)),
            (None, None, Some(position)) if (1..=places).contains(&position) => {
                Ok(Some(position - 1))
            }
            (None, None, Some(position)) => Err(EditError::BadPlace(format!(
                "there is no position {position}: positions are 1 to {places}"
            ))),
            _ => Err(EditError::BadPlace(
                "name one place: before, after or a position".to_owned(),
            )),
        }
    }
}

/// The step with this id, or at this position if no step has that id.
pub(super) fn find(document: &Document, name: &str) -> Result<usize, EditError> {
    let is_named = |step: &Step| step.id.as_ref().is_some_and(|id| id.as_str() == name);
    if let Some(index) = document.steps.iter().position(is_named) {
        return Ok(index);
    }
    let position = name
        .parse::<usize>()
        .ok()
        .and_then(|position| position.checked_sub(1));
    if let Some(index) = position.filter(|&index| index < document.steps.len()) {
        return Ok(index);
    }
    let ids = document
        .steps
        .iter()
        .filter_map(|step| step.id.as_ref())
        .map(ToString::to_string);
    let near = did_you_mean(&nearest_names(name, ids));
    let suggestion = near.or_else(|| Some(format!("the plan has {} steps", document.steps.len())));
    Err(EditError::NoSuchStep {
        name: name.chars().take(100).collect(),
        suggestion,
    })
}

/// The name of a step in messages.
pub(super) fn name_of(document: &Document, index: usize) -> String {
    let id = document.steps.get(index).and_then(|step| step.id.as_ref());
    id.map_or_else(|| (index + 1).to_string(), ToString::to_string)
}

/// Returns the dependencies between steps. `None` while the document is not sound: validation
/// reports what is wrong.
pub(super) fn graph(document: &Document, bounds: &Bounds) -> Option<Graph> {
    compile(document.clone(), bounds, &mut Findings::default())?.graph
}

/// Refuses an order in which the step stands before what it needs, or after what needs it.
pub(super) fn check_order(
    document: &Document,
    index: usize,
    bounds: &Bounds,
) -> Result<(), EditError> {
    let Some(graph) = graph(document, bounds) else {
        return Ok(());
    };
    let ix = StepIx::new(index);
    let step = || name_of(document, index);
    if let Some(dependency) = graph
        .dependencies(ix)
        .iter()
        .find(|other| other.index() > index)
    {
        let dependency = name_of(document, dependency.index());
        return Err(EditError::BeforeDependency {
            step: step(),
            dependency,
        });
    }
    if let Some(dependant) = graph
        .dependants(ix)
        .iter()
        .find(|other| other.index() < index)
    {
        let dependant = name_of(document, dependant.index());
        return Err(EditError::AfterDependant {
            step: step(),
            dependant,
        });
    }
    Ok(())
}
