//! `.mcp.json` and `.vscode/mcp.json`: files of other programs. What they say beyond our needs is
//! theirs.

use super::launch::{Launch, check_name};
use crate::config::json_text;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// A server that a foreign file names.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) name: String,
    pub(super) launch: Launch,
    pub(super) enabled: bool,
    /// Why it cannot be used, if the file itself says enough to know.
    pub(super) problem: Option<String>,
}

/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 20;
/// More servers than this in one file are a mistake.
const MAX_SERVERS: usize = 200;

/// The servers of a file under `key`; none if there is no such file. An error names what is wrong
/// with the file.
pub(super) fn read(path: &Path, key: &str) -> Result<Vec<Foreign>, String> {
    match read_text(path, MAX_BYTES)? {
        Some(text) => parse(&text, key),
        None => Ok(Vec::new()),
    }
}

fn read_text(path: &Path, most: u64) -> Result<Option<String>, String> {
    let mut text = String::new();
    match std::fs::File::open(path) {
        Ok(file) => file
            .take(most + 1)
            .read_to_string(&mut text)
            .map_err(|error| error.to_string())?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if text.len() as u64 > most {
        return Err(format!("it is larger than {} KiB", most >> 10));
    }
    Ok(Some(text))
}

/// A server as another program of the user has it.
#[derive(Debug)]
pub(crate) struct ForeignEntry {
    pub(crate) name: String,
    /// As it is written there.
    pub(crate) entry: Map<String, Value>,
    /// The launch line or the address.
    pub(crate) line: String,
    /// Why it cannot be used here.
    pub(crate) problem: Option<String>,
}

/// The largest file of the user's own. Some programs keep their history in it.
const MAX_OWN_BYTES: u64 = 64 << 20;

/// The servers that a file of the user's has under these keys; none if there is no such file.
pub(crate) fn read_entries(path: &Path, keys: &[String]) -> Result<Vec<ForeignEntry>, String> {
    let Some(text) = read_text(path, MAX_OWN_BYTES)? else {
        return Ok(Vec::new());
    };
    let document = read_document(&text)?;
    let servers = keys.iter().try_fold(&document, |at, key| at.get(key));
    let Some(Value::Object(servers)) = servers else {
        return Ok(Vec::new());
    };
    let entries = servers.iter().take(MAX_SERVERS).map(|(name, entry)| {
        let Foreign {
            launch, problem, ..
        } = foreign(name, entry);
        let wrong = || check_name(name).and_then(|()| launch.check()).err();
        ForeignEntry {
            name: name.clone(),
            entry: entry.as_object().cloned().unwrap_or_default(),
            line: launch.line(),
            problem: problem.or_else(wrong),
        }
    });
    Ok(entries.collect())
}

/// Editors write comments into these files, and commas at the end of lists.
fn read_document(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(document) => Ok(document),
        Err(error) => {
            json_text::read_document(text).map_err(|_| format!("it is not JSON: {error}"))
        }
    }
}

fn parse(text: &str, key: &str) -> Result<Vec<Foreign>, String> {
    let document = read_document(text)?;
    let servers = match document.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Object(servers)) => servers,
        Some(_) => return Err(format!("`{key}` is not an object")),
    };
    if servers.len() > MAX_SERVERS {
        return Err(format!("it names more than {MAX_SERVERS} servers"));
    }
    Ok(servers
        .iter()
        .map(|(name, entry)| foreign(name, entry))
        .collect())
}

fn foreign(name: &str, entry: &Value) -> Foreign {
    let failed = |problem: String| Foreign {
        name: name.to_owned(),
        launch: Launch::default(),
        enabled: true,
        problem: Some(problem),
    };
    let Value::Object(entry) = entry else {
        return failed("it is not an object".to_owned());
    };
    let launch = match launch(entry) {
        Ok(launch) => launch,
        Err(problem) => return failed(problem),
    };
    let enabled = entry.get("disabled") != Some(&Value::Bool(true))
        && entry
            .get("enabled")
            .is_none_or(|enabled| enabled == &Value::Bool(true));
    Foreign {
        name: name.to_owned(),
        launch,
        enabled,
        problem: None,
    }
}

fn launch(entry: &Map<String, Value>) -> Result<Launch, String> {
    Ok(Launch {
        kind: text(entry, "type")?,
        command: text(entry, "command")?,
        args: list(entry, "args")?,
        env: texts(entry, "env")?,
        cwd: text(entry, "cwd")?,
        url: text(entry, "url")?,
        headers: texts(entry, "headers")?,
        env_file: text(entry, "envFile")?,
        headers_helper: text(entry, "headersHelper")?,
    })
}

fn text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("its `{key}` is not a text")),
    }
}

fn list(entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("its `{key}` is not a list of texts");
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(values)) => values
            .iter()
            .map(|value| scalar(value).ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn texts(entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong = || format!("its `{key}` is not an object of texts");
    match entry.get(key) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(values)) => values
            .iter()
            .map(|(name, value)| Ok((name.clone(), scalar(value).ok_or_else(wrong)?)))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// Ports are often written as numbers.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_are_read_and_unknown_keys_are_tolerated() {
        let text = r#"{"inputs": [], "servers": {
            "one": {"command": "node", "args": ["x.js", 7], "env": {"A": "1"}, "gallery": true},
            "two": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "y"}},
            "off": {"command": "x", "disabled": true}}}"#;
        let found = parse(text, "servers").unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].launch.args, ["x.js", "7"]);
        assert_eq!(
            found[1].launch.url.as_deref(),
            Some("https://example.org/mcp")
        );
        assert!(!found[2].enabled);
        assert!(parse(text, "mcpServers").unwrap().is_empty());
    }

    #[test]
    fn a_broken_entry_does_not_hide_the_others() {
        let text = r#"{"mcpServers": {"bad": 1, "worse": {"command": ["a"]}, "helped": {"url": "x", "headersHelper": 1},
            "good": {"command": "node"}}}"#;
        let found = parse(text, "mcpServers").unwrap();
        let problems: Vec<bool> = found
            .iter()
            .map(|server| server.problem.is_some())
            .collect();
        assert_eq!(problems, [true, true, true, false]);
    }

    #[test]
    fn comments_and_last_commas_are_read() {
        let text = "{\n  // mine\n  \"servers\": {\n    /* one */ \"a\": { \"command\": \"x\", \"args\": [\"//y\",], },\n  },\n}\n";
        let found = parse(text, "servers").unwrap();
        assert_eq!(found[0].launch.args, ["//y"]);
    }

    #[test]
    fn a_broken_file_says_so() {
        assert!(parse("{", "servers").unwrap_err().contains("not JSON"));
        assert!(
            parse(r#"{"servers": []}"#, "servers")
                .unwrap_err()
                .contains("not an object")
        );
    }
}
