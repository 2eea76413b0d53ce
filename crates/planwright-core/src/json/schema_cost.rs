//! How often a schema has one and the same value checked.
//!
//! `allOf` of references to a schema that is itself an `allOf` of references multiplies: thirty
//! short lines of a server could keep a processor busy for years. The count follows from the schema
//! alone.

use serde_json::Value;
use std::collections::BTreeMap;

/// The most checks of one value. Real schemas need some dozens.
const MAX_CHECKS: u64 = 10_000;
/// Schemas that look at the same value and lead from one to the next.
const MAX_CHAIN: usize = 200;
/// Schemas with an id of their own.
const MAX_IDS: usize = 100;

/// Returns whether checking a value can take more than is reasonable. A schema that refers to
/// itself for the same value never comes to an end.
pub(super) fn is_too_costly(schema: &Value) -> bool {
    let schemas = Schemas::of(schema);
    if schemas.resources.len() > MAX_IDS {
        return true;
    }
    let mut costs = Costs {
        schemas: &schemas,
        known: BTreeMap::new(),
    };
    let mut all = schemas.all.iter();
    all.any(|schema| costs.checks(schema, MAX_CHAIN) > MAX_CHECKS)
}

/// Every schema within a schema, and what references can mean.
pub(super) struct Schemas<'a> {
    all: Vec<&'a Value>,
    /// The whole schema, and every schema in it with an id of its own: a reference may be meant from
    /// any of them.
    resources: Vec<&'a Value>,
    anchors: BTreeMap<&'a str, Vec<&'a Value>>,
}

impl<'a> Schemas<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        let mut schemas = Self {
            all: Vec::new(),
            resources: Vec::new(),
            anchors: BTreeMap::new(),
        };
        schemas.collect(schema);
        schemas
            .resources
            .retain(|other| !std::ptr::eq(*other, schema));
        schemas.resources.push(schema);
        schemas
    }

    /// Every object: any of them can be a schema.
    pub(super) fn all(&self) -> &[&'a Value] {
        &self.all
    }

    fn collect(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                self.all.push(value);
                for name in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                    if let Some(Value::String(text)) = fields.get(name) {
                        if name.ends_with("id") {
                            self.resources.push(value);
                        }
                        let anchor = text.rsplit('#').next().unwrap_or_default();
                        self.anchors.entry(anchor).or_default().push(value);
                    }
                }
                fields.values().for_each(|field| self.collect(field));
            }
            Value::Array(list) => list.iter().for_each(|element| self.collect(element)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Every schema that a reference can mean. Which of several ids it starts from is not worked
    /// out: a schema that is counted too often is the smaller mistake.
    pub(super) fn resolve(&self, reference: &str) -> Vec<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let is_base = |schema: &Value| {
            let id = schema.get("$id").or_else(|| schema.get("id"));
            id.and_then(Value::as_str)
                .is_some_and(|id| id.ends_with(base))
        };
        let resources = self.resources.iter().copied();
        let resources = resources.filter(|schema| base.is_empty() || is_base(schema));
        let fragment = decode_percent(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            return resources
                .filter_map(|schema| schema.pointer(&fragment))
                .collect();
        }
        let anchors = self.anchors.get(fragment.as_str());
        anchors.cloned().unwrap_or_default()
    }
}

struct Costs<'a, 'b> {
    schemas: &'b Schemas<'a>,
    /// By address; absent while it is being counted.
    known: BTreeMap<*const Value, Option<u64>>,
}

impl<'a> Costs<'a, '_> {
    fn checks(&mut self, schema: &'a Value, chain: usize) -> u64 {
        let Value::Object(fields) = schema else {
            return 1;
        };
        let Some(chain) = chain.checked_sub(1) else {
            return u64::MAX;
        };
        match self.known.get(&std::ptr::from_ref(schema)) {
            Some(known) => return known.unwrap_or(u64::MAX),
            None => self.known.insert(schema, None),
        };
        let mut parts: Vec<&Value> = Vec::new();
        for (name, part) in fields {
            match (name.as_str(), part) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => parts.extend(list),
                ("not" | "if" | "then" | "else", _) => parts.push(part),
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    parts.extend(named.values());
                }
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    parts.extend(self.schemas.resolve(reference));
                }
                _ => {}
            }
        }
        let checks = parts.into_iter().fold(1_u64, |sum, part| {
            sum.saturating_add(self.checks(part, chain))
        });
        self.known.insert(schema, Some(checks));
        checks
    }
}

fn decode_percent(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).map(|code| u8::from_str_radix(code, 16));
        match code {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            Some(Err(_)) | None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_multiply_are_too_costly() {
        let chain = |reference: &str| {
            let mut schema = json!({"$defs": {"a20": {}}, "$ref": format!("{reference}a0")});
            for n in 0..20 {
                let next = json!({"$ref": format!("{reference}a{}", n + 1)});
                schema["$defs"][format!("a{n}")] = json!({"allOf": [next, next, next]});
            }
            schema
        };
        assert!(is_too_costly(&chain("#/$defs/")));
        assert!(is_too_costly(&chain("#/%24defs/")));
        assert!(is_too_costly(
            &json!({"properties": {"x": chain("#/properties/x/$defs/")}})
        ));
        assert!(is_too_costly(&json!({"$ref": "#"})), "it never ends");
        let mut long = json!({"$defs": {}, "$ref": "#/$defs/0"});
        for n in 0..10_000 {
            long["$defs"][n.to_string()] = json!({"$ref": format!("#/$defs/{}", n + 1)});
        }
        assert!(is_too_costly(&long));
        let looped = json!({"$anchor": "a", "anyOf": [{"not": {"$ref": "#a"}}]});
        assert!(is_too_costly(&looped), "it never ends");
    }

    #[test]
    fn schemas_of_real_tools_are_not() {
        let expression = json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [
            {"properties": {"and": {"items": {"$ref": "#/$defs/e"}}}},
            {"properties": {"not": {"$ref": "#/$defs/e"}}},
            {"properties": {"child": {"$ref": "#/$defs/e"}}},
            {"type": "string"},
        ]}}});
        let tree = json!({"properties": {"children": {"items": {"$ref": "#"}}}});
        let extended = json!({
            "$id": "http://a/b",
            "allOf": [{"$ref": "#/definitions/base"}, {"$ref": "#/definitions/base"}],
            "definitions": {"base": {"if": {}, "then": {}, "dependencies": {"a": ["b"]}}},
        });
        let wide = json!({"oneOf": vec![json!({"required": ["x"]}); 2_000]});
        for schema in [expression, tree, extended, wide] {
            assert!(!is_too_costly(&schema), "{schema}");
        }
    }
}
