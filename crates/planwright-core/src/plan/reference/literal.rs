//! Values as a plan has to write them to mean exactly these values: nothing in them is read as a
//! reference.

use serde_json::Value;

/// The text as a plan has to write it to mean exactly this text.
pub(crate) fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// The value as a plan has to write it to mean exactly this value. What a tool returned or a model
/// wrote goes through here before it becomes part of a document.
pub fn literal(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains("${") => Value::String(escape(&text)),
        Value::Array(list) => Value::Array(list.into_iter().map(literal).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, field)| (key, literal(field)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
