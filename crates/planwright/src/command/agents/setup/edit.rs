//! Changes to the files of clients, as data: they are made, shown, recorded and taken back.

use super::{toml_text, yaml_text};
use crate::config::json_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub(super) enum Edit {
    /// A member of an object.
    JsonMember {
        path: Vec<String>,
        key: String,
        value: Value,
    },
    /// A hook in a list of hooks.
    JsonHook { path: Vec<String>, value: Value },
    /// A server that leaves the file.
    JsonServerMoved {
        path: Vec<String>,
        key: String,
        value: Value,
    },
    /// A table of TOML.
    TomlTable {
        above: String,
        name: String,
        value: Value,
    },
    /// A server that leaves the file.
    TomlServerMoved {
        above: String,
        name: String,
        value: Value,
    },
    /// An entry of a mapping of YAML.
    YamlEntry {
        above: String,
        name: String,
        block: Vec<String>,
    },
    /// A server that leaves the file.
    YamlServerMoved {
        above: String,
        name: String,
        block: Vec<String>,
    },
    /// The whole file is ours.
    Whole { text: String },
}

impl Edit {
    /// The text with the change made.
    pub(super) fn make(&self, text: &str) -> Result<String, String> {
        match self {
            // The version of a file that is there is its own.
            Self::JsonMember { path, key, .. }
                if path.is_empty()
                    && json_text::value_at(text, std::slice::from_ref(key))?.is_some() =>
            {
                Ok(text.to_owned())
            }
            Self::JsonMember { path, key, value } => json_text::set_member(text, path, key, value),
            Self::JsonHook { path, value } => {
                // One of an earlier version, or of another place of the program.
                let event = find_event(value);
                let is_old = |found: &Value| {
                    is_our_hook(found) && find_event(found) == event && found != value
                };
                let text = json_text::remove_elements(text, path, &is_old)?;
                json_text::add_element(&text, path, value)
            }
            Self::JsonServerMoved { path, key, .. } => json_text::remove_member(text, path, key),
            Self::TomlTable { above, name, value } => {
                if self.is_in_toml(text)? {
                    return Ok(text.to_owned());
                }
                toml_text::set_table(text, above, name, value)
            }
            Self::TomlServerMoved { above, name, .. } => toml_text::remove_table(text, above, name),
            Self::YamlEntry { above, name, block } => {
                yaml_text::set_entry(text, above, name, block)
            }
            Self::YamlServerMoved { above, name, .. } => yaml_text::remove_entry(text, above, name),
            Self::Whole { text } => Ok(text.clone()),
        }
    }

    /// The text without the change, where others changed it since. What is theirs stays.
    pub(super) fn take_back(&self, text: &str) -> Result<String, String> {
        match self {
            // The version of a file belongs to what is in it.
            Self::JsonMember { path, .. } if path.is_empty() => Ok(text.to_owned()),
            Self::JsonMember { path, key, .. } => json_text::remove_member(text, path, key),
            Self::JsonHook { path, .. } => json_text::remove_elements(text, path, &is_our_hook),
            Self::JsonServerMoved { path, key, value } => {
                let mut place = path.clone();
                place.push(key.clone());
                match json_text::value_at(text, &place)? {
                    Some(_) => Ok(text.to_owned()),
                    None => json_text::set_member(text, path, key, value),
                }
            }
            Self::TomlTable { above, name, .. } => {
                if self.is_in_toml(text)? {
                    return toml_text::remove_table(text, above, name);
                }
                Ok(text.to_owned())
            }
            Self::TomlServerMoved { above, name, value } => {
                let tables = toml_text::table(text, above)?;
                match tables.and_then(|tables| tables.get(name).cloned()) {
                    Some(_) => Ok(text.to_owned()),
                    None => toml_text::set_table(text, above, name, value),
                }
            }
            Self::YamlEntry { above, name, .. } => yaml_text::remove_entry(text, above, name),
            Self::YamlServerMoved { above, name, block } => {
                match yaml_text::entry(text, above, name)? {
                    Some(_) => Ok(text.to_owned()),
                    None => yaml_text::set_entry(text, above, name, block),
                }
            }
            Self::Whole { .. } => Ok(text.to_owned()),
        }
    }

    fn is_in_toml(&self, text: &str) -> Result<bool, String> {
        let Self::TomlTable { above, name, value } = self else {
            return Ok(false);
        };
        let tables = toml_text::table(text, above)?;
        Ok(tables.is_some_and(|tables| tables.get(name) == Some(value)))
    }
}

/// Returns whether a hook runs this program.
fn is_our_hook(value: &Value) -> bool {
    find_event(value).is_some()
}

/// The event that a hook of ours answers.
fn find_event(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) if text.contains("planwright") => {
            let (_, rest) = text.split_once(" hook ")?;
            rest.split_whitespace().next()
        }
        Value::Array(list) => list.iter().find_map(find_event),
        Value::Object(fields) => fields.values().find_map(find_event),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
