//! The schemas an author brings: the plan's parameters, questions to people, answers of models.

use super::arguments::describe;
use crate::json::compile_schema;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::{Code, Finding};
use serde_json::Value;

pub(super) fn check(compiled: &Compiled, findings: &mut Findings) {
    if let Some(schema) = &compiled.document.inputs {
        check_inputs(compiled, schema, findings);
    }
    for (index, step) in compiled.document.steps.iter().enumerate() {
        let schemas = [
            step.input.as_deref().map(|input| ("input", &input.schema)),
            step.think
                .as_deref()
                .and_then(|think| Some(("think", think.schema.as_ref()?))),
        ];
        for (action, schema) in schemas.into_iter().flatten() {
            if let Err(problem) = compile_schema(schema) {
                let message = format!("the schema cannot be used: {problem}");
                let finding = Finding::new(
                    Code::BadSchema,
                    format!("/steps/{index}/{action}/schema"),
                    message,
                );
                findings.add(finding.of_step(step.id.as_ref()));
            }
        }
    }
}

fn check_inputs(compiled: &Compiled, schema: &Value, findings: &mut Findings) {
    // A template is checked before all of its inputs are there, and may have variables that are no
    // inputs.
    let mut lenient = schema.clone();
    if let Some(object) = lenient.as_object_mut() {
        for key in [
            "required",
            "minProperties",
            "additionalProperties",
            "unevaluatedProperties",
        ] {
            object.remove(key);
        }
    }
    let validator = match compile_schema(&lenient) {
        Ok(validator) => validator,
        Err(problem) => {
            let message = format!("the schema cannot be used: {problem}");
            findings.add(Finding::new(Code::BadSchema, "/inputs", message));
            return;
        }
    };
    let variables = &compiled.document.variables;
    let values = Value::Object(variables.clone());
    let validator = match validator.for_value(&values) {
        Ok(validator) => validator,
        Err(problem) => {
            let message = format!("the variables do not fit `inputs`: {problem}");
            findings.add(Finding::new(Code::VariableMismatch, "/variables", message));
            return;
        }
    };
    for error in validator.iter_errors(&values) {
        let message = format!("a variable does not fit `inputs`: {}", describe(&error));
        findings.add(Finding::new(
            Code::VariableMismatch,
            format!("/variables{}", error.instance_path()),
            message,
        ));
    }
    for name in missing(schema, variables) {
        let message = format!("the input `{name}` has no value yet");
        let hint = format!("give it when the plan is run, or in `variables`: \"{name}\": …");
        findings.add(Finding::new(Code::InputMissing, "/inputs", message).suggest(Some(hint)));
    }
}

/// The required inputs that have neither a value nor a default.
pub(crate) fn missing(schema: &Value, variables: &serde_json::Map<String, Value>) -> Vec<String> {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let default = |name: &str| schema.get("properties")?.get(name)?.get("default");
    required
        .filter_map(Value::as_str)
        .filter(|name| !variables.contains_key(*name) && default(name).is_none())
        .map(str::to_owned)
        .collect()
}
