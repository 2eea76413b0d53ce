//! The work of checking one value against a schema.
//!
//! A schema that refers to itself below several branches has the same part of a value checked once
//! per branch and level: two short branches and thirty levels are a thousand million checks. What
//! they come to depends on the value, so it is counted along both before anything is checked. The
//! count goes as far as its limit and no further, and rather counts a schema that would not be
//! looked at than it misses one.

use super::schema_cost::Schemas;
use serde_json::Value;
use std::collections::BTreeMap;

/// Checks that any value may take, and those that each part of a large value may take besides.
/// Schemas of real tools need some dozens of them.
const MAX_VISITS: u64 = 200_000;
const MAX_VISITS_PER_PART: u64 = 32;
/// Schemas within schemas, over all levels of a value: each is a call within a call.
const MAX_NESTING: usize = 512;

/// Why a value is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMuchWork {
    /// The same parts would be checked again and again.
    #[error(
        "checking this value against the schema takes too long: the schema refers to itself in several branches"
    )]
    Visits,
    /// The checks would be nested too deeply.
    #[error("the schema nests more than {MAX_NESTING} schemas for this value")]
    Nesting,
}

/// The places of a schema that lead to other schemas, by number.
#[derive(Debug, Default)]
pub(super) struct SchemaWork {
    nodes: Vec<Node>,
    root: Option<usize>,
}

/// One schema: what is checked along with it.
#[derive(Debug, Default)]
struct Node {
    /// For the same value.
    same: Vec<usize>,
    /// For the field of this name.
    fields: BTreeMap<String, Vec<usize>>,
    /// For every field.
    every_field: Vec<usize>,
    /// For every name of a field.
    names: Vec<usize>,
    /// For the element at this place.
    elements: Vec<usize>,
    /// For every element.
    every_element: Vec<usize>,
    /// What is left over is found out by checking the same value once more.
    looks_twice: bool,
}

impl SchemaWork {
    /// Reads a schema that was found to be bounded in size.
    pub(super) fn of(schema: &Value) -> Self {
        let schemas = Schemas::of(schema);
        let numbers: BTreeMap<*const Value, usize> = schemas
            .all()
            .iter()
            .enumerate()
            .map(|(number, schema)| (std::ptr::from_ref(*schema), number))
            .collect();
        let find = |schema: &Value| numbers.get(&std::ptr::from_ref(schema)).copied();
        let nodes = schemas.all().iter().map(|schema| {
            let mut node = Node::default();
            for (name, part) in schema.as_object().into_iter().flatten() {
                node.add(name, part, &schemas, &find);
            }
            node
        });
        Self {
            nodes: nodes.collect(),
            root: find(schema),
        }
    }

    /// Refuses a value whose check would take too long.
    pub(super) fn check(&self, value: &Value) -> Result<(), TooMuchWork> {
        let Some(root) = self.root else {
            return Ok(());
        };
        let parts = count_parts(value);
        let mut left = MAX_VISITS.saturating_add(parts.saturating_mul(MAX_VISITS_PER_PART));
        self.visit(root, value, MAX_NESTING, &mut left)
    }

    fn visit(
        &self,
        number: usize,
        value: &Value,
        nesting: usize,
        left: &mut u64,
    ) -> Result<(), TooMuchWork> {
        *left = left.checked_sub(1).ok_or(TooMuchWork::Visits)?;
        let nesting = nesting.checked_sub(1).ok_or(TooMuchWork::Nesting)?;
        let node = &self.nodes[number];
        for _ in 0..=u8::from(node.looks_twice) {
            for &schema in &node.same {
                self.visit(schema, value, nesting, left)?;
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let named = node.fields.get(name).map_or(&[][..], Vec::as_slice);
                    for &schema in named.iter().chain(&node.every_field) {
                        self.visit(schema, field, nesting, left)?;
                    }
                    for &schema in &node.names {
                        self.visit(schema, &Value::Null, nesting, left)?;
                    }
                }
            }
            Value::Array(list) => {
                for (place, element) in list.iter().enumerate() {
                    for &schema in node
                        .elements
                        .get(place)
                        .iter()
                        .copied()
                        .chain(&node.every_element)
                    {
                        self.visit(schema, element, nesting, left)?;
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }
}

impl Node {
    fn add(
        &mut self,
        name: &str,
        part: &Value,
        schemas: &Schemas<'_>,
        find: &impl Fn(&Value) -> Option<usize>,
    ) {
        match (name, part) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                self.same.extend(list.iter().filter_map(find));
            }
            ("not" | "if" | "then" | "else", _) => self.same.extend(find(part)),
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                self.same.extend(named.values().filter_map(find));
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let meant = schemas.resolve(reference);
                self.same.extend(meant.into_iter().filter_map(find));
            }
            ("properties", Value::Object(named)) => {
                for (field, schema) in named {
                    let schemas = self.fields.entry(field.clone()).or_default();
                    schemas.extend(find(schema));
                }
            }
            // Which names a pattern fits is not worked out.
            ("patternProperties", Value::Object(named)) => {
                self.every_field.extend(named.values().filter_map(find));
            }
            ("additionalProperties", _) => self.every_field.extend(find(part)),
            ("unevaluatedProperties", _) => {
                self.every_field.extend(find(part));
                self.looks_twice = true;
            }
            ("propertyNames", _) => self.names.extend(find(part)),
            ("items" | "prefixItems", Value::Array(list)) => {
                self.elements = list.iter().filter_map(find).collect();
            }
            ("items" | "contains" | "additionalItems", _) => {
                self.every_element.extend(find(part));
            }
            ("unevaluatedItems", _) => {
                self.every_element.extend(find(part));
                self.looks_twice = true;
            }
            _ => {}
        }
    }
}

fn count_parts(value: &Value) -> u64 {
    match value {
        Value::Object(fields) => 1 + fields.values().map(count_parts).sum::<u64>(),
        Value::Array(list) => 1 + list.iter().map(count_parts).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |value, _| json!({ "x": value }))
    }

    fn check(schema: &Value, value: &Value) -> Result<(), TooMuchWork> {
        SchemaWork::of(schema).check(value)
    }

    #[test]
    fn branches_that_lead_back_multiply_with_the_depth_of_the_value() {
        let back = json!({ "properties": { "x": { "$ref": "#" } } });
        let list = json!({ "items": { "$ref": "#" } });
        let bombs = [
            json!({ "anyOf": [back, back] }),
            json!({ "allOf": [back, back, back] }),
            json!({ "oneOf": [back, { "not": back }] }),
            json!({ "patternProperties": { "x": { "$ref": "#" }, ".": { "$ref": "#" } } }),
            json!({ "properties": { "x": { "$ref": "#" } }, "additionalProperties": { "$ref": "#" }}),
            json!({ "unevaluatedProperties": { "$ref": "#" }, "allOf": [back] }),
        ];
        for bomb in bombs {
            assert_eq!(
                check(&bomb, &nested(40)),
                Err(TooMuchWork::Visits),
                "{bomb}"
            );
            assert_eq!(check(&bomb, &nested(3)), Ok(()), "{bomb}");
        }
        let lists = (0..40).fold(json!([]), |value, _| json!([value]));
        let bomb = json!({ "anyOf": [list, list] });
        assert_eq!(check(&bomb, &lists), Err(TooMuchWork::Visits));
    }

    #[test]
    fn long_chains_of_schemas_are_not_followed_to_the_end_of_the_stack() {
        let mut chain = json!({ "$ref": "#/$defs/0", "$defs": {} });
        for n in 0..100 {
            chain["$defs"][n.to_string()] = json!({ "$ref": format!("#/$defs/{}", n + 1) });
        }
        chain["$defs"]["100"] = json!({ "properties": { "x": { "$ref": "#" } } });
        assert_eq!(check(&chain, &nested(2)), Ok(()));
        assert_eq!(check(&chain, &nested(100)), Err(TooMuchWork::Nesting));
    }

    #[test]
    fn what_real_tools_take_is_checked() {
        let expression = json!({ "$ref": "#/$defs/e", "$defs": { "e": { "oneOf": [
            { "properties": { "and": { "items": { "$ref": "#/$defs/e" } } }, "required": ["and"] },
            { "properties": { "not": { "$ref": "#/$defs/e" } }, "required": ["not"] },
            { "type": "string" },
        ] } } });
        let deep = (0..60).fold(json!("x"), |value, _| json!({ "not": value }));
        assert_eq!(check(&expression, &deep), Ok(()));
        let wide: Vec<Value> = (0..50_000)
            .map(|n| json!({ "n": n, "and": ["x"] }))
            .collect();
        assert_eq!(check(&expression, &json!({ "and": wide })), Ok(()));
        let tree = json!({ "properties": { "children": { "items": { "$ref": "#" } } } });
        let branch = (0..50).fold(json!({}), |value, _| json!({ "children": [value, {}] }));
        assert_eq!(check(&tree, &branch), Ok(()));
        assert_eq!(check(&json!(true), &branch), Ok(()));
    }
}
