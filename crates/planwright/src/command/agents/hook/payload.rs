//! What a client sends to a hook, read strictly: what is not understood is not let through.

use planwright_core::json::parse_strict;
use planwright_core::policy::{AgentClient, ClientTool};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Larger payloads are not read.
const MAX_BYTES: u64 = 16 << 20;

/// One question of a client.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) client: AgentClient,
    fields: Map<String, Value>,
}

impl Payload {
    /// Reads everything the client sends.
    pub(super) fn read(from: impl Read, client: AgentClient) -> Result<Self, String> {
        let mut text = Vec::new();
        from.take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| format!("the question of the client cannot be read: {error}"))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!(
                "the question of the client is larger than {} MiB",
                MAX_BYTES >> 20
            ));
        }
        let value = parse_strict(&text).map_err(|error| {
            format!("the question of the client is not JSON: {}", error.message)
        })?;
        match value {
            Value::Object(fields) => Ok(Self { client, fields }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err("the question of the client is not a JSON object".to_owned()),
        }
    }

    /// The event that is asked about. It has to be one of these.
    pub(super) fn event(&self, known: &[&str]) -> Result<&str, String> {
        let key = match self.client {
            AgentClient::Goose => "event",
            AgentClient::ClaudeCode
            | AgentClient::Codex
            | AgentClient::Gemini
            | AgentClient::Cursor
            | AgentClient::Pi => "hook_event_name",
        };
        let name = self.text(key)?;
        if known.contains(&name) {
            return Ok(name);
        }
        Err(format!(
            "the event `{name}` is not one this hook answers ({})",
            known.join(", ")
        ))
    }

    /// A text that has to be there.
    pub(super) fn text(&self, key: &str) -> Result<&str, String> {
        match self.fields.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            Some(Value::String(_)) => Err(format!("`{key}` is empty")),
            Some(_) => Err(format!("`{key}` is not a text")),
            None => Err(format!("`{key}` is missing")),
        }
    }

    /// The arguments of the call.
    pub(super) fn input(&self) -> Result<Value, String> {
        match self.fields.get("tool_input") {
            Some(input @ Value::Object(_)) => Ok(input.clone()),
            // One client sends the arguments of MCP tools as a text.
            Some(Value::String(text)) if self.client == AgentClient::Cursor => {
                match parse_strict(text.as_bytes()) {
                    Ok(input @ Value::Object(_)) => Ok(input),
                    Ok(_) => Err("`tool_input` is not a JSON object".to_owned()),
                    Err(error) => Err(format!("`tool_input` is not JSON: {}", error.message)),
                }
            }
            Some(_) => Err("`tool_input` is not an object".to_owned()),
            None => Err("`tool_input` is missing".to_owned()),
        }
    }

    /// The tool that is to be called, with its arguments.
    pub(super) fn call(&self, event: &str) -> Result<(ClientTool, Value), String> {
        if event == "beforeShellExecution" {
            let args = json!({ "command": self.text("command")? });
            let tool = ClientTool::parse(self.client, "Shell");
            return tool
                .map(|tool| (tool, args))
                .map_err(|error| error.to_string());
        }
        let name = self.text("tool_name")?;
        let tool = if event == "beforeMCPExecution" && !name.starts_with("MCP:") {
            ClientTool::of_unknown_server(name)
        } else {
            ClientTool::parse(self.client, name)
        };
        Ok((tool.map_err(|error| error.to_string())?, self.input()?))
    }

    /// The folder the agent works in: the project as the client's environment names it, which no
    /// agent changes by going elsewhere; else what the client says.
    pub(super) fn folder(&self) -> Result<PathBuf, String> {
        let variable = match self.client {
            AgentClient::ClaudeCode => Some("CLAUDE_PROJECT_DIR"),
            AgentClient::Gemini => Some("GEMINI_PROJECT_DIR"),
            AgentClient::Cursor => Some("CURSOR_PROJECT_DIR"),
            AgentClient::Codex | AgentClient::Goose | AgentClient::Pi => None,
        };
        let named = variable
            .and_then(std::env::var_os)
            .filter(|path| !path.is_empty());
        if let Some(path) = named {
            return absolute(Path::new(&path));
        }
        for key in ["cwd", "working_dir"] {
            match self.fields.get(key) {
                None => {}
                Some(Value::String(path)) => return absolute(Path::new(path)),
                Some(_) => return Err(format!("`{key}` is not a text")),
            }
        }
        match self.fields.get("workspace_roots") {
            None => {}
            Some(Value::Array(roots)) => match roots.first() {
                None => {}
                Some(Value::String(path)) => return absolute(Path::new(path)),
                Some(_) => return Err("`workspace_roots` has something else than texts".to_owned()),
            },
            Some(_) => return Err("`workspace_roots` is not a list".to_owned()),
        }
        std::env::current_dir()
            .map_err(|error| format!("the current directory cannot be used: {error}"))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    if path.is_absolute() && path.is_dir() {
        return Ok(path.to_owned());
    }
    Err(format!(
        "the agent's folder {} is not a directory",
        path.display()
    ))
}
