//! What holds for every schema of the document, so that tools of others can read it: no schema that is
//! only `true`, no title that two have, nothing described twice.

use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Keywords whose value is one schema.
const ONE: [&str; 7] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "contentSchema",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords whose value is schemas by name.
const NAMED: [&str; 2] = ["properties", "patternProperties"];

/// Integers in JSON are read as far as all programs agree about them.
const MOST_IN_JSON: u64 = 1 << 53;

/// Gives every schema of the document its final shape.
pub(super) fn shape_schemas(document: &mut Value) {
    write_out_references(document);
    visit_document(document, &mut |schema| {
        replace_true(schema);
        let Some(schema) = schema.as_object_mut() else {
            return;
        };
        // Generators make type names of titles, and two types cannot have the same.
        schema.remove("title");
        // Generators take a property with a default for one that is always there, also in what is sent.
        schema.remove("default");
        join_words(schema);
        open_object(schema);
        describe_names(schema);
    });
    let schemas = document["components"]["schemas"].as_object_mut();
    for (_, schema) in schemas.into_iter().flatten() {
        visit(schema, &mut |schema| {
            if let Some(schema) = schema.as_object_mut() {
                bound_integer(schema, MOST_IN_JSON);
            }
        });
    }
    refer_to_components(document);
    drop_unused(document);
}

/// Calls this for every schema of the document, inner ones first.
fn visit_document(document: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    let schemas = document["components"]["schemas"].as_object_mut();
    for (_, schema) in schemas.into_iter().flatten() {
        visit(schema, change);
    }
    visit_contents(&mut document["paths"], change);
    visit_contents(&mut document["components"]["responses"], change);
}

/// Calls this for the schemas of parameters, bodies and headers.
fn visit_contents(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if key == "schema" {
                    visit(value, change);
                } else if key != "examples" && key != "example" {
                    visit_contents(value, change);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| visit_contents(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn visit(schema: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    if let Some(object) = schema.as_object_mut() {
        for key in ONE {
            // Whether there may be more properties is a yes or no that every tool understands.
            if let Some(inner) = object.get_mut(key)
                && (key == "items" || inner.is_object())
            {
                visit(inner, change);
            }
        }
        for key in LISTS {
            let list = object.get_mut(key).and_then(Value::as_array_mut);
            for inner in list.into_iter().flatten() {
                visit(inner, change);
            }
        }
        for key in NAMED {
            let named = object.get_mut(key).and_then(Value::as_object_mut);
            for (_, inner) in named.into_iter().flatten() {
                visit(inner, change);
            }
        }
    }
    change(schema);
}

/// Anything at all is `{}`: many tools do not know that `true` means the same.
fn replace_true(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
}

/// Words that are described one by one are still words.
fn join_words(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else {
        return;
    };
    let word = |choice: &Value| choice["const"].as_str().map(str::to_owned);
    let Some(words) = choices.iter().map(word).collect::<Option<Vec<_>>>() else {
        return;
    };
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), json!(words));
}

/// Writes a component out where more is said than its reference: what stands beside a reference is not read by
/// many tools.
fn write_out_references(document: &mut Value) {
    let components = document["components"]["schemas"].clone();
    visit_document(document, &mut |schema| {
        let Some(schema) = schema.as_object_mut() else {
            return;
        };
        let says_more = schema.contains_key("properties");
        let name = schema.get("$ref").and_then(Value::as_str);
        let name = name.and_then(|place| place.strip_prefix("#/components/schemas/"));
        let (true, Some(component)) = (says_more, name.map(|name| &components[name])) else {
            return;
        };
        let empty = Map::new();
        let properties = component["properties"]
            .as_object()
            .unwrap_or(&empty)
            .clone();
        let required = component["required"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        schema.remove("$ref");
        if let Some(own) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            own.extend(properties);
        }
        let own = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(own) = own.as_array_mut() {
            own.extend(required);
        }
    });
}

/// An object of which nothing is said can hold anything; tools take it for one that holds nothing.
fn open_object(schema: &mut Map<String, Value>) {
    let is_object = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        _ => false,
    };
    let says_more = ["properties", "patternProperties", "additionalProperties"];
    if is_object && !says_more.iter().any(|key| schema.contains_key(*key)) {
        schema.insert("additionalProperties".to_owned(), json!({}));
    }
}

/// What a property with this name is, wherever it stands.
fn describe_names(schema: &mut Map<String, Value>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        if !is_text(property) || property.contains_key("enum") || property.contains_key("const") {
            continue;
        }
        let is_instant = matches!(name.as_str(), "at" | "since") || name.ends_with("At");
        if is_instant {
            property.insert("format".to_owned(), json!("date-time"));
        }
        if let Some(pattern) = super::patterns::of_property(name) {
            property.entry("pattern").or_insert_with(|| json!(pattern));
        }
        if name == "verdict" {
            property.clear();
            property.insert("$ref".to_owned(), json!("#/components/schemas/Verdict"));
        }
    }
}

/// Says up to where integers are read, where nothing else does.
pub(super) fn bound_integer(schema: &mut Map<String, Value>, most: u64) {
    let is_integer = match schema.get("type") {
        Some(Value::String(kind)) => kind == "integer",
        Some(Value::Array(kinds)) => kinds.contains(&json!("integer")),
        _ => false,
    };
    if !is_integer || schema.contains_key("enum") || schema.contains_key("maximum") {
        return;
    }
    let format = schema.get("format").and_then(Value::as_str);
    let most = match format {
        Some("int32" | "uint32") => u64::from(u32::MAX),
        _ => most,
    };
    schema.insert("maximum".to_owned(), json!(most));
}

fn is_text(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.contains(&json!("string")),
        _ => false,
    }
}

/// Puts a reference where a component is spelt out: types without names cannot be named by programs.
fn refer_to_components(document: &mut Value) {
    let components = document["components"]["schemas"].as_object().cloned();
    let components: Vec<(String, Value)> = components
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("properties").is_some())
        .collect();
    let refer = &mut |schema: &mut Value| {
        let known = components.iter().find(|(_, known)| known == schema);
        if let Some((name, _)) = known {
            *schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        }
    };
    let schemas = document["components"]["schemas"].as_object_mut();
    for (name, schema) in schemas.into_iter().flatten() {
        let own = json!({ "$ref": format!("#/components/schemas/{name}") });
        let before = schema.clone();
        visit(schema, refer);
        if *schema == own {
            *schema = before;
        }
    }
    visit_contents(&mut document["paths"], refer);
}

/// Leaves out components that nothing refers to.
fn drop_unused(document: &mut Value) {
    let mut used = HashSet::new();
    let mut found = Vec::new();
    collect_references(&document["paths"], &mut found);
    collect_references(&document["components"]["responses"], &mut found);
    while let Some(name) = found.pop() {
        if used.insert(name.clone()) {
            collect_references(&document["components"]["schemas"][&name], &mut found);
        }
    }
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| used.contains(name));
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "$ref" => {
                        let name = text.strip_prefix("#/components/schemas/");
                        found.extend(name.map(str::to_owned));
                    }
                    Value::String(text) if text.starts_with("#/components/schemas/") => {
                        found.extend(text.rsplit('/').next().map(str::to_owned));
                    }
                    value => collect_references(value, found),
                }
            }
        }
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
