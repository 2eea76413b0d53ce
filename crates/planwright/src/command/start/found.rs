//! What is found on this machine: models that could be asked, and servers of other programs.

use crate::terminal::printer::line;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A model that could be asked.
#[derive(Debug)]
pub(super) struct FoundModel {
    pub(super) name: String,
    /// How it was found.
    pub(super) origin: String,
}

impl FoundModel {
    pub(super) fn new(name: &str, origin: &str) -> Self {
        Self {
            name: name.to_owned(),
            origin: origin.to_owned(),
        }
    }
}

/// The variable of a provider's key, and a model of it to begin with.
const BY_KEY: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
    ("OPENAI_API_KEY", "openai/gpt-5-mini"),
    ("GEMINI_API_KEY", "gemini/gemini-2.5-flash"),
    ("OPENROUTER_API_KEY", "openrouter/openai/gpt-5-mini"),
];

/// The models that the environment has keys for, then those that Ollama has on this machine.
pub(super) fn find_models() -> Vec<FoundModel> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let keyed = BY_KEY
        .iter()
        .filter(|(key, _)| is_set(key))
        .map(|(key, model)| FoundModel::new(model, &format!("{key} is set")));
    keyed.chain(find_ollama()).collect()
}

/// An Ollama that does not answer at once is not there.
const PATIENCE: Duration = Duration::from_millis(300);
/// More of its list is not read.
const MAX_LIST: u64 = 256 << 10;
/// More of its models are not offered.
const MAX_MODELS: usize = 5;

fn find_ollama() -> Vec<FoundModel> {
    let names = ask_ollama().unwrap_or_default();
    let plain = |name: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
        !name.is_empty() && name.chars().all(is_plain)
    };
    names
        .into_iter()
        .filter(plain)
        .take(MAX_MODELS)
        .map(|name| FoundModel::new(&format!("ollama/{name}"), "Ollama on this machine"))
        .collect()
}

fn ask_ollama() -> Option<Vec<String>> {
    let address = SocketAddr::from(([127, 0, 0, 1], 11434));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream
        .write_all(b"GET /api/tags HTTP/1.0\r\nHost: 127.0.0.1:11434\r\n\r\n")
        .ok()?;
    let mut answer = Vec::new();
    stream.take(MAX_LIST).read_to_end(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer);
    let (_, body) = text.split_once("\r\n\r\n")?;
    let list: Value = serde_json::from_str(body).ok()?;
    let models = list.get("models")?.as_array()?;
    let name = |model: &Value| Some(model.get("name")?.as_str()?.to_owned());
    Some(models.iter().filter_map(name).collect())
}

/// A server that another program's file of the user describes.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) name: String,
    pub(super) origin: String,
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) url: Option<String>,
    /// Names of the variables it is given. Their values stay where they are.
    pub(super) variables: Vec<String>,
}

impl FoundServer {
    /// The server as a table of `planwright.toml`, commented out.
    pub(super) fn as_comment(&self) -> String {
        let text = |value: &str| toml::Value::String(line(value)).to_string();
        let mut lines = vec![
            format!("from {}", line(&self.origin)),
            format!("[servers.{}]", text(&self.name)),
        ];
        lines.extend(
            self.command
                .as_ref()
                .map(|it| format!("command = {}", text(it))),
        );
        if !self.args.is_empty() {
            let args: Vec<String> = self.args.iter().map(|arg| text(arg)).collect();
            lines.push(format!("args = [{}]", args.join(", ")));
        }
        lines.extend(self.url.as_ref().map(|it| format!("url = {}", text(it))));
        if !self.variables.is_empty() {
            let names: Vec<String> = self.variables.iter().map(|name| line(name)).collect();
            lines.push(format!("it is also given {} there", names.join(", ")));
        }
        let commented: Vec<String> = lines.iter().map(|line| format!("# {line}\n")).collect();
        format!("{}#\n", commented.concat())
    }
}

/// The files of other programs in the user's directory, and the key their servers are under.
const FILES: [(&str, &str); 5] = [
    (".claude.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    ("Library/Application Support/Code/User/mcp.json", "servers"),
    (
        "Library/Application Support/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
];

/// Larger files are not read.
const MAX_FILE: u64 = 8 << 20;
/// More servers of one file are not listed.
const MAX_SERVERS: usize = 50;

/// The servers in the files of Claude, Cursor and VS Code in the user's directory. What cannot be
/// read is left out: they are suggestions.
pub(super) fn find_servers() -> Vec<FoundServer> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let mut found: Vec<FoundServer> = Vec::new();
    for (file, key) in FILES {
        for server in servers_in(&home.join(file), &format!("~/{file}"), key) {
            if !found.iter().any(|known| known.name == server.name) {
                found.push(server);
            }
        }
    }
    found
}

fn servers_in(path: &Path, origin: &str, key: &str) -> Vec<FoundServer> {
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    let document: Option<Value> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    let servers = document
        .as_ref()
        .and_then(|document| document.get(key)?.as_object());
    let texts = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let text_of = |entry: &Value, key: &str| entry.get(key)?.as_str().map(str::to_owned);
    // A key in an argument or an address is not carried into a file of the project.
    let bare_url = |url: String| url.split(['?', '@']).next().unwrap_or_default().to_owned();
    let shown = |arg: String| {
        if looks_secret(&arg) {
            "…".to_owned()
        } else {
            arg
        }
    };
    let describe = |(name, entry): (&String, &Value)| FoundServer {
        name: name.clone(),
        origin: origin.to_owned(),
        command: text_of(entry, "command"),
        args: texts(entry.get("args")).into_iter().map(shown).collect(),
        url: text_of(entry, "url").map(bare_url),
        variables: ["env", "headers"]
            .iter()
            .filter_map(|key| entry.get(key)?.as_object())
            .flat_map(|map| map.keys().cloned())
            .collect(),
    };
    servers
        .into_iter()
        .flatten()
        .take(MAX_SERVERS)
        .map(describe)
        .collect()
}

/// Returns whether an argument may hold a key.
fn looks_secret(arg: &str) -> bool {
    const WORDS: [&str; 5] = ["token", "secret", "password", "bearer", "key"];
    let lower = arg.to_ascii_lowercase();
    let named = WORDS.iter().any(|word| lower.contains(word));
    // Long runs of letters and digits are rarely words.
    let random = arg
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| part.len() >= 20 && part.bytes().any(|byte| byte.is_ascii_digit()));
    named || random
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_other_programs_are_read_without_their_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        let text = r#"{"mcpServers": {
            "github": {"command": "npx", "args": ["-y", "server-github", "--token=abc"], "env": {"GITHUB_TOKEN": "hidden"}},
            "docs": {"url": "https://docs.test/mcp?key=hidden"}, "odd": 3}}"#;
        std::fs::write(&path, text).unwrap();
        let found = servers_in(&path, "~/mcp.json", "mcpServers");
        let written: String = found.iter().map(FoundServer::as_comment).collect();
        assert!(
            !written.contains("hidden") && !written.contains("abc"),
            "{written}"
        );
        for words in ["\"server-github\"", "GITHUB_TOKEN", "https://docs.test/mcp"] {
            assert!(written.contains(words), "{words} is not in {written}");
        }
        assert!(servers_in(&folder.path().join("none"), "", "x").is_empty());
    }
}
