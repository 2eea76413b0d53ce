//! What the results of a tool looked like: which parts they had, and of what kind. Never what was in
//! them.
//!
//! Most servers do not say what their tools return. What was seen is no promise, so it only makes
//! warnings and suggestions.

use crate::plan::read_json_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The depth to which a value is looked into.
const MAX_DEPTH: usize = 6;
/// Objects with more keys than this are tables: their keys are data.
const MAX_FIELDS: usize = 40;
/// Elements of a list, or of a table, that are looked at.
const MAX_ELEMENTS: usize = 20;
/// The longest key that is remembered.
const MAX_KEY: usize = 40;
/// Parts of one shape. A larger one is cut.
const MAX_PARTS: usize = 400;

/// The kind of a value, and of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum SeenShape {
    /// Several kinds were seen, or it was not looked at.
    Any,
    /// Nothing.
    Null,
    /// True or false.
    Boolean,
    /// A number.
    Number,
    /// Text that is no JSON.
    Text,
    /// Text that is JSON, which references reach into.
    JsonText {
        /// The shape of what is in it.
        of: Box<Self>,
    },
    /// A list.
    List {
        /// Its elements; `None` if it was always empty.
        of: Option<Box<Self>>,
    },
    /// An object with these parts.
    Object {
        /// The parts by their keys.
        fields: BTreeMap<String, SeenField>,
    },
    /// An object whose keys are data.
    Table {
        /// Its values; `None` if it was always empty.
        of: Option<Box<Self>>,
    },
}

/// A part of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenField {
    /// The kinds of values that were seen there.
    pub shape: SeenShape,
    /// True if every object had it.
    pub always: bool,
}

impl SeenShape {
    /// The shape of a value. A key that `is_name` denies is data.
    pub fn of(value: &Value, is_name: &dyn Fn(&str) -> bool) -> Self {
        let mut parts = MAX_PARTS;
        Self::look(value, is_name, MAX_DEPTH, &mut parts)
    }

    fn look(
        value: &Value,
        is_name: &dyn Fn(&str) -> bool,
        depth: usize,
        parts: &mut usize,
    ) -> Self {
        if depth == 0 || *parts == 0 {
            return Self::Any;
        }
        *parts -= 1;
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(text) => match read_json_text(text) {
                Some(inside) => Self::JsonText {
                    of: Box::new(Self::look(&inside, is_name, depth, parts)),
                },
                None => Self::Text,
            },
            Value::Array(items) => Self::List {
                of: Self::look_at_all(items.iter(), is_name, depth, parts),
            },
            Value::Object(fields) => {
                let is_table =
                    fields.len() > MAX_FIELDS || !fields.keys().all(|key| is_plain(key, is_name));
                if is_table {
                    let of = Self::look_at_all(fields.values(), is_name, depth, parts);
                    return Self::Table { of };
                }
                let fields = fields.iter().map(|(key, value)| {
                    let shape = Self::look(value, is_name, depth - 1, parts);
                    (
                        key.clone(),
                        SeenField {
                            shape,
                            always: true,
                        },
                    )
                });
                Self::Object {
                    fields: fields.collect(),
                }
            }
        }
    }

    fn look_at_all<'a>(
        values: impl Iterator<Item = &'a Value>,
        is_name: &dyn Fn(&str) -> bool,
        depth: usize,
        parts: &mut usize,
    ) -> Option<Box<Self>> {
        let seen = values
            .take(MAX_ELEMENTS)
            .map(|value| Self::look(value, is_name, depth - 1, parts));
        seen.reduce(Self::merge).map(Box::new)
    }

    /// What both are.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, other) => other,
            (own, Self::Null) => own,
            (Self::JsonText { of: own }, Self::JsonText { of: other }) => Self::JsonText {
                of: Box::new(own.merge(*other)),
            },
            // An empty or a broken answer is text too.
            (Self::JsonText { .. }, Self::Text) | (Self::Text, Self::JsonText { .. }) => Self::Text,
            (Self::List { of: own }, Self::List { of: other }) => Self::List {
                of: merge_options(own, other),
            },
            (Self::Table { of: own }, Self::Table { of: other }) => Self::Table {
                of: merge_options(own, other),
            },
            (Self::Object { fields: own }, Self::Object { fields: other }) => {
                merge_fields(own, other)
            }
            (Self::Object { fields }, Self::Table { of })
            | (Self::Table { of }, Self::Object { fields }) => Self::Table {
                of: merge_options(of, into_values(fields)),
            },
            (own, other) if own == other => own,
            _ => Self::Any,
        }
    }

    /// The parts of an object, seen through text that is JSON; `None` if it is no object.
    pub fn fields(&self) -> Option<&BTreeMap<String, SeenField>> {
        match self {
            Self::Object { fields } => Some(fields),
            Self::JsonText { of } => of.fields(),
            Self::Any
            | Self::Null
            | Self::Boolean
            | Self::Number
            | Self::Text
            | Self::List { .. }
            | Self::Table { .. } => None,
        }
    }

    /// Writes it in the notation of TypeScript; nothing if that says nothing.
    pub fn write(&self, max_chars: usize) -> Option<String> {
        let text = self.text();
        let short = match text.chars().count() > max_chars {
            true => self.short_text(),
            false => text,
        };
        let says_something = !matches!(short.as_str(), "any" | "null" | "any[]");
        Some(short).filter(|text| says_something && text.chars().count() <= max_chars)
    }

    fn text(&self) -> String {
        let of = |inner: &Option<Box<Self>>| match inner {
            Some(of) => of.text(),
            None => "any".to_owned(),
        };
        match self {
            Self::Any => "any".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Boolean => "boolean".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "string".to_owned(),
            Self::JsonText { of } => of.text(),
            Self::List { of: inner } => format!("{}[]", of(inner)),
            Self::Table { of: inner } => format!("{{[key]: {}}}", of(inner)),
            Self::Object { fields } => {
                let parts: Vec<String> = fields
                    .iter()
                    .map(|(key, field)| format!("{}: {}", field.name(key), field.shape.text()))
                    .collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }

    /// The names of the parts alone.
    fn short_text(&self) -> String {
        match self {
            Self::JsonText { of } => of.short_text(),
            Self::List { of: Some(inner) } => format!("{}[]", inner.short_text()),
            Self::Object { fields } => {
                let names: Vec<String> =
                    fields.iter().map(|(key, field)| field.name(key)).collect();
                format!("{{{}}}", names.join(", "))
            }
            Self::Any
            | Self::Null
            | Self::Boolean
            | Self::Number
            | Self::Text
            | Self::List { of: None }
            | Self::Table { .. } => self.text(),
        }
    }
}

impl SeenField {
    fn name(&self, key: &str) -> String {
        let mark = if self.always { "" } else { "?" };
        format!("{key}{mark}")
    }
}

fn merge_options(
    own: Option<Box<SeenShape>>,
    other: Option<Box<SeenShape>>,
) -> Option<Box<SeenShape>> {
    match (own, other) {
        (Some(own), Some(other)) => Some(Box::new(own.merge(*other))),
        (own, other) => own.or(other),
    }
}

fn merge_fields(
    own: BTreeMap<String, SeenField>,
    mut other: BTreeMap<String, SeenField>,
) -> SeenShape {
    let mut fields = BTreeMap::new();
    for (key, mut field) in own {
        match other.remove(&key) {
            Some(there) => {
                field.shape = field.shape.merge(there.shape);
                field.always &= there.always;
            }
            None => field.always = false,
        }
        fields.insert(key, field);
    }
    for (key, mut field) in other {
        field.always = false;
        fields.insert(key, field);
    }
    if fields.len() > MAX_FIELDS {
        return SeenShape::Table {
            of: into_values(fields),
        };
    }
    SeenShape::Object { fields }
}

fn into_values(fields: BTreeMap<String, SeenField>) -> Option<Box<SeenShape>> {
    let shapes = fields.into_values().map(|field| field.shape);
    shapes.reduce(SeenShape::merge).map(Box::new)
}

/// Returns whether a key is the name of a part: a short word, and nothing that is known as a secret.
fn is_plain(key: &str, is_name: &dyn Fn(&str) -> bool) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    key.len() <= MAX_KEY
        && key.starts_with(is_letter)
        && key
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit() || letter == '-')
        && is_name(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> SeenShape {
        SeenShape::of(&value, &|key| key != "hunter2")
    }

    fn written(value: Value) -> String {
        of(value).write(400).unwrap_or_default()
    }

    #[test]
    fn shapes_have_kinds_and_no_values() {
        let value =
            json!({ "rows": [{ "name": "Ada", "age": 36 }, { "name": "Bob" }], "more": false });
        assert_eq!(
            written(value),
            "{more: boolean, rows: {age?: number, name: string}[]}"
        );
        let stored = serde_json::to_string(&of(json!({ "name": "Ada" }))).unwrap();
        assert!(!stored.contains("Ada"), "{stored}");
    }

    #[test]
    fn keys_that_are_data_are_not_kept() {
        assert_eq!(
            written(json!({ "ada@example.org": 1, "bob@example.org": 2 })),
            "{[key]: number}"
        );
        assert_eq!(written(json!({ "hunter2": "x" })), "{[key]: string}");
        let many: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("user{n}"), json!(n))).collect();
        assert_eq!(written(Value::Object(many)), "{[key]: number}");
    }

    #[test]
    fn text_that_is_json_is_looked_into() {
        assert_eq!(written(json!("{\"a\": [1]}")), "{a: number[]}");
        assert_eq!(written(json!("hello")), "string");
        let both = of(json!("[1]")).merge(of(json!("broken")));
        assert_eq!(both, SeenShape::Text);
    }

    #[test]
    fn what_was_seen_adds_up() {
        let both = of(json!({ "a": null, "b": [] })).merge(of(json!({ "a": 1, "c": "x" })));
        assert_eq!(
            both.write(400).as_deref(),
            Some("{a: number, b?: any[], c?: string}")
        );
        assert_eq!(of(json!(1)).merge(of(json!("x"))), SeenShape::Any);
    }

    #[test]
    fn shapes_have_a_size() {
        let mut deep = json!(1);
        for _ in 0..50 {
            deep = json!({ "next": deep });
        }
        assert!(written(deep).len() < 100);
        let wide: Vec<Value> = (0..2_000).map(|n| json!({ "n": n })).collect();
        assert_eq!(written(json!(wide)), "{n: number}[]");
    }
}
