//! Moves the servers of a client behind Planwright.

use super::clients::{NAME, Places, Scope, ServerFile, ServerForm, TOML_SERVERS, YAML_SERVERS};
use super::edit::Edit;
use super::{toml_text, yaml_text};
use crate::config::{file, json_text};
use crate::exit::Failure;
use crate::trust::home;
use planwright_core::plan::{Bounds, read_yaml_value};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What moves, and what cannot.
#[derive(Debug, Default)]
pub(super) struct Move {
    /// Changes of the client's file.
    pub(super) out: Vec<Edit>,
    /// Changes of our file.
    pub(super) into: Vec<Edit>,
    /// Servers that stay with the client, each with the reason.
    pub(super) left: Vec<(String, String)>,
}

/// The file of ours that servers move into.
pub(super) fn target(places: &Places) -> Result<PathBuf, Failure> {
    match places.scope {
        Scope::Project => Ok(places.project.join(file::FILE)),
        Scope::User => home().map(|home| home.join(file::FILE)).ok_or_else(|| {
            Failure::usage("there is no directory for your configuration")
                .hint("set HOME or XDG_CONFIG_HOME")
        }),
    }
}

/// Finds out which servers can move.
pub(super) fn plan_move(client: &ServerFile, text: &str, own: &str) -> Result<Move, String> {
    let servers = match client.form {
        ServerForm::Json(key) => json_text::value_at(text, &[key.to_owned()])?,
        ServerForm::Toml => toml_text::table(text, TOML_SERVERS)?,
        ServerForm::Yaml if text.trim().is_empty() => None,
        ServerForm::Yaml => {
            let document = read_yaml_value(text, &Bounds::default());
            let document = document.map_err(|error| error.message)?;
            document.get(YAML_SERVERS).cloned()
        }
    };
    let known = toml_text::table(own, "servers")?.unwrap_or_else(|| json!({}));
    let mut moved = Move::default();
    let Some(Value::Object(servers)) = servers else {
        return Ok(moved);
    };
    for (name, entry) in servers {
        if name == NAME {
            continue;
        }
        let read = match client.form {
            ServerForm::Json(_) | ServerForm::Toml => Ok(entry.clone()),
            ServerForm::Yaml => read_extension(&entry),
        };
        let value = match read.and_then(|entry| convert(&name, &entry)) {
            Ok(value) => value,
            Err(why) => {
                moved.left.push((name, why));
                continue;
            }
        };
        if known.get(&name).is_some_and(|known| *known != value) {
            let why = "Planwright has another server of this name".to_owned();
            moved.left.push((name, why));
            continue;
        }
        let out = match client.form {
            ServerForm::Json(key) => Edit::JsonServerMoved {
                path: vec![key.to_owned()],
                key: name.clone(),
                value: entry,
            },
            ServerForm::Toml => Edit::TomlServerMoved {
                above: TOML_SERVERS.to_owned(),
                name: name.clone(),
                value: entry,
            },
            ServerForm::Yaml => {
                let Some(block) = yaml_text::entry(text, YAML_SERVERS, &name)? else {
                    let why = "it is not written as a block".to_owned();
                    moved.left.push((name, why));
                    continue;
                };
                Edit::YamlServerMoved {
                    above: YAML_SERVERS.to_owned(),
                    name: name.clone(),
                    block,
                }
            }
        };
        moved.out.push(out);
        moved.into.push(Edit::TomlTable {
            above: "servers".to_owned(),
            name,
            value,
        });
    }
    Ok(moved)
}

/// An extension of Goose as others write servers.
fn read_extension(entry: &Value) -> Result<Value, String> {
    let Value::Object(entry) = entry else {
        return Err("it is not a mapping".to_owned());
    };
    let kind = entry.get("type").and_then(Value::as_str);
    match kind {
        Some("stdio" | "streamable_http" | "sse") => {}
        Some("builtin" | "platform") => return Err("it is a part of the client".to_owned()),
        _ => return Err("its type is not supported".to_owned()),
    }
    let mut server = Map::new();
    for (key, value) in entry {
        let is_empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        let key = match key.as_str() {
            "name" | "display_name" | "bundled" => continue,
            "env_keys" | "available_tools" if is_empty => continue,
            "env_keys" => return Err("its secrets are in the keyring of the client".to_owned()),
            "cmd" => "command",
            "envs" => "env",
            "uri" => "url",
            other => other,
        };
        server.insert(key.to_owned(), value.clone());
    }
    Ok(Value::Object(server))
}

/// Keys that say how a client treats a server, and nothing about the server.
const OF_THE_CLIENT: [&str; 14] = [
    "type",
    "timeout",
    "trust",
    "description",
    "disabled",
    "enabled",
    "gallery",
    "alwaysAllow",
    "autoApprove",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "required",
    "version",
    "dev",
];

/// The server as our file writes it.
fn convert(name: &str, entry: &Value) -> Result<Value, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        return Err("its name has other signs than letters, digits, `_` and `-`".to_owned());
    }
    if name == "local" || name == "demo" {
        return Err("its name belongs to a server that is part of Planwright".to_owned());
    }
    let Value::Object(entry) = entry else {
        return Err("it is not an object".to_owned());
    };
    if entry.get("disabled") == Some(&json!(true)) || entry.get("enabled") == Some(&json!(false)) {
        return Err("it is turned off".to_owned());
    }
    if let Some(kind @ ("sse" | "ws")) = entry.get("type").and_then(Value::as_str) {
        return Err(format!("its type is `{kind}`, which is not supported"));
    }
    let mut server = Map::new();
    let mut headers = Map::new();
    for (key, value) in entry {
        match key.as_str() {
            "command" | "args" | "env" | "cwd" | "url" => {
                server.insert(key.clone(), value.clone());
            }
            "httpUrl" => {
                server.insert("url".to_owned(), value.clone());
            }
            "headers" | "http_headers" => {
                let Value::Object(more) = value else {
                    return Err(format!("its `{key}` is not an object"));
                };
                headers.extend(more.clone());
            }
            "bearer_token_env_var" => {
                let Value::String(variable) = value else {
                    return Err(format!("its `{key}` is not a text"));
                };
                let bearer = format!("Bearer ${{{variable}}}");
                headers.insert("Authorization".to_owned(), json!(bearer));
            }
            key if OF_THE_CLIENT.contains(&key) => {}
            key => return Err(format!("it uses `{key}`, which is not supported")),
        }
    }
    if !headers.is_empty() {
        server.insert("headers".to_owned(), Value::Object(headers));
    }
    for key in ["args", "env", "headers"] {
        let is_empty = server.get(key).is_some_and(|value| {
            value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty)
        });
        if is_empty {
            server.remove(key);
        }
    }
    if entry.values().any(names_input) {
        return Err("it asks for an input, which only an editor can ask for".to_owned());
    }
    let value = Value::Object(server);
    let text = toml_text::set_table("", "servers", name, &value)?;
    // The reader of that file has the last word.
    file::check_user_file(&text).map_err(|failure| failure.message)?;
    Ok(value)
}

fn names_input(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${input:"),
        Value::Array(list) => list.iter().any(names_input),
        Value::Object(fields) => fields.values().any(names_input),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
