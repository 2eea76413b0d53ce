//! The value of a plan: what its outputs come to once its steps are done.

use super::{Document, Plan, ResolveError, StepIx, Template, Values};
use crate::json::length;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The outputs of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outputs {
    /// The outputs that have a value, by name. One that needs a step without a value is `null`.
    pub values: Map<String, Value>,
    /// The outputs that have none, and why.
    pub problems: Vec<OutputProblem>,
}

/// An output whose references do not lead to a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the output `{name}` has no value: {reason}")]
pub struct OutputProblem {
    /// The name of the output.
    pub name: String,
    /// Why it has none.
    pub reason: String,
}

impl Document {
    /// The keys of the value that another plan gets when it runs this one.
    pub(crate) fn value_keys(&self) -> Vec<String> {
        if !self.outputs.is_empty() {
            return self.outputs.keys().cloned().collect();
        }
        let steps = self.steps.iter().filter(|step| !step.skip);
        let keys = steps.filter_map(|step| {
            let id = || step.id.as_ref().map(ToString::to_string);
            step.result.clone().or_else(id)
        });
        keys.collect()
    }
}

impl Plan {
    /// The steps whose values the outputs need.
    pub fn output_steps(&self) -> BTreeSet<StepIx> {
        let outputs = self.outputs.iter();
        outputs.flat_map(Template::referenced_steps).collect()
    }

    /// The outputs with every reference replaced by its value, `limit` bytes of JSON together at
    /// most. A step without a value must be `null` in `values`; one that is not there at all is too
    /// large to be looked at.
    pub fn resolve_outputs(&self, values: &dyn Values, limit: usize) -> Outputs {
        let Some(Template::Object(entries)) = &self.outputs else {
            let values = self.document.outputs.clone();
            return Outputs {
                values,
                problems: Vec::new(),
            };
        };
        let mut outputs = Outputs::default();
        let mut left = limit;
        for (name, template) in entries {
            match resolve_output(template, values, left) {
                Ok(value) => {
                    left = left.saturating_sub(length(&value));
                    outputs.values.insert(name.clone(), value);
                }
                Err(reason) => outputs.problems.push(OutputProblem {
                    name: name.clone(),
                    reason,
                }),
            }
        }
        outputs
    }
}

fn resolve_output(template: &Template, values: &dyn Values, limit: usize) -> Result<Value, String> {
    let too_large = || format!("it is larger than the {limit} bytes that are left for it");
    let mut is_null = false;
    for ix in template.referenced_steps() {
        is_null |= values.step(ix).ok_or_else(too_large)?.is_null();
    }
    if is_null {
        return Ok(Value::Null);
    }
    template
        .resolve(values, limit)
        .map_err(|error| match error {
            ResolveError::TooLarge { .. } => too_large(),
            error @ (ResolveError::Missing { .. } | ResolveError::Secret { .. }) => {
                error.to_string()
            }
        })
}
