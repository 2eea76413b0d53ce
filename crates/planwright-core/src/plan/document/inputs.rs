//! Inputs given to a template: checked against its schema, all at once.

use crate::json::{compile_schema, pointer_token};
use crate::plan::validate::describe;
use crate::plan::{Code, Document, Finding, FromTemplate};
use crate::text::{did_you_mean, nearest_names};
use serde_json::{Map, Value};

/// Errors reported for one set of inputs.
const MAX_ERRORS: usize = 100;

impl Document {
    /// Returns whether the plan takes inputs.
    pub fn is_template(&self) -> bool {
        self.inputs.is_some()
    }

    /// Returns the default value of an input.
    pub fn input_default(&self, name: &str) -> Option<&Value> {
        self.input_property(name)?.get("default")
    }

    fn input_property(&self, name: &str) -> Option<&Value> {
        self.inputs.as_ref()?.get("properties")?.get(name)
    }

    /// The names of the inputs that the schema describes.
    pub fn input_names(&self) -> impl Iterator<Item = &String> {
        let properties = self
            .inputs
            .as_ref()
            .and_then(|schema| schema.get("properties")?.as_object());
        properties.into_iter().flat_map(Map::keys)
    }

    /// The plan that a template becomes with these inputs, without an id. Everything that does not
    /// fit is reported.
    pub fn fill(
        &self,
        origin: FromTemplate,
        given: &Map<String, Value>,
    ) -> Result<Self, Vec<Finding>> {
        let variables = self.variables_for(given)?;
        let mut document = self.with_variables(&variables);
        document.id = None;
        document.inputs = None;
        document.context.template = Some(origin);
        Ok(document)
    }

    /// The variables with which the plan runs on these inputs: what is given, and defaults for the
    /// rest. Everything that does not fit is reported.
    pub fn variables_for(
        &self,
        given: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Vec<Finding>> {
        let mut findings: Vec<Finding> = given
            .keys()
            .filter_map(|name| self.unknown_input(name))
            .collect();
        let mut variables = Map::new();
        for name in self
            .input_names()
            .filter(|name| !self.variables.contains_key(*name))
        {
            if let Some(default) = self.input_default(name) {
                variables.insert(name.clone(), default.clone());
            }
        }
        variables.extend(
            given
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        if let Some(schema) = &self.inputs {
            findings.extend(self.misfits(schema, &variables));
        }
        if findings.is_empty() {
            Ok(variables)
        } else {
            Err(findings)
        }
    }

    /// A name that is neither an input nor a variable is a mistake, unless the schema takes any
    /// name.
    pub(crate) fn unknown_input(&self, name: &str) -> Option<Finding> {
        let open = [
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
        ];
        let takes_any = self.inputs.as_ref().is_some_and(|schema| {
            open.iter().any(|key| {
                schema
                    .get(key)
                    .is_some_and(|value| *value != Value::Bool(false))
            })
        });
        if takes_any || self.input_property(name).is_some() || self.variables.contains_key(name) {
            return None;
        }
        let plan = self.id.as_ref().map_or("the plan", |id| id.as_str());
        let known = self.input_names().chain(self.variables.keys()).cloned();
        let message = format!("`{plan}` has no input `{name}`");
        let finding = Finding::new(
            Code::InvalidInputs,
            format!("/{}", pointer_token(name)),
            message,
        );
        Some(finding.suggest(did_you_mean(&nearest_names(name, known))))
    }

    fn misfits(&self, schema: &Value, variables: &Map<String, Value>) -> Vec<Finding> {
        let validator = match compile_schema(schema) {
            Ok(validator) => validator,
            Err(problem) => {
                let message = format!("the schema of the inputs cannot be used: {problem}");
                return vec![Finding::new(Code::BadSchema, "/inputs", message)];
            }
        };
        // A plan may have variables that are no inputs; the schema says nothing about them.
        let own = self
            .variables
            .iter()
            .filter(|(name, _)| self.input_property(name).is_some());
        let values = own
            .chain(variables)
            .map(|(name, value)| (name.clone(), value.clone()));
        let values = Value::Object(values.collect());
        let finding = |error: jsonschema::ValidationError<'_>| {
            Finding::new(
                Code::InvalidInputs,
                error.instance_path().to_string(),
                describe(&error),
            )
        };
        match validator.for_value(&values) {
            Ok(validator) => {
                let errors = validator.iter_errors(&values);
                errors.take(MAX_ERRORS).map(finding).collect()
            }
            Err(problem) => vec![Finding::new(Code::InvalidInputs, "", problem.to_string())],
        }
    }
}
