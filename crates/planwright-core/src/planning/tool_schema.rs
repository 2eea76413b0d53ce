//! The schema of a tool's arguments as a model is shown it.
//!
//! Servers write every kind of JSON Schema; what turns a schema into a grammar takes few of them.
//! So a model is shown a smaller one: local references put in place, keywords that some providers
//! do not know dropped. It admits no less than the true schema, and the plan is validated against
//! the true one.

use super::quote::quote_text;
use serde_json::{Map, Value, json};

/// Levels of a schema that are shown. Below, an object is any object.
const MAX_DEPTH: usize = 6;
/// Schemas within one that are shown.
const MAX_SCHEMAS: usize = 200;
const MAX_DESCRIPTION: usize = 160;
/// Longer lists of values say too much.
const MAX_ENUM: usize = 40;

/// The audience of a simplified schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimplifyOptions {
    /// Descriptions are for prompts; a grammar has no use for them.
    pub(super) descriptions: bool,
    /// Limits on values where the tool sets no tighter one.
    pub(super) limits: Option<ValueLimits>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ValueLimits {
    /// Characters of a text.
    pub(super) text: u64,
    /// Elements of a list.
    pub(super) items: u64,
}

/// The schema of a tool's arguments, for a prompt.
pub fn simplify_schema(schema: &Value) -> Value {
    simplify_arguments(
        schema,
        SimplifyOptions {
            descriptions: true,
            limits: None,
        },
    )
}

/// The schema of a tool's arguments: always one of an object.
pub(super) fn simplify_arguments(schema: &Value, options: SimplifyOptions) -> Value {
    let mut shown = Simplifier {
        root: schema,
        options,
        left: MAX_SCHEMAS,
    };
    let arguments = shown.simplify_object(schema, MAX_DEPTH);
    if shown.left == 0 {
        json!({ "type": "object" })
    } else {
        arguments
    }
}

struct Simplifier<'a> {
    root: &'a Value,
    options: SimplifyOptions,
    /// Schemas that may still be shown.
    left: usize,
}

impl Simplifier<'_> {
    /// A value that stands somewhere in the arguments.
    fn simplify_value(&mut self, schema: &Value, depth: usize) -> Value {
        match (self.simplify(schema, depth), self.options.limits) {
            // What may be anything has no end for a model that is held to limits: a text will do.
            (Value::Object(any), Some(limits)) if any.is_empty() => {
                json!({ "type": "string", "maxLength": limits.text })
            }
            (plain, _) => plain,
        }
    }

    fn simplify(&mut self, schema: &Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        let Some(object) = schema.as_object() else {
            return json!({});
        };
        if self.left == 0 || depth == 0 {
            return type_only(object);
        }
        if let Some(pointer) = object.get("$ref").and_then(Value::as_str) {
            return match pointer
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer))
            {
                // A schema that refers to itself ends with the depth.
                Some(target) => self.simplify(&target.clone(), depth - 1),
                None => json!({}),
            };
        }
        if let Some(choices) = object
            .get("anyOf")
            .or_else(|| object.get("oneOf"))
            .and_then(Value::as_array)
        {
            let choices: Vec<Value> = choices
                .iter()
                .map(|choice| self.simplify(choice, depth - 1))
                .collect();
            return self.with_description(
                object,
                Map::from_iter([("anyOf".to_owned(), Value::Array(choices))]),
            );
        }
        if let Some(values) = listed_values(object) {
            return self.with_description(
                object,
                Map::from_iter([("enum".to_owned(), Value::Array(values))]),
            );
        }
        match object.get("type").and_then(Value::as_str) {
            Some("object") => self.simplify_object(schema, depth),
            Some("array") => self.simplify_array(object, depth),
            Some("string") => self.simplify_text(object),
            Some(kind @ ("integer" | "number")) => {
                let mut shown = Map::from_iter([("type".to_owned(), json!(kind))]);
                for bound in ["minimum", "maximum"] {
                    if let Some(number) = object.get(bound).filter(|number| number.is_i64()) {
                        shown.insert(bound.to_owned(), number.clone());
                    }
                }
                self.with_description(object, shown)
            }
            Some(kind @ ("boolean" | "null")) => {
                self.with_description(object, Map::from_iter([("type".to_owned(), json!(kind))]))
            }
            Some(_) => json!({}),
            None if object.contains_key("properties") => self.simplify_object(schema, depth),
            None => self.simplify_type_list(object, depth),
        }
    }

    /// `"type": ["string", "null"]` is a choice.
    fn simplify_type_list(&mut self, object: &Map<String, Value>, depth: usize) -> Value {
        let Some(types) = object.get("type").and_then(Value::as_array) else {
            return json!({});
        };
        let choices = types.iter().take(8).map(|kind| {
            let mut one = object.clone();
            one.insert("type".to_owned(), kind.clone());
            self.simplify(&Value::Object(one), depth - 1)
        });
        let choices: Vec<Value> = choices.collect();
        json!({ "anyOf": choices })
    }

    fn simplify_object(&mut self, schema: &Value, depth: usize) -> Value {
        let empty = Map::new();
        let schema = match schema.get("$ref").and_then(Value::as_str) {
            Some(pointer) => pointer
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer)),
            None => Some(schema),
        };
        let schema = schema.cloned().unwrap_or_default();
        let object = schema.as_object().unwrap_or(&empty);
        let mut shown = Map::from_iter([("type".to_owned(), json!("object"))]);
        let Some(properties) = object.get("properties").and_then(Value::as_object) else {
            return self.with_description(object, shown);
        };
        let depth = depth.saturating_sub(1);
        let mut named = Map::new();
        for (name, property) in properties {
            let value = self.simplify_value(property, depth);
            named.insert(name.clone(), value);
        }
        shown.insert("properties".to_owned(), Value::Object(named));
        let required = object
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required: Vec<Value> = required
            .filter(|name| {
                name.as_str()
                    .is_some_and(|name| properties.contains_key(name))
            })
            .cloned()
            .collect();
        if !required.is_empty() {
            shown.insert("required".to_owned(), Value::Array(required));
        }
        // Models make arguments up; what a tool takes beside the described ones is for people to
        // use.
        shown.insert("additionalProperties".to_owned(), Value::Bool(false));
        self.with_description(object, shown)
    }

    fn simplify_array(&mut self, object: &Map<String, Value>, depth: usize) -> Value {
        let mut shown = Map::from_iter([("type".to_owned(), json!("array"))]);
        let items = match object.get("items") {
            Some(items @ Value::Object(_)) => self.simplify_value(items, depth - 1),
            Some(_) | None => json!({ "type": "string" }),
        };
        shown.insert("items".to_owned(), items);
        let count = |bound: &str| {
            object
                .get(bound)
                .and_then(Value::as_u64)
                .filter(|&count| count <= 100)
        };
        let least = count("minItems");
        let most = smaller_of(
            count("maxItems"),
            self.options.limits.map(|limits| limits.items),
        );
        if let Some(least) = least {
            shown.insert("minItems".to_owned(), json!(least));
        }
        if let Some(most) = most {
            shown.insert(
                "maxItems".to_owned(),
                json!(most.max(least.unwrap_or_default())),
            );
        }
        self.with_description(object, shown)
    }

    fn simplify_text(&mut self, object: &Map<String, Value>) -> Value {
        let mut shown = Map::from_iter([("type".to_owned(), json!("string"))]);
        let own = object
            .get("maxLength")
            .and_then(Value::as_u64)
            .filter(|&length| length <= 1_000);
        let most = smaller_of(own, self.options.limits.map(|limits| limits.text));
        if let Some(least) = object
            .get("minLength")
            .and_then(Value::as_u64)
            .filter(|&least| least <= 100)
        {
            shown.insert("minLength".to_owned(), json!(least));
        }
        if let Some(most) = most {
            shown.insert("maxLength".to_owned(), json!(most));
        }
        self.with_description(object, shown)
    }

    fn with_description(
        &self,
        object: &Map<String, Value>,
        mut shown: Map<String, Value>,
    ) -> Value {
        let description = object
            .get("description")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        if let Some(text) = description.filter(|_| self.options.descriptions) {
            let quoted = quote_text(text, MAX_DESCRIPTION);
            let plain = serde_json::from_str(&quoted).expect("what was quoted reads again");
            shown.insert("description".to_owned(), plain);
        }
        Value::Object(shown)
    }
}

fn smaller_of(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The values that are listed, if they are few and plain.
fn listed_values(object: &Map<String, Value>) -> Option<Vec<Value>> {
    let values = match (object.get("enum"), object.get("const")) {
        (Some(Value::Array(values)), _) => values.clone(),
        (None, Some(value)) => vec![value.clone()],
        _ => return None,
    };
    let plain = values
        .iter()
        .all(|value| !value.is_array() && !value.is_object());
    (plain && !values.is_empty() && values.len() <= MAX_ENUM).then_some(values)
}

/// The type alone, where no more can be said.
fn type_only(object: &Map<String, Value>) -> Value {
    match object.get("type").and_then(Value::as_str) {
        Some(kind @ ("object" | "string" | "integer" | "number" | "boolean" | "null")) => {
            json!({ "type": kind })
        }
        Some("array") => json!({ "type": "array", "items": { "type": "string" } }),
        Some(_) | None => json!({}),
    }
}
