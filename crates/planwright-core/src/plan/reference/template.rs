//! Arguments with references in them, and how they become the bytes that are sent.
//!
//! A template is parsed once. Resolving it is one pass over its pieces: what a reference resolves
//! to is copied and never scanned, so a tool's output cannot smuggle in a reference of its own.

use super::json_text::JsonTexts;
use super::parse::{Piece, Written, split};
use super::{ParseReferenceError, PathSegment, Reference, Root};
use crate::json::pointer_token;
use crate::plan::StepIx;
use crate::secret::SecretName;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A JSON value with parsed references. What a reference resolves to is never scanned again.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// A value without references.
    Literal(Value),
    /// The whole string is a reference: the value keeps its type.
    Reference(Reference),
    /// References with text around them: the result is a string.
    Text(Vec<Segment>),
    /// A list with references inside.
    List(Vec<Self>),
    /// An object with references inside, in the order of its keys.
    Object(Vec<(String, Self)>),
}

/// A piece of a text with references.
#[derive(Debug, Clone, PartialEq)]
pub enum Segment {
    /// Text that is sent as it is.
    Text(String),
    /// A reference whose value is put in.
    Reference(Reference),
}

/// The values a run has so far.
pub trait Values {
    /// Returns the value of a variable.
    fn variable(&self, name: &str) -> Option<&Value>;
    /// Returns the value of a step, once it has one.
    fn step(&self, ix: StepIx) -> Option<&Value>;

    /// Returns the value for a secret: its text where it is sent, its reference where it is shown,
    /// nothing anywhere else.
    fn secret(&self, _name: &str) -> Option<&Value> {
        None
    }
}

/// The reason a template cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The reference has no value.
    #[error("`${{{reference}}}` has no value: {at} has {}", describe(.keys))]
    Missing {
        /// The reference as it is written.
        reference: String,
        /// The part of it that has a value.
        at: String,
        /// Keys that value has.
        keys: Vec<String>,
    },
    /// The resolved value would exceed its limit.
    #[error("the arguments grow beyond {limit} bytes once `${{{reference}}}` is put in")]
    TooLarge {
        /// The reference that exceeds it.
        reference: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// A secret is referred to where none is available.
    #[error("`${{{reference}}}` is a secret, and secrets are not available here")]
    Secret {
        /// The reference as it is written.
        reference: String,
    },
}

fn describe(keys: &[String]) -> String {
    if keys.is_empty() {
        "no keys".to_owned()
    } else {
        format!("the keys {}", keys.join(", "))
    }
}

/// A malformed reference, and the JSON pointer of the string it stands in.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) pointer: String,
    pub(crate) text: String,
    pub(crate) error: ParseReferenceError,
}

/// Parses values into templates; `root` says what the first name of each reference stands for.
pub(crate) struct TemplateParser<'a> {
    pub(crate) root: &'a mut dyn FnMut(&Written, &str) -> Root,
    pub(crate) malformed: &'a mut dyn FnMut(Malformed),
}

impl TemplateParser<'_> {
    /// The template of an object's entries, or `None` if nothing in it has to be replaced.
    pub(crate) fn object(&mut self, map: &Map<String, Value>, pointer: &str) -> Option<Template> {
        if !map.values().any(has_markers) {
            return None;
        }
        Some(self.entries(map, pointer))
    }

    fn entries(&mut self, map: &Map<String, Value>, pointer: &str) -> Template {
        let entry = |(key, value): (&String, &Value)| {
            (
                key.clone(),
                self.value(value, &format!("{pointer}/{}", pointer_token(key))),
            )
        };
        Template::Object(map.iter().map(entry).collect())
    }

    pub(crate) fn value(&mut self, value: &Value, pointer: &str) -> Template {
        if !has_markers(value) {
            return Template::Literal(value.clone());
        }
        match value {
            Value::String(text) => self.text(text, pointer),
            Value::Array(list) => {
                let element = |(i, value)| self.value(value, &format!("{pointer}/{i}"));
                Template::List(list.iter().enumerate().map(element).collect())
            }
            Value::Object(map) => self.entries(map, pointer),
            Value::Null | Value::Bool(_) | Value::Number(_) => Template::Literal(value.clone()),
        }
    }

    pub(crate) fn text(&mut self, text: &str, pointer: &str) -> Template {
        let pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(error) => {
                self.report_malformed(text, pointer, error);
                return Template::Literal(text.into());
            }
        };
        let mut segments: Vec<Segment> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match piece {
                Piece::Text(text) => push_text(&mut segments, text),
                Piece::Escaped => push_text(&mut segments, "${"),
                Piece::Reference(written) => {
                    let root = (self.root)(&written, pointer);
                    let Written {
                        head: _,
                        path,
                        source,
                    } = written;
                    segments.push(Segment::Reference(Reference { root, path, source }));
                }
            }
        }
        if let [Segment::Reference(_)] = segments[..] {
            let Some(Segment::Reference(reference)) = segments.pop() else {
                unreachable!("the pattern above says so")
            };
            return Template::Reference(reference);
        }
        match &mut segments[..] {
            [Segment::Text(only)] => Template::Literal(std::mem::take(only).into()),
            _ => Template::Text(segments),
        }
    }

    /// Reports a reference that cannot be read, and what is wrong with those behind it: all of them
    /// are mended at once.
    fn report_malformed(&mut self, text: &str, pointer: &str, error: ParseReferenceError) {
        let mut error = error;
        let mut passed = 0;
        let begin = text.get(..error.offset).and_then(|read| read.rfind("${"));
        self.visit_references(&text[..begin.unwrap_or(0)], pointer);
        loop {
            let next = passed + error.offset;
            (self.malformed)(Malformed {
                pointer: pointer.to_owned(),
                text: text.to_owned(),
                error: ParseReferenceError {
                    offset: next,
                    ..error
                },
            });
            let Some(found) = text.get(next..).and_then(|rest| rest.find("${")) else {
                return;
            };
            passed = next + found;
            match split(&text[passed..]) {
                Err(following) => error = following,
                Ok(_) => return self.visit_references(&text[passed..], pointer),
            }
        }
    }

    /// Looks up what the references of a text stand for.
    fn visit_references(&mut self, text: &str, pointer: &str) {
        for piece in split(text).unwrap_or_default() {
            if let Piece::Reference(written) = piece {
                (self.root)(&written, pointer);
            }
        }
    }
}

fn push_text(segments: &mut Vec<Segment>, text: &str) {
    if let Some(Segment::Text(before)) = segments.last_mut() {
        before.push_str(text);
    } else {
        segments.push(Segment::Text(text.to_owned()));
    }
}

/// Returns whether some string in `value` has a reference or an escaped one.
pub(crate) fn has_markers(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(list) => list.iter().any(has_markers),
        Value::Object(map) => map.values().any(has_markers),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether some string in `value` has a reference to a secret, also a malformed one.
pub(crate) fn names_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${secret"),
        Value::Array(list) => list.iter().any(names_secret),
        Value::Object(map) => map.values().any(names_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Template {
    /// The limit on one step's resolved arguments when the caller sets none.
    pub const DEFAULT_MAX_RESOLVED_BYTES: usize = 64 << 20;

    /// Returns the steps that are referred to, each once.
    pub fn referenced_steps(&self) -> Vec<StepIx> {
        let mut steps = BTreeSet::new();
        self.each_reference(&mut |reference| {
            if let Root::Step(ix) = reference.root {
                steps.insert(ix);
            }
        });
        steps.into_iter().collect()
    }

    /// The names of the secrets in it, each once.
    pub fn secrets(&self) -> Vec<SecretName> {
        let mut secrets = BTreeSet::new();
        self.each_reference(&mut |reference| {
            if let Root::Secret(name) = &reference.root {
                secrets.extend(SecretName::new(name));
            }
        });
        secrets.into_iter().collect()
    }

    pub(crate) fn each_reference(&self, visit: &mut dyn FnMut(&Reference)) {
        match self {
            Self::Literal(_) => {}
            Self::Reference(reference) => visit(reference),
            Self::Text(segments) => segments.iter().for_each(|segment| match segment {
                Segment::Text(_) => {}
                Segment::Reference(reference) => visit(reference),
            }),
            Self::List(list) => list
                .iter()
                .for_each(|element| element.each_reference(visit)),
            Self::Object(entries) => entries
                .iter()
                .for_each(|(_, element)| element.each_reference(visit)),
        }
    }

    pub(crate) fn each_root_mut(&mut self, visit: &mut dyn FnMut(&mut Root)) {
        match self {
            Self::Literal(_) => {}
            Self::Reference(reference) => visit(&mut reference.root),
            Self::Text(segments) => segments.iter_mut().for_each(|segment| match segment {
                Segment::Text(_) => {}
                Segment::Reference(reference) => visit(&mut reference.root),
            }),
            Self::List(list) => list
                .iter_mut()
                .for_each(|element| element.each_root_mut(visit)),
            Self::Object(entries) => entries
                .iter_mut()
                .for_each(|(_, element)| element.each_root_mut(visit)),
        }
    }

    /// Resolves an object under the default size limit.
    pub fn resolve_object(&self, values: &dyn Values) -> Result<Map<String, Value>, ResolveError> {
        self.resolve_object_within(values, Self::DEFAULT_MAX_RESOLVED_BYTES)
    }

    /// Resolves an object whose references may bring in at most `limit` bytes of JSON.
    pub fn resolve_object_within(
        &self,
        values: &dyn Values,
        limit: usize,
    ) -> Result<Map<String, Value>, ResolveError> {
        match self.resolve(values, limit)? {
            Value::Object(map) => Ok(map),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                unreachable!("arguments are parsed from an object")
            }
        }
    }

    /// Resolves any value whose references may bring in at most `limit` bytes of JSON.
    pub fn resolve(&self, values: &dyn Values, limit: usize) -> Result<Value, ResolveError> {
        Resolver {
            values,
            limit,
            left: limit,
            texts: JsonTexts::default(),
        }
        .template(self)
    }
}

struct Resolver<'a> {
    values: &'a dyn Values,
    limit: usize,
    left: usize,
    texts: JsonTexts,
}

impl<'a> Resolver<'a> {
    fn template(&mut self, template: &Template) -> Result<Value, ResolveError> {
        Ok(match template {
            Template::Literal(value) => value.clone(),
            Template::Reference(reference) => self.look_up(reference)?.into_owned(),
            Template::Text(segments) => Value::String(self.text(segments)?),
            Template::List(list) => Value::Array(
                list.iter()
                    .map(|element| self.template(element))
                    .collect::<Result<_, _>>()?,
            ),
            Template::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, element)| Ok((key.clone(), self.template(element)?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }

    fn text(&mut self, segments: &[Segment]) -> Result<String, ResolveError> {
        let mut text = String::new();
        for segment in segments {
            match segment {
                Segment::Text(plain) => text.push_str(plain),
                Segment::Reference(reference) => match &*self.look_up(reference)? {
                    Value::String(string) => text.push_str(string),
                    other @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => {
                        write!(text, "{other}").expect("writing to a string cannot fail");
                    }
                },
            }
        }
        Ok(text)
    }

    /// Finds the value and charges its size before it is copied into the arguments.
    fn look_up(&mut self, reference: &Reference) -> Result<Cow<'a, Value>, ResolveError> {
        let root = find_root(reference, self.values)?;
        let value = find_part(reference, 0, root, &mut self.texts)?;
        match charge(&value, self.left) {
            Some(left) => self.left = left,
            None => {
                return Err(ResolveError::TooLarge {
                    reference: reference.source.to_string(),
                    limit: self.limit,
                });
            }
        }
        Ok(value)
    }
}

fn find_root<'a>(reference: &Reference, values: &'a dyn Values) -> Result<&'a Value, ResolveError> {
    let source = || reference.source.to_string();
    let root = match &reference.root {
        Root::Variable(name) => values.variable(name),
        Root::Step(ix) => values.step(*ix),
        Root::Secret(name) => {
            let secret = values.secret(name).filter(|_| reference.path.is_empty());
            return secret.ok_or_else(|| ResolveError::Secret {
                reference: source(),
            });
        }
    };
    root.ok_or_else(|| ResolveError::Missing {
        reference: source(),
        at: "the run so far".to_owned(),
        keys: Vec::new(),
    })
}

/// Follows the path of a reference from one of its segments on. Text that is JSON has the parts of
/// that JSON.
fn find_part<'v>(
    reference: &Reference,
    from: usize,
    value: &'v Value,
    texts: &mut JsonTexts,
) -> Result<Cow<'v, Value>, ResolveError> {
    let mut value = value;
    for (depth, segment) in reference.path.iter().enumerate().skip(from) {
        if let Value::String(text) = value
            && let Some(read) = texts.read(text)
        {
            // What was read is an object or a list, so that this segment is used up there.
            let part = find_part(reference, depth, &read, texts)?;
            return Ok(Cow::Owned(part.into_owned()));
        }
        value = step_into(value, segment).ok_or_else(|| ResolveError::Missing {
            reference: reference.source.to_string(),
            at: describe_place(reference, depth, value),
            keys: keys_of(value),
        })?;
    }
    Ok(Cow::Borrowed(value))
}

fn step_into<'a>(value: &'a Value, segment: &PathSegment) -> Option<&'a Value> {
    match (value, segment) {
        (Value::Object(map), PathSegment::Field(name)) => map.get(&**name),
        (Value::Object(map), PathSegment::Index(index)) => map.get(&index.to_string()),
        (Value::Array(list), PathSegment::Index(index)) => list.get(*index),
        (Value::Array(list), PathSegment::Field(name)) => list.get(name.parse::<usize>().ok()?),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => None,
    }
}

/// The part of the reference that has a value, and what kind of value it is.
fn describe_place(reference: &Reference, depth: usize, value: &Value) -> String {
    let mut place = match &reference.root {
        Root::Variable(name) | Root::Secret(name) => name.to_string(),
        Root::Step(_) => {
            let source = &*reference.source;
            let rest = source.strip_prefix("steps.").unwrap_or(source);
            rest.split(['.', '[']).next().unwrap_or(rest).to_owned()
        }
    };
    for segment in &reference.path[..depth] {
        match segment {
            PathSegment::Field(name) => {
                place.push('.');
                place.push_str(name);
            }
            PathSegment::Index(index) => {
                place.push('.');
                place.push_str(&index.to_string());
            }
        }
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => return format!("`{place}`"),
    };
    format!("`{place}`, {kind},")
}

/// The keys a person could have meant; enough to help, not enough to flood a log.
fn keys_of(value: &Value) -> Vec<String> {
    const SHOWN: usize = 20;
    match value {
        Value::Object(map) => {
            let mut keys: Vec<String> = map.keys().take(SHOWN).map(|key| shorten(key)).collect();
            if map.len() > SHOWN {
                keys.push(format!("and {} more", map.len() - SHOWN));
            }
            keys
        }
        Value::Array(list) => match list.len() {
            0 => Vec::new(),
            1 => vec!["0".to_owned()],
            length => vec![format!("0 to {}", length - 1)],
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn shorten(key: &str) -> String {
    key.chars().take(64).collect()
}

/// Returns the rest of `budget` after the JSON of `value`, or `None` if it does not fit. Stops as
/// soon as it is clear.
fn charge(value: &Value, budget: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => budget.checked_sub(8),
        Value::String(text) => budget.checked_sub(text.len() + 2),
        Value::Array(list) => list
            .iter()
            .try_fold(budget.checked_sub(2)?, |left, element| {
                charge(element, left)?.checked_sub(1)
            }),
        Value::Object(map) => map
            .iter()
            .try_fold(budget.checked_sub(2)?, |left, (key, element)| {
                charge(element, left.checked_sub(key.len() + 4)?)
            }),
    }
}
