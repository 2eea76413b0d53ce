//! Schemas that mean the same in draft 7 and in 2020-12.
//!
//! A schema is checked against the schemas of its own draft, which have to be compiled first. Those
//! of 2020-12 take three times as long as the one of draft 7, and longer than all the rest of a
//! short command. Nearly all tools describe their arguments with a few keywords that both drafts
//! share.

use serde_json::{Map, Value};

const LATEST: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns whether a schema of 2020-12 consists of keywords that draft 7 reads alike. References
/// and formats are none of them: draft 7 ignores what stands beside a reference, and asserts
/// formats.
///
/// The depth of the schema must have been checked.
pub(super) fn is_plain(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    keywords.get("$schema").is_none_or(|draft| draft == LATEST)
        && without_draft(keywords).all(|(keyword, value)| is_shared(keyword, value))
}

fn without_draft(keywords: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    keywords.iter().filter(|(keyword, _)| *keyword != "$schema")
}

fn is_shared(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" | "enum" | "const" | "required" | "default" | "examples" | "title"
        | "description" | "$comment" | "minLength" | "maxLength" | "minItems" | "maxItems"
        | "uniqueItems" | "minProperties" | "maxProperties" | "minimum" | "maximum"
        | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "readOnly" | "writeOnly" => true,
        "properties" => {
            let named = value.as_object();
            named.is_some_and(|named| named.values().all(is_plain_part))
        }
        "items" | "additionalProperties" | "not" => is_plain_part(value),
        "anyOf" | "allOf" | "oneOf" => {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(is_plain_part))
        }
        _ => false,
    }
}

fn is_plain_part(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(keywords) => keywords
            .iter()
            .all(|(keyword, value)| is_shared(keyword, value)),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonschema::Draft;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn schemas_of_ordinary_tools_are_plain() {
        assert!(is_plain(&json!({
            "$schema": LATEST,
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "where", "minLength": 1 },
                "mode": { "enum": ["a", "b"], "default": "a" },
                "lines": { "type": ["array", "null"], "items": { "type": "string" } },
                "other": { "anyOf": [{ "type": "integer", "minimum": 0.5 }, true] },
            },
            "required": ["path"],
            "additionalProperties": false,
        })));
    }

    #[test]
    fn what_the_drafts_read_differently_is_not_plain() {
        for schema in [
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": "date" }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            json!({ "format": "date" }),
            json!({ "$ref": "#/$defs/a", "minLength": 1 }),
            json!({ "items": [{ "type": "string" }] }),
            json!({ "prefixItems": [] }),
            json!({ "dependencies": {} }),
            json!({ "unevaluatedProperties": false }),
            json!({ "contains": true, "minContains": 2 }),
            json!({ "properties": { "a": { "$id": "https://example.org/a" } } }),
            json!({ "not": { "$schema": LATEST } }),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
    }

    /// Values as keywords have them, right and wrong.
    fn value() -> impl Strategy<Value = Value> {
        let words = ["string", "object", "array", "integer", "number", "a", ""];
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (-2..5_i64).prop_map(Value::from),
            Just(json!(0.5)),
            Just(json!(2.0)),
            prop::sample::select(words.to_vec()).prop_map(Value::from),
        ];
        let keywords = [
            "type",
            "required",
            "properties",
            "items",
            "enum",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "minLength",
            "maxItems",
            "minimum",
            "maximum",
            "exclusiveMaximum",
            "multipleOf",
            "uniqueItems",
            "title",
            "additionalProperties",
            "examples",
            "const",
            "readOnly",
            "a",
        ];
        leaf.prop_recursive(4, 40, 4, move |inner| {
            let named = (prop::sample::select(keywords.to_vec()), inner.clone());
            let object = |pairs: Vec<(&str, Value)>| {
                let pairs = pairs.into_iter();
                Value::Object(
                    pairs
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            };
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(Value::from),
                prop::collection::vec(named, 0..4).prop_map(object),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn both_drafts_read_a_plain_schema_alike(
            schema in value(),
            values in prop::collection::vec(value(), 4),
        ) {
            if is_plain(&schema) {
                let build = |draft| jsonschema::options().with_draft(draft).build(&schema);
                match (build(Draft::Draft7), build(Draft::Draft202012)) {
                    (Ok(seven), Ok(latest)) => for value in values {
                        prop_assert_eq!(seven.is_valid(&value), latest.is_valid(&value));
                    },
                    (Err(_), Err(_)) => {}
                    (seven, latest) => prop_assert!(false, "{:?}, {:?}", seven.is_ok(), latest.is_ok()),
                }
            }
        }
    }
}
