//! Reads a plan from JSON.

use super::normalise::{self, CanonicalPlan};
use super::{ReadPlanError, SourceLocation, parse_yaml};
use crate::json::{fits_within, parse_strict, pointer_token};
use crate::plan::{Bounds, Code, Document};
use crate::text::{did_you_mean, nearest_names};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

impl Document {
    /// Reads a plan in canonical JSON or any of the accepted dialects.
    ///
    /// The result is canonical: every step has an id, every key its one spelling.
    pub fn read(text: &[u8], bounds: &Bounds) -> Result<Self, ReadPlanError> {
        if text.len() > bounds.max_document_bytes {
            let message = format!(
                "the plan has {} bytes, at most {} are read",
                text.len(),
                bounds.max_document_bytes
            );
            return Err(ReadPlanError::at(Code::TooLarge, "", message));
        }
        Self::from_json(parse_strict(text)?, bounds)
    }

    /// Reads a plan from a JSON value in any of the accepted dialects.
    ///
    /// The value must come from [`parse_strict`] or an equally strict parser: keys given twice are
    /// gone by now.
    pub fn from_json(value: Value, bounds: &Bounds) -> Result<Self, ReadPlanError> {
        let (mut document, in_order) = Self::from_unordered_json(value, bounds)?;
        for index in in_order {
            document.wait_for_the_one_before(index);
        }
        Ok(document)
    }

    /// The same, and the instructions that say nothing about their order.
    pub(in crate::plan) fn from_unordered_json(
        value: Value,
        bounds: &Bounds,
    ) -> Result<(Self, Vec<usize>), ReadPlanError> {
        if !fits_within(&value, bounds.max_depth, &mut usize::MAX.clone()) {
            let message = format!("the plan nests more than {} levels", bounds.max_depth);
            return Err(ReadPlanError::at(Code::TooLarge, "", message));
        }
        let CanonicalPlan {
            object: value,
            in_order,
        } = normalise::plan(value)?;
        if let Some(Value::Array(steps)) = value.get("steps")
            && steps.len() > bounds.max_steps
        {
            let message = format!(
                "the plan has {} steps, at most {} are allowed",
                steps.len(),
                bounds.max_steps
            );
            return Err(ReadPlanError::at(Code::TooLarge, "/steps", message));
        }
        let mut document: Self = serde_path_to_error::deserialize(Value::Object(value))
            .map_err(|error| explain(&error))?;
        if let Some(id) = document.id.as_ref().filter(|id| id.is_reserved()) {
            let message = format!("`{id}` is the name of a folder that is kept beside the plans");
            let mut refused = ReadPlanError::at(Code::BadId, "/id", message);
            refused.suggestion = Some("use another id".to_owned());
            return Err(refused);
        }
        document.number_steps();
        braces_around_step_ids(&mut document);
        Ok((document, in_order))
    }

    /// Everything in a text of JSON or YAML that does not have the shape of a plan, so that it is
    /// mended at once. Empty if it is a plan, or if not even its dialect can be read.
    pub fn find_shape_errors(text: &[u8], bounds: &Bounds) -> Vec<ReadPlanError> {
        if text.len() > bounds.max_document_bytes {
            return Vec::new();
        }
        let yaml = || parse_yaml(std::str::from_utf8(text).ok()?, bounds).ok();
        let value: Option<Value> = parse_strict(text).ok().or_else(yaml);
        value
            .filter(|value| fits_within(value, bounds.max_depth, &mut usize::MAX.clone()))
            .map(Self::shape_errors)
            .unwrap_or_default()
    }

    /// What cannot be read is taken out, and the rest is read again.
    fn shape_errors(value: Value) -> Vec<ReadPlanError> {
        const MOST: usize = 50;
        let Ok(CanonicalPlan { object, .. }) = normalise::plan(value) else {
            return Vec::new();
        };
        let mut rest = Value::Object(object);
        let mut errors: Vec<ReadPlanError> = Vec::new();
        while errors.len() < MOST {
            let read: Result<Self, _> = serde_path_to_error::deserialize(rest.clone());
            let Err(error) = read else { break };
            let refused = explain(&error);
            let SourceLocation::Pointer(pointer) = &refused.place else {
                break;
            };
            let mended = take_out(&mut rest, pointer);
            let is_known = errors.iter().any(|known| known.place == refused.place);
            if !is_known {
                errors.push(refused);
            }
            if !mended || is_known {
                break;
            }
        }
        errors
    }

    /// A list is written in the order things are done in.
    pub(in crate::plan) fn wait_for_the_one_before(&mut self, index: usize) {
        let before = index
            .checked_sub(1)
            .and_then(|before| self.steps[before].id.clone());
        let waits = &mut self.steps[index].depends_on;
        waits.extend(before.filter(|before| !waits.contains(before)));
    }

    /// Reads a plan that is written as YAML: the same model, with comments and long texts.
    pub fn read_yaml(text: &[u8], bounds: &Bounds) -> Result<Self, ReadPlanError> {
        let message = "the text is not UTF-8";
        let text =
            std::str::from_utf8(text).map_err(|_| ReadPlanError::at(Code::Syntax, "", message))?;
        if text.len() > bounds.max_document_bytes {
            let message = format!(
                "the plan has {} bytes, at most {} are read",
                text.len(),
                bounds.max_document_bytes
            );
            return Err(ReadPlanError::at(Code::TooLarge, "", message));
        }
        let value = parse_yaml(text, bounds).map_err(|error| error.refuse("the YAML", 0))?;
        Self::from_json(value, bounds)
    }
}

/// Takes out what a pointer names: a key with its value, or an element of a list, whose place is
/// kept. Returns whether something was there.
fn take_out(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, token)) = pointer.rsplit_once('/') else {
        return false;
    };
    let key = token.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&key).is_some(),
        Some(Value::Array(list)) => match key.parse::<usize>().ok().and_then(|at| list.get_mut(at))
        {
            Some(element) => {
                *element = Value::Object(Map::new());
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// Turns serde's error into ours: a pointer, and the key that was probably meant.
pub(in crate::plan) fn explain(
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> ReadPlanError {
    use serde_path_to_error::Segment;
    let message = error.inner().to_string();
    let mut pointer = String::new();
    for segment in error.path() {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => pointer_token(key),
            Segment::Enum { variant } => pointer_token(variant),
            Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&token);
    }
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, Some((unknown, known))) =
        (message.starts_with("unknown field"), names.split_first())
    {
        let token = format!("/{}", pointer_token(unknown));
        if !pointer.ends_with(&token) {
            pointer.push_str(&token);
        }
        let near = nearest_names(unknown, known.iter().map(|&name| name.to_owned()));
        let mut refused = ReadPlanError::at(
            Code::Shape,
            pointer,
            format!("the key `{unknown}` is unknown"),
        );
        let list = || Some(format!("the keys known here are {}", known.join(", ")));
        refused.suggestion = did_you_mean(&near).or_else(list);
        return refused;
    }
    let code = if message.starts_with("an id ") {
        Code::BadId
    } else {
        Code::Shape
    };
    ReadPlanError::at(code, pointer, message)
}

/// A string that is exactly `$<step id>` becomes `${<step id>}`. Variables are values, not texts
/// with references, so a variable `$5` stays what it is.
fn braces_around_step_ids(document: &mut Document) {
    let ids: BTreeSet<_> = document
        .steps
        .iter()
        .filter_map(|step| step.id.clone())
        .collect();
    let mend = |value: &mut Value| {
        each_string(value, &mut |text| {
            if let Some(id) = text.strip_prefix('$')
                && ids.contains(id)
            {
                *text = format!("${{{id}}}");
            }
        });
    };
    let mend_all = |map: &mut Map<String, Value>| map.iter_mut().for_each(|(_, value)| mend(value));
    for step in &mut document.steps {
        mend_all(&mut step.args);
        if let Some(undo) = &mut step.undo {
            mend_all(&mut undo.args);
        }
        if let Some(plan) = &mut step.plan {
            mend_all(&mut plan.inputs);
        }
    }
    for list in document
        .steps
        .iter_mut()
        .filter_map(|step| step.for_each.as_mut())
    {
        mend(list);
    }
}

fn each_string(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(list) => list
            .iter_mut()
            .for_each(|element| each_string(element, visit)),
        Value::Object(map) => map
            .iter_mut()
            .for_each(|(_, element)| each_string(element, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_without_the_shape_of_a_plan_is_named_at_once() {
        let value = json!({"titel": "a", "steps": [
            {"id": "a", "tol": "x", "retry": {"max": "three"}}, 7, {"id": "b", "timeoutSeconds": true}], "limits": {"x": 1}});
        let errors = Document::shape_errors(value);
        let places: Vec<String> = errors.iter().map(|error| error.place.to_string()).collect();
        for place in [
            "/titel",
            "/steps/0/tol",
            "/steps/0/retry/max",
            "/steps/1",
            "/limits/x",
        ] {
            assert!(
                places.contains(&place.to_owned()),
                "{place} is not in {places:?}"
            );
        }
        assert!(Document::shape_errors(json!({"steps": []})).is_empty());
        assert!(Document::shape_errors(json!(3)).is_empty());
    }
}
