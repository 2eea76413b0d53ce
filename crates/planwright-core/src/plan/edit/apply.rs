//! Making changes: each on the part of the document that it is about.

use super::path::Path;
use super::place::{InsertPosition, check_order, find, graph, name_of};
use super::{Edit, EditError};
use crate::json::fits_within;
use crate::plan::import::explain;
use crate::plan::{Bounds, Document, ReadPlanError, Step, StepIx};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Document {
    /// The document after all these changes, made one after the other. Whether it is a sound plan
    /// is not looked at.
    pub fn with_edits(&self, edits: &[Edit], bounds: &Bounds) -> Result<Self, EditError> {
        if edits.len() > Edit::MAX {
            return Err(EditError::TooMany {
                found: edits.len(),
                limit: Edit::MAX,
            });
        }
        let mut document = self.clone();
        document.number_steps();
        for edit in edits {
            make(&mut document, edit, bounds)?;
            document.number_steps();
        }
        check_size(&document, bounds)?;
        Ok(document)
    }
}

impl Step {
    /// Reads one step in any of the accepted spellings. It keeps no id if it was written without
    /// one.
    pub fn read(value: Value, bounds: &Bounds) -> Result<Self, ReadPlanError> {
        let named = ["id", "index"].iter().any(|key| value.get(key).is_some());
        let read = Document::from_json(json!({ "steps": [value] }), bounds)?;
        let mut step = read.steps.into_iter().next().unwrap_or_default();
        if !named {
            step.id = None;
        }
        Ok(step)
    }
}

fn make(document: &mut Document, edit: &Edit, bounds: &Bounds) -> Result<(), EditError> {
    match edit {
        Edit::Set { path, value } => {
            if !fits_within(value, bounds.max_depth, &mut usize::MAX.clone()) {
                return Err(EditError::TooLarge(format!(
                    "a value nests more than {} levels",
                    bounds.max_depth
                )));
            }
            let path = Path::parse(path)?;
            change(document, &path, |first, root| {
                path.set(first, root, value.clone())
            })
        }
        Edit::Unset { path } => {
            let path = Path::parse(path)?;
            if let ["steps", _] = path.parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                return remove(document, &path.parts[1..], bounds);
            }
            change(document, &path, |first, root| path.unset(first, root))
        }
        Edit::Skip { step } => find(document, step).map(|index| document.steps[index].skip = true),
        Edit::Unskip { step } => {
            find(document, step).map(|index| document.steps[index].skip = false)
        }
        Edit::Add {
            step,
            before,
            after,
            to,
        } => {
            let place = InsertPosition {
                before: before.as_deref(),
                after: after.as_deref(),
                to: *to,
            };
            add(document, step, place)
        }
        Edit::Move {
            step,
            before,
            after,
            to,
        } => {
            let place = InsertPosition {
                before: before.as_deref(),
                after: after.as_deref(),
                to: *to,
            };
            relocate(document, step, place, bounds)
        }
        Edit::Remove { steps } => remove(document, steps, bounds),
    }
}

/// Changes the part of the document that the path leads to: one step, all steps, or the rest. Only
/// that part is written out and read back.
fn change(
    document: &mut Document,
    path: &Path,
    make: impl FnOnce(usize, &mut Value) -> Result<(), EditError>,
) -> Result<(), EditError> {
    match path.parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["id", ..] => Err(EditError::FixedId),
        ["steps"] => {
            document.steps = through_json(path, &document.steps, |root| make(1, root))?;
            Ok(())
        }
        ["steps", step, ..] => {
            let index = find(document, step)?;
            document.steps[index] =
                through_json(path, &document.steps[index], |root| make(2, root))?;
            Ok(())
        }
        _ => {
            let steps = std::mem::take(&mut document.steps);
            let changed = through_json(path, document, |root| make(0, root));
            *document = Document { steps, ..changed? };
            Ok(())
        }
    }
}

fn through_json<T: serde::Serialize + DeserializeOwned>(
    path: &Path,
    part: &T,
    make: impl FnOnce(&mut Value) -> Result<(), EditError>,
) -> Result<T, EditError> {
    let mut value = serde_json::to_value(part).expect("documents have only string keys");
    make(&mut value)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let ReadPlanError {
            message,
            suggestion,
            ..
        } = explain(&error);
        EditError::CannotHold {
            path: path.text.clone(),
            reason: message,
            suggestion,
        }
    })
}

fn add(document: &mut Document, step: &Step, place: InsertPosition<'_>) -> Result<(), EditError> {
    if let Some(id) = &step.id
        && document
            .steps
            .iter()
            .any(|known| known.id.as_ref() == Some(id))
    {
        return Err(EditError::DuplicateStep(id.to_string()));
    }
    let index = place.index(document)?.unwrap_or(document.steps.len());
    document.steps.insert(index, step.clone());
    Ok(())
}

fn relocate(
    document: &mut Document,
    step: &str,
    place: InsertPosition<'_>,
    bounds: &Bounds,
) -> Result<(), EditError> {
    let from = find(document, step)?;
    let Some(index) = place.index(document)? else {
        let words = "say where the step goes: before or after another step, or to a position";
        return Err(EditError::BadPlace(words.to_owned()));
    };
    // A position counts with the step where it is to be; the others, with the step where it is.
    let to = match place.to {
        Some(_) => index.min(document.steps.len() - 1),
        None if index > from => index - 1,
        None => index,
    };
    let moved = document.steps.remove(from);
    document.steps.insert(to, moved);
    check_order(document, to, bounds)
}

fn remove(document: &mut Document, names: &[String], bounds: &Bounds) -> Result<(), EditError> {
    let removed = names
        .iter()
        .map(|name| find(document, name))
        .collect::<Result<BTreeSet<usize>, _>>()?;
    if let Some(graph) = graph(document, bounds) {
        for &index in &removed {
            let others = graph
                .dependants(StepIx::new(index))
                .iter()
                .map(|ix| ix.index());
            let by: Vec<String> = others
                .filter(|other| !removed.contains(other))
                .map(|other| name_of(document, other))
                .collect();
            if !by.is_empty() {
                return Err(EditError::Needed {
                    step: name_of(document, index),
                    by,
                });
            }
        }
    }
    let mut index = 0;
    document.steps.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
    Ok(())
}

fn check_size(document: &Document, bounds: &Bounds) -> Result<(), EditError> {
    let bytes = serde_json::to_vec(document)
        .expect("documents have only string keys")
        .len();
    if bytes > bounds.max_document_bytes {
        let words = format!(
            "{bytes} bytes, at most {} are kept",
            bounds.max_document_bytes
        );
        return Err(EditError::TooLarge(words));
    }
    if document.steps.len() > bounds.max_steps {
        let words = format!(
            "{} steps, at most {} are allowed",
            document.steps.len(),
            bounds.max_steps
        );
        return Err(EditError::TooLarge(words));
    }
    Ok(())
}
