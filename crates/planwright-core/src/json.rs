//! Strict JSON: what a digest is taken over must mean one thing only.

use jsonschema::Validator;
use serde_json::Value;

/// Compiles a JSON Schema. No reference is fetched from anywhere.
pub(crate) fn compile_schema(schema: &Value) -> Result<Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}
