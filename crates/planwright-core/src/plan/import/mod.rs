//! Reading plans in every spelling people and models write them.
//!
//! The dialects are brought into the canonical form on the JSON value, before serde sees it: the
//! model itself then knows one spelling and refuses every key it does not know. Nothing is guessed
//! beyond what is written down in [`dialect`].

mod dialect;
mod normalise;

use super::nearest::{did_you_mean, nearest};
use super::{Bounds, Code, Document, Finding};
use crate::json::{ParseJsonError, fits, parse_strict, pointer_token};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at {place}")]
pub struct ReadPlanError {
    pub code: Code,
    pub place: Place,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Where in the text the problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Counted from 1.
    Text { line: usize, column: usize },
    /// A JSON pointer, in the spelling of the text where that is known.
    Pointer(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::Pointer(pointer) if pointer.is_empty() => f.write_str("the top of the document"),
            Self::Pointer(pointer) => f.write_str(pointer),
        }
    }
}

impl ReadPlanError {
    pub(super) fn at(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            place: Place::Pointer(pointer.into()),
            message: message.into(),
            suggestion: None,
        }
    }

    /// The same as a finding, for interfaces that show findings only.
    pub fn into_finding(self) -> Finding {
        let (pointer, message) = match self.place {
            Place::Pointer(pointer) => (pointer, self.message),
            Place::Text { .. } => (String::new(), format!("{} at {}", self.message, self.place)),
        };
        Finding::new(self.code, pointer, message).suggest(self.suggestion)
    }
}

impl From<ParseJsonError> for ReadPlanError {
    fn from(error: ParseJsonError) -> Self {
        let ParseJsonError {
            line,
            column,
            message,
            suggestion,
        } = error;
        Self {
            code: Code::Syntax,
            place: Place::Text { line, column },
            message,
            suggestion,
        }
    }
}

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
        if !fits(&value, bounds.max_depth, &mut usize::MAX.clone()) {
            let message = format!("the plan nests more than {} levels", bounds.max_depth);
            return Err(ReadPlanError::at(Code::TooLarge, "", message));
        }
        let value = normalise::plan(value)?;
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
        document.number_steps();
        braces_around_step_ids(&mut document);
        Ok(document)
    }
}

/// Turns serde's word into ours: a pointer, and the key that was probably meant.
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
        let near = nearest(unknown, known.iter().map(|&name| name.to_owned()));
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
