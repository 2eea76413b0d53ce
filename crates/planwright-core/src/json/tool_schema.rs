//! Schemas as servers write them: keywords of earlier drafts, and properties that are required
//! although they have a default.
//!
//! Such a tool can be called, and its server takes the call. So the schema is read in its meaning,
//! and only for checking: what an approval pins is the definition as the server gave it.

use serde_json::{Map, Value};

/// The way in which a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// In the draft that it names, or the newest.
    AsWritten,
    /// With the keywords of earlier drafts in place of what they became.
    OfEarlierDrafts,
}

impl Reading {
    /// The schema that arguments are checked against.
    pub(super) fn of_schema(self, schema: &Value) -> Value {
        let Value::Object(keywords) = schema else {
            return schema.clone();
        };
        Value::Object(self.of_keywords(keywords))
    }

    fn of_keywords(self, keywords: &Map<String, Value>) -> Map<String, Value> {
        let mut read = Map::new();
        for (keyword, value) in keywords {
            let value = match keyword.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" => self.of_entries(value),
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => self.of_elements(value),
                "items" if value.is_array() => self.of_elements(value),
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems" => self.of_schema(value),
                _ => value.clone(),
            };
            read.insert(keyword.clone(), value);
        }
        if self == Self::OfEarlierDrafts {
            modernise_keywords(&mut read);
        }
        leave_out_defaults(&mut read);
        read
    }

    fn of_entries(self, value: &Value) -> Value {
        let Value::Object(entries) = value else {
            return value.clone();
        };
        let entries = entries.iter();
        let entries = entries.map(|(name, schema)| (name.clone(), self.of_schema(schema)));
        Value::Object(entries.collect())
    }

    fn of_elements(self, value: &Value) -> Value {
        let Value::Array(schemas) = value else {
            return value.clone();
        };
        let schemas = schemas.iter();
        Value::Array(schemas.map(|schema| self.of_schema(schema)).collect())
    }
}

fn modernise_keywords(keywords: &mut Map<String, Value>) {
    keywords.remove("$schema");
    exclusive_bound(keywords, "exclusiveMinimum", "minimum");
    exclusive_bound(keywords, "exclusiveMaximum", "maximum");
    if let Some(divisor) = keywords.remove("divisibleBy") {
        keywords.entry("multipleOf").or_insert(divisor);
    }
    // Every value is of this type.
    if keywords.get("type").and_then(Value::as_str) == Some("any") {
        keywords.remove("type");
    }
    // Draft 3 says in the property whether it is required.
    if let Some(Value::Bool(_)) = keywords.get("required") {
        keywords.remove("required");
    }
    numbered_items(keywords);
}

/// Draft 4 says with true or false whether the bound itself is left out.
fn exclusive_bound(keywords: &mut Map<String, Value>, exclusive: &str, bound: &str) {
    let Some(Value::Bool(is_exclusive)) = keywords.get(exclusive) else {
        return;
    };
    let is_exclusive = *is_exclusive;
    keywords.remove(exclusive);
    if is_exclusive && let Some(bound) = keywords.remove(bound) {
        keywords.insert(exclusive.to_owned(), bound);
    }
}

/// Until 2019 `items` could be a list of schemas, one for each place.
fn numbered_items(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(_)) = keywords.get("items") else {
        return;
    };
    if let Some(places) = keywords.remove("items") {
        keywords.insert("prefixItems".to_owned(), places);
    }
    if let Some(others) = keywords.remove("additionalItems") {
        keywords.insert("items".to_owned(), others);
    }
}

/// What has a default need not be given.
fn leave_out_defaults(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(required)) = keywords.get("required") else {
        return;
    };
    let has_default = |name: &Value| {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let property = properties.and_then(|properties| properties.get(name.as_str()?));
        property.is_some_and(|property| property.get("default").is_some())
    };
    let needed = required.iter().filter(|name| !has_default(name));
    let needed = needed.cloned().collect();
    keywords.insert("required".to_owned(), Value::Array(needed));
}

#[cfg(test)]
mod tests {
    use super::super::compile_tool_schema;
    use serde_json::{Value, json};

    fn takes(schema: &Value, value: &Value) -> bool {
        let compiled = compile_tool_schema(schema).unwrap();
        compiled.for_value(value).unwrap().is_valid(value)
    }

    #[test]
    fn keywords_of_earlier_drafts_keep_their_meaning() {
        let above_zero = json!({ "type": "object", "properties": {
            "page": { "type": "integer", "minimum": 0, "exclusiveMinimum": true },
            "size": { "type": "number", "maximum": 5, "exclusiveMaximum": false },
            "any": { "type": "any" },
            "even": { "divisibleBy": 2, "required": true },
            "pair": { "items": [{ "type": "string" }, { "type": "integer" }], "additionalItems": false },
        } });
        for fits in [
            json!({ "page": 1, "size": 5, "any": [], "even": 4, "pair": ["a", 1] }),
            json!({}),
        ] {
            assert!(takes(&above_zero, &fits), "{fits}");
        }
        for not in [
            json!({ "page": 0 }),
            json!({ "size": 6 }),
            json!({ "even": 3 }),
            json!({ "pair": [1, 1] }),
            json!({ "pair": ["a", 1, 2] }),
        ] {
            assert!(!takes(&above_zero, &not), "{not}");
        }
    }

    #[test]
    fn what_has_a_default_need_not_be_given() {
        let schema = json!({ "type": "object", "required": ["scale", "name"], "properties": {
            "scale": { "enum": ["css", "device"], "default": "css" },
            "name": { "type": "string" },
        } });
        assert!(takes(&schema, &json!({ "name": "shot" })));
        assert!(!takes(&schema, &json!({ "scale": "css" })));
        assert!(!takes(&schema, &json!({ "name": "shot", "scale": "none" })));
    }

    /// A property may be called like a keyword.
    #[test]
    fn properties_that_are_called_like_keywords_are_left_alone() {
        let schema = json!({ "type": "object", "required": ["required", "items"], "properties": {
            "required": { "type": "boolean" }, "items": { "type": "array", "items": { "type": "string" } },
        } });
        assert!(takes(&schema, &json!({ "required": true, "items": ["a"] })));
        assert!(!takes(&schema, &json!({ "items": ["a"] })));
        assert!(!takes(&schema, &json!({ "required": true, "items": [1] })));
    }
}
