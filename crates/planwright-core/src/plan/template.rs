//! Arguments with references in them, and how they become the bytes that are sent.

use super::{Reference, StepIx};
use serde_json::{Map, Value};

/// A JSON value with parsed references. What a reference resolves to is never scanned again.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    Literal(Value),
    /// The whole string is a reference: the value keeps its type.
    Reference(Reference),
    /// References with text around them: the result is a string.
    Text(Vec<Segment>),
    List(Vec<Template>),
    Object(Vec<(String, Template)>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Segment {
    Text(String),
    Reference(Reference),
}

/// The values a run has so far.
pub trait Values {
    fn variable(&self, name: &str) -> Option<&Value>;
    fn step(&self, ix: StepIx) -> Option<&Value>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("`${{{reference}}}` has no value: {at} has {}", describe(.keys))]
    Missing { reference: String, at: String, keys: Vec<String> },
    #[error("the arguments grow beyond {limit} bytes once `${{{reference}}}` is put in")]
    TooLarge { reference: String, limit: usize },
    #[error("`${{{reference}}}` is a secret, and secrets are not available here")]
    Secret { reference: String },
}

fn describe(keys: &[String]) -> String {
    if keys.is_empty() { "no keys".to_owned() } else { format!("the keys {}", keys.join(", ")) }
}

impl Template {
    pub fn referenced_steps(&self) -> Vec<StepIx> {
        Vec::new()
    }

    pub fn resolve_object(&self, _values: &dyn Values) -> Result<Map<String, Value>, ResolveError> {
        Ok(Map::new())
    }
}
