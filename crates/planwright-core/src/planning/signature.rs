//! The arguments and results of a tool in the notation of TypeScript, which says the same as JSON
//! Schema in a fraction of the tokens.

use super::quote::quote_text;
use serde_json::{Map, Value};

/// Properties of one object that are told.
const MAX_PROPERTIES: usize = 40;
const MAX_DESCRIPTION: usize = 100;
const MAX_VALUE: usize = 60;
/// A part longer than this is told as its kind alone.
const MAX_PART: usize = 1_200;
/// The same where little is told.
const MAX_OUTLINE: usize = 100;

/// How much of a schema is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureDetail {
    /// All of it, with the descriptions of the arguments.
    Full,
    /// The names of the arguments and their kinds: of lists and objects, what is in them.
    Kinds,
    /// The names alone.
    Names,
}

/// Writes the arguments of a tool: `(path: string, mode?: "a"|"b")`.
pub(super) fn write_arguments(schema: &Value, detail: SignatureDetail) -> String {
    let parts = write_properties(schema, detail);
    format!("({})", parts.join(", "))
}

/// Writes what a tool returns: `{rows: string[], total: number}`; nothing if that says nothing.
pub(super) fn write_result(schema: &Value, detail: SignatureDetail) -> Option<String> {
    let text = match detail {
        SignatureDetail::Full => write_type(schema),
        SignatureDetail::Kinds | SignatureDetail::Names => {
            let kind = write_kind(schema);
            if kind == "object" {
                let parts = write_properties(schema, SignatureDetail::Names);
                format!("{{{}}}", parts.join(", "))
            } else {
                kind
            }
        }
    };
    let text = match text.len() > MAX_PART {
        true => write_kind(schema),
        false => text,
    };
    Some(text).filter(|text| text != "any" && text != "object" && text != "{}")
}

fn write_properties(schema: &Value, detail: SignatureDetail) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().any(|entry| entry == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut parts = Vec::new();
    for (name, property) in properties.into_iter().flatten().take(MAX_PROPERTIES) {
        let mark = if is_required(name) { "" } else { "?" };
        let name = write_name(name);
        parts.push(match detail {
            SignatureDetail::Names => format!("{name}{mark}"),
            SignatureDetail::Kinds => format!("{name}{mark}: {}", write_outline(property)),
            SignatureDetail::Full => {
                let mut kind = write_type(property);
                if kind.len() > MAX_PART {
                    kind = write_kind(property);
                }
                format!("{name}{mark}: {kind}{}", write_description(property))
            }
        });
    }
    parts
}

/// A name that is no plain word could be mistaken for something else.
fn write_name(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '$');
    if plain && !name.is_empty() && name.len() <= MAX_VALUE {
        name.to_owned()
    } else {
        quote_text(name, MAX_VALUE)
    }
}

fn write_description(property: &Value) -> String {
    let text = property.get("description").and_then(Value::as_str);
    text.map(|text| format!(" {}", quote_text(text, MAX_DESCRIPTION)))
        .unwrap_or_default()
}

/// The kind of a value with the names in it, which a call cannot do without: `string[]`, `{name,
/// tags?}[]`, `"asc"|"desc"`.
fn write_outline(schema: &Value) -> String {
    let text = match write_kind(schema).as_str() {
        "array" => schema
            .get("items")
            .map_or_else(|| "array".to_owned(), write_list),
        "object" if schema.get("properties").is_some() => {
            let parts = write_properties(schema, SignatureDetail::Names);
            format!("{{{}}}", parts.join(", "))
        }
        kind => write_choices(schema).unwrap_or_else(|| kind.to_owned()),
    };
    match text.len() > MAX_OUTLINE {
        true => write_kind(schema),
        false => text,
    }
}

/// A list of such items. A choice needs parentheses; a list or an object has its own.
fn write_list(items: &Value) -> String {
    let is_choice = !matches!(write_kind(items).as_str(), "array" | "object");
    let outline = write_outline(items);
    if is_choice && outline.contains('|') {
        format!("({outline})[]")
    } else {
        format!("{outline}[]")
    }
}

/// The values or kinds of which one is to be given. That nothing is one of them is what "?" says.
fn write_choices(schema: &Value) -> Option<String> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(write_value).collect();
        return Some(values.join("|"));
    }
    let choices = schema.get("anyOf").and_then(Value::as_array)?;
    let kinds = choices.iter().map(write_outline);
    let mut kinds: Vec<String> = kinds.filter(|kind| kind != "null").collect();
    kinds.dedup();
    (!kinds.is_empty() && kinds.iter().all(|kind| kind != "any")).then(|| kinds.join("|"))
}

/// The kind of value, without what is in it.
fn write_kind(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    match text("type") {
        Some(
            kind @ ("string" | "number" | "integer" | "boolean" | "null" | "object" | "array"),
        ) => kind.to_owned(),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ if schema.get("enum").is_some() => "string".to_owned(),
        _ => "any".to_owned(),
    }
}

fn write_type(schema: &Value) -> String {
    let empty = Map::new();
    let object = schema.as_object().unwrap_or(&empty);
    if let Some(choices) = object.get("anyOf").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().map(write_type).collect();
        return choices.join(" | ");
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(write_value).collect();
        return values.join("|");
    }
    match object.get("type").and_then(Value::as_str) {
        Some("array") => match object.get("items").map(write_type) {
            Some(items) if items.contains(['|', ' ']) && !items.starts_with('{') => {
                format!("({items})[]")
            }
            Some(items) => format!("{items}[]"),
            None => "any[]".to_owned(),
        },
        Some("object") if object.contains_key("properties") => {
            let parts = write_properties(schema, SignatureDetail::Full);
            format!("{{{}}}", parts.join(", "))
        }
        _ => write_kind(schema),
    }
}

fn write_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote_text(text, MAX_VALUE),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => quote_text(&value.to_string(), MAX_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_a_signature() {
        let schema = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "Where to"},
                "mode": {"enum": ["append", "replace"]},
                "rows": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
                "odd name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        });
        assert_eq!(
            write_arguments(&schema, SignatureDetail::Full),
            r#"(path: string "Where to", mode?: "append"|"replace", rows?: {id?: integer}[], "odd name"?: string | null)"#
        );
        assert_eq!(
            write_arguments(&schema, SignatureDetail::Kinds),
            r#"(path: string, mode?: "append"|"replace", rows?: {id?}[], "odd name"?: string)"#
        );
        assert_eq!(
            write_arguments(&schema, SignatureDetail::Names),
            r#"(path, mode?, rows?, "odd name"?)"#
        );
    }

    #[test]
    fn an_outline_has_the_names_that_a_call_needs_and_stays_short() {
        let words: Vec<String> = (0..50).map(|n| format!("word{n}")).collect();
        let entity = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}});
        let schema = json!({"properties": {
            "entities": {"type": "array", "items": entity},
            "files": {"type": "array", "items": {"type": "string"}},
            "cells": {"type": "array", "items": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}},
            "one": entity,
            "word": {"enum": words},
            "open": {"anyOf": [{}, {"type": "null"}]},
        }});
        assert_eq!(
            write_arguments(&schema, SignatureDetail::Kinds),
            "(entities?: {name, tags?}[], files?: string[], cells?: (string|number)[][], one?: {name, tags?}, \
             word?: string, open?: any)"
        );
    }

    #[test]
    fn a_result_is_told_when_there_is_something_to_tell() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let full = SignatureDetail::Full;
        assert_eq!(write_result(&list, full).unwrap(), "string[]");
        assert_eq!(write_result(&json!({"type": "object"}), full), None);
        assert_eq!(write_result(&json!({}), full), None);
    }
}
