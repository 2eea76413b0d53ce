//! Arguments against the input schema of their tool.
//!
//! Arguments with references are only known when the plan runs. What is written literally is
//! checked all the same: the schema is applied to the arguments as they stand, and what it says
//! about a part that depends on a reference is left out. Where the tool that produces the value
//! declares what it returns, a value of that type stands in.

use super::value_shape::ValueShapes;
use crate::json::pointer_token;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::{Code, Finding, Reference, Step, StepIx, Template};
use crate::tool::KnownTool;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Errors reported for one call.
const MAX_ERRORS: usize = 100;

/// The arguments of one call.
pub(super) struct Arguments<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) shapes: &'a ValueShapes<'a>,
    pub(super) step: &'a Step,
    pub(super) ix: StepIx,
    pub(super) tool: &'a KnownTool,
    pub(super) args: &'a Map<String, Value>,
    /// JSON pointer of the arguments in the document.
    pub(super) at: &'a str,
}

/// Knowledge about a part of the arguments that has references in it.
#[derive(Debug, PartialEq)]
enum Part {
    /// Nothing: the value could be anything.
    Unknown,
    /// A text, but not which.
    Text,
    /// A value of this type, by the word of the tool that produces it.
    Typed {
        reference: String,
        type_name: &'static str,
    },
    /// An object or a list with such parts somewhere inside.
    Contains,
}

impl Arguments<'_> {
    pub(super) fn check(&self, findings: &mut Findings) {
        let validator = match self.tool.input_validator() {
            Ok(validator) => validator,
            Err(problem) => {
                let message = format!(
                    "the arguments of `{}` cannot be checked, its input schema cannot be used: {problem}",
                    self.tool.name
                );
                let finding = Finding::new(Code::UncheckedArgs, self.at, message);
                findings.add(finding.of_step(self.step.id.as_ref()));
                return;
            }
        };
        let mut parts = BTreeMap::new();
        let instance = match self.template() {
            None => Value::Object(self.args.clone()),
            Some(template) => self.stand_in(template, String::new(), &mut parts),
        };
        let validator = match validator.for_value(&instance) {
            Ok(validator) => validator,
            Err(problem) => {
                let message = format!("the arguments do not fit: {problem}");
                findings.add(
                    Finding::new(Code::InvalidArgs, self.at, message)
                        .of_step(self.step.id.as_ref()),
                );
                return;
            }
        };
        // Each value is blamed once for the same thing: schemas within schemas would repeat it.
        let mut blamed = BTreeSet::new();
        for error in validator.iter_errors(&instance).take(MAX_ERRORS) {
            let path = error.instance_path().to_string();
            let Some(message) = self.message(&error, &path, &parts) else {
                continue;
            };
            if blamed.insert((path.clone(), message.clone())) {
                let finding =
                    Finding::new(Code::InvalidArgs, format!("{}{path}", self.at), message);
                findings.add(
                    finding
                        .of_step(self.step.id.as_ref())
                        .suggest(self.suggestion(error.kind())),
                );
            }
        }
    }

    /// Returns the message for an error, or `None` if it may come from a value that only stands in.
    fn message(
        &self,
        error: &jsonschema::ValidationError<'_>,
        path: &str,
        parts: &BTreeMap<String, Part>,
    ) -> Option<String> {
        if !parts.is_empty() && is_conditional(&error.schema_path().to_string()) {
            return None;
        }
        let is_type = matches!(error.kind(), Kind::Type { .. });
        match parts.get(path) {
            None => Some(describe(error)),
            Some(Part::Contains) if concerns_the_container(error.kind()) => {
                Some(error.masked_with("the value").to_string())
            }
            Some(Part::Text) if is_type => Some(format!(
                "text with references in it is a string, but {}",
                expected(error.kind())
            )),
            Some(Part::Typed {
                reference,
                type_name,
            }) if is_type => Some(format!(
                "`${{{reference}}}` is of type {type_name}, but {}",
                expected(error.kind())
            )),
            Some(Part::Unknown | Part::Text | Part::Typed { .. } | Part::Contains) => None,
        }
    }

    fn template(&self) -> Option<&Template> {
        let templates = self.compiled.templates.get(&self.ix)?;
        if self.at.ends_with("/undo/args") {
            templates.undo.as_ref()
        } else {
            templates.args.as_ref()
        }
    }

    /// A value of the arguments' shape; `parts` notes what in it is not literal.
    fn stand_in(
        &self,
        template: &Template,
        path: String,
        parts: &mut BTreeMap<String, Part>,
    ) -> Value {
        match template {
            Template::Literal(value) => value.clone(),
            Template::Text(_) => {
                parts.insert(path, Part::Text);
                json!("text")
            }
            Template::Reference(reference) => match self.declared_type(reference) {
                Some((type_name, sample)) => {
                    let reference = reference.source.to_string();
                    parts.insert(
                        path,
                        Part::Typed {
                            reference,
                            type_name,
                        },
                    );
                    sample
                }
                None => {
                    parts.insert(path, Part::Unknown);
                    Value::Null
                }
            },
            Template::List(list) => {
                let inside = |(i, element)| self.stand_in(element, format!("{path}/{i}"), parts);
                let list = list.iter().enumerate().map(inside).collect();
                parts.insert(path, Part::Contains);
                Value::Array(list)
            }
            Template::Object(entries) => {
                let mut map = Map::new();
                for (key, element) in entries {
                    let inside = format!("{path}/{}", pointer_token(key));
                    map.insert(key.clone(), self.stand_in(element, inside, parts));
                }
                parts.insert(path, Part::Contains);
                Value::Object(map)
            }
        }
    }

    /// The type of what a reference stands for, where that is known.
    fn declared_type(&self, reference: &Reference) -> Option<(&'static str, Value)> {
        let type_name = self.shapes.find(self.ix, reference).ok()?.type_name()?;
        let sample = match type_name {
            "string" => json!("text"),
            "integer" | "number" => json!(0),
            "boolean" => json!(false),
            "null" => Value::Null,
            "array" => json!([]),
            "object" => json!({}),
            _ => return None,
        };
        Some((type_name, sample))
    }

    fn suggestion(&self, kind: &Kind) -> Option<String> {
        let properties = self
            .tool
            .definition
            .input_schema
            .get("properties")
            .and_then(Value::as_object)?;
        if let Kind::AdditionalProperties { unexpected } = kind {
            let near = unexpected.iter().flat_map(|name| {
                crate::text::nearest_names(name, properties.keys().cloned().collect::<Vec<_>>())
            });
            return crate::text::did_you_mean(&near.take(3).collect::<Vec<_>>());
        }
        None
    }
}

/// Returns whether a part of a schema applies only to some values, so that a stand-in may have
/// chosen the wrong one.
fn is_conditional(schema_path: &str) -> bool {
    let conditional = [
        "if",
        "then",
        "else",
        "anyOf",
        "oneOf",
        "not",
        "dependentSchemas",
        "dependencies",
    ];
    schema_path
        .split('/')
        .any(|part| conditional.contains(&part))
}

/// Returns whether an error is about an object or a list as such, independent of the values inside.
fn concerns_the_container(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Type { .. }
            | Kind::Required { .. }
            | Kind::AdditionalProperties { .. }
            | Kind::FalseSchema
            | Kind::MinItems { .. }
            | Kind::MaxItems { .. }
            | Kind::MinProperties { .. }
            | Kind::MaxProperties { .. }
            | Kind::PropertyNames { .. }
    )
}

pub(crate) fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    const SHOWN: usize = 300;
    let message = error.to_string();
    if message.chars().count() <= SHOWN {
        return message;
    }
    // The message quotes the value, which may be a whole file.
    error
        .masked_with("the value")
        .to_string()
        .chars()
        .take(SHOWN)
        .collect()
}

fn expected(kind: &Kind) -> String {
    if let Kind::Type { kind } = kind {
        let types = match kind {
            jsonschema::error::TypeKind::Single(one) => one.to_string(),
            jsonschema::error::TypeKind::Multiple(several) => several
                .iter()
                .map(|one| one.to_string())
                .collect::<Vec<_>>()
                .join(" or "),
        };
        return format!("the tool takes {types} here");
    }
    "the tool takes something else here".to_owned()
}
