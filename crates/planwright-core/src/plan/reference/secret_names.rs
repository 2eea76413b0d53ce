//! Names of secrets in a document, whether or not it is valid.

use super::parse::{Head, Piece, split};
use crate::plan::Document;
use crate::secret::SecretName;
use serde_json::Value;
use std::collections::BTreeSet;

impl Document {
    /// Names of the secrets that the arguments of its steps and of their undos refer to. A
    /// reference that stands where it is not allowed, or that is malformed, names none: nothing of
    /// such a plan is ever called.
    pub fn secret_names(&self) -> BTreeSet<SecretName> {
        let mut names = BTreeSet::new();
        for step in &self.steps {
            let undo = step.undo.iter().flat_map(|undo| undo.args.values());
            for value in step.args.values().chain(undo) {
                add_names(value, &mut names);
            }
        }
        names
    }
}

fn add_names(value: &Value, names: &mut BTreeSet<SecretName>) {
    match value {
        // Most texts have no reference, and parsing them all would cost more than the search.
        Value::String(text) if text.contains("${secret") => {
            for piece in split(text).unwrap_or_default() {
                if let Piece::Reference(written) = piece
                    && let Head::Secret(name) = &written.head
                {
                    names.extend(SecretName::new(name));
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|element| add_names(element, names)),
        Value::Object(map) => map.values().for_each(|element| add_names(element, names)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_in_arguments_and_undos_and_escaped_ones_are_not() {
        let document: Document = serde_json::from_value(json!({"steps": [
            {"tool": "a.b", "args": {"x": ["Bearer ${secret.ONE}"], "y": "$${secret.NOT}"},
                "undo": {"tool": "a.c", "args": {"z": {"w": "${secret.TWO}"}}}},
            {"tool": "a.b", "args": {"x": "${secret.ONE} ${secret.THREE}"}},
        ]}))
        .unwrap();
        let names: Vec<String> = document
            .secret_names()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["ONE", "THREE", "TWO"]);
    }
}
