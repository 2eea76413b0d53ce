//! The clients: which files configure them, and what belongs into each.

use super::edit::Edit;
use crate::exit::Failure;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The skill, as it is installed.
pub(super) const SKILL: &str = include_str!("../../../../../../skills/planwright/SKILL.md");
/// The extension of pi, as it is installed.
const PI_EXTENSION: &str = include_str!("../../../../../../integrations/pi/planwright.ts");

/// A client that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    Gemini,
    Goose,
    Pi,
}

/// Whose configuration is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scope {
    /// Yours, in your home.
    User,
    /// That of the project, in its folder.
    Project,
}

/// Where things are on this machine.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) home: PathBuf,
    pub(super) project: PathBuf,
    pub(super) scope: Scope,
}

/// The file with a client's servers, and how they are written there.
#[derive(Debug, Clone)]
pub(super) struct ServerFile {
    pub(super) path: PathBuf,
    pub(super) form: ServerForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerForm {
    /// JSON, with the servers below this key.
    Json(&'static str),
    /// `[mcp_servers.NAME]`.
    Toml,
    /// `extensions:`.
    Yaml,
}

/// The name under which clients know this program.
pub(super) const NAME: &str = "planwright";
/// The mapping of servers in YAML.
pub(super) const YAML_SERVERS: &str = "extensions";
/// The table of servers in TOML.
pub(super) const TOML_SERVERS: &str = "mcp_servers";

impl Client {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Pi => "pi",
        }
    }

    /// The file that names the client's servers, if it has one.
    pub(super) fn server_file(self, places: &Places) -> Result<Option<ServerFile>, Failure> {
        let file = |path: PathBuf, form| Ok(Some(ServerFile { path, form }));
        let json = ServerForm::Json("mcpServers");
        let Places { home, project, .. } = places;
        match (self, places.scope) {
            (Self::ClaudeCode, Scope::User) => {
                let path = variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone());
                file(path.join(".claude.json"), json)
            }
            (Self::ClaudeCode, Scope::Project) => file(project.join(".mcp.json"), json),
            (Self::ClaudeDesktop, Scope::User) => {
                let path = places
                    .applications()
                    .join("Claude/claude_desktop_config.json");
                file(path, json)
            }
            (Self::ClaudeDesktop, Scope::Project) => Err(Failure::usage(
                "Claude Desktop has no configuration per project",
            )
            .hint("leave --scope out")),
            (Self::Cursor, Scope::User) => file(home.join(".cursor/mcp.json"), json),
            (Self::Cursor, Scope::Project) => file(project.join(".cursor/mcp.json"), json),
            (Self::Vscode, Scope::User) => {
                let path = places.applications().join("Code/User/mcp.json");
                file(path, ServerForm::Json("servers"))
            }
            (Self::Vscode, Scope::Project) => file(
                project.join(".vscode/mcp.json"),
                ServerForm::Json("servers"),
            ),
            (Self::Codex, scope) => {
                let folder = codex_folder(places, scope);
                file(folder.join("config.toml"), ServerForm::Toml)
            }
            (Self::Gemini, Scope::User) => file(home.join(".gemini/settings.json"), json),
            (Self::Gemini, Scope::Project) => file(project.join(".gemini/settings.json"), json),
            (Self::Goose, Scope::User) => {
                file(places.config().join("goose/config.yaml"), ServerForm::Yaml)
            }
            (Self::Goose, Scope::Project) | (Self::Pi, _) => Ok(None),
        }
    }

    /// The entry that makes this program a server of the client.
    pub(super) fn server_entry(self, file: &ServerFile, program: &str, gateway: bool) -> Edit {
        let args: Vec<&str> = match gateway {
            true => vec!["mcp", "--gateway"],
            false => vec!["mcp"],
        };
        match file.form {
            ServerForm::Json(key) => {
                let mut entry = json!({ "command": program, "args": args });
                if matches!(self, Self::ClaudeCode | Self::Vscode) {
                    entry = json!({ "type": "stdio", "command": program, "args": args });
                }
                Edit::JsonMember {
                    path: vec![key.to_owned()],
                    key: NAME.to_owned(),
                    value: entry,
                }
            }
            ServerForm::Toml => Edit::TomlTable {
                above: TOML_SERVERS.to_owned(),
                name: NAME.to_owned(),
                value: json!({ "command": program, "args": args }),
            },
            ServerForm::Yaml => Edit::YamlEntry {
                above: YAML_SERVERS.to_owned(),
                name: NAME.to_owned(),
                block: vec![
                    "enabled: true".to_owned(),
                    format!("name: {NAME}"),
                    "type: stdio".to_owned(),
                    format!("cmd: {}", json!(program)),
                    format!("args: {}", json!(args)),
                    "timeout: 300".to_owned(),
                ],
            },
        }
    }

    /// The hooks, by file.
    pub(super) fn hooks(self, places: &Places, program: &str) -> Vec<(PathBuf, Vec<Edit>)> {
        let base = places.base();
        let command = |event: &str| hook_command(program, event, self);
        let group = |matcher: Option<&str>, event: &str, timeout: u64| {
            let hook = json!({ "type": "command", "command": command(event), "timeout": timeout });
            match matcher {
                Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
                None => json!({ "hooks": [hook] }),
            }
        };
        let hook = |event: &str, value: Value| Edit::JsonHook {
            path: vec!["hooks".to_owned(), event.to_owned()],
            value,
        };
        match self {
            Self::ClaudeCode => {
                let folder = match places.scope {
                    Scope::User => variable("CLAUDE_CONFIG_DIR"),
                    Scope::Project => None,
                };
                let folder = folder.unwrap_or_else(|| base.join(".claude"));
                let asked = "mcp__.*|Bash|Write|Edit|NotebookEdit";
                let edits = vec![
                    hook("PreToolUse", group(Some("*"), "pre-tool-use", 20)),
                    hook(
                        "PermissionRequest",
                        group(Some("ExitPlanMode"), "exit-plan-mode", 600),
                    ),
                    hook(
                        "PermissionRequest",
                        group(Some(asked), "permission-request", 20),
                    ),
                    hook("SessionStart", group(None, "session-start", 20)),
                ];
                vec![(folder.join("settings.json"), edits)]
            }
            Self::Codex => {
                let folder = codex_folder(places, places.scope);
                let edits = vec![
                    hook("PreToolUse", group(Some(".*"), "pre-tool-use", 20)),
                    hook(
                        "PermissionRequest",
                        group(Some(".*"), "permission-request", 20),
                    ),
                    hook("SessionStart", group(None, "session-start", 20)),
                ];
                vec![(folder.join("hooks.json"), edits)]
            }
            Self::Gemini => {
                // It counts in milliseconds.
                let edits = vec![
                    hook("BeforeTool", group(Some(".*"), "pre-tool-use", 20_000)),
                    hook("SessionStart", group(None, "session-start", 20_000)),
                ];
                vec![(base.join(".gemini/settings.json"), edits)]
            }
            Self::Cursor => {
                let entry = |event: &str| json!({ "command": command(event), "failClosed": true });
                let mut others = entry("pre-tool-use");
                others["matcher"] = json!("Write|Delete|Read|Grep|Task");
                let version = Edit::JsonMember {
                    path: Vec::new(),
                    key: "version".to_owned(),
                    value: json!(1),
                };
                let edits = vec![
                    version,
                    hook("beforeShellExecution", entry("pre-tool-use")),
                    hook("beforeMCPExecution", entry("pre-tool-use")),
                    hook("preToolUse", others),
                    hook(
                        "sessionStart",
                        json!({ "command": command("session-start") }),
                    ),
                ];
                vec![(base.join(".cursor/hooks.json"), edits)]
            }
            Self::Goose => {
                let plugin = base.join(".agents/plugins/planwright");
                let whole = |value: Value| Edit::Whole {
                    text: format!("{value:#}\n"),
                };
                let manifest = json!({
                    "name": NAME,
                    "version": env!("CARGO_PKG_VERSION"),
                    "description": "Plans people can trust: the policy decides about every call",
                });
                let hooks = json!({ "hooks": { "PreToolUse": [{ "hooks": [{
                    "type": "command", "command": command("pre-tool-use"), "timeout": 20,
                    "on_failure": "block",
                }] }] } });
                vec![
                    (plugin.join("plugin.json"), vec![whole(manifest)]),
                    (plugin.join("hooks/hooks.json"), vec![whole(hooks)]),
                ]
            }
            Self::Pi => {
                let folder = match places.scope {
                    Scope::User => base.join(".pi/agent/extensions"),
                    Scope::Project => base.join(".pi/extensions"),
                };
                let text = PI_EXTENSION.to_owned();
                vec![(folder.join("planwright.ts"), vec![Edit::Whole { text }])]
            }
            Self::ClaudeDesktop | Self::Vscode => Vec::new(),
        }
    }

    /// The file of the skill, if the client knows skills.
    pub(super) fn skill(self, places: &Places) -> Option<PathBuf> {
        let folder = match (self, places.scope) {
            (Self::ClaudeDesktop, _) => return None,
            (Self::ClaudeCode, Scope::User) => variable("CLAUDE_CONFIG_DIR")
                .unwrap_or_else(|| places.home.join(".claude"))
                .join("skills"),
            (Self::ClaudeCode, Scope::Project) => places.project.join(".claude/skills"),
            (Self::Cursor, _) => places.base().join(".cursor/skills"),
            (Self::Vscode, Scope::User) => places.home.join(".copilot/skills"),
            (Self::Codex, Scope::User) => codex_folder(places, Scope::User).join("skills"),
            (Self::Gemini, _) => places.base().join(".gemini/skills"),
            (Self::Goose, Scope::User) => places.config().join("goose/skills"),
            (Self::Pi, Scope::User) => places.home.join(".pi/agent/skills"),
            (Self::Pi, Scope::Project) => places.project.join(".pi/skills"),
            (Self::Vscode | Self::Codex | Self::Goose, Scope::Project) => {
                places.project.join(".agents/skills")
            }
        };
        Some(folder.join("planwright/SKILL.md"))
    }
}

impl Places {
    /// The home, or the project.
    pub(super) fn base(&self) -> &Path {
        match self.scope {
            Scope::User => &self.home,
            Scope::Project => &self.project,
        }
    }

    fn config(&self) -> PathBuf {
        variable("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"))
    }

    /// Where desktop programs keep their settings.
    fn applications(&self) -> PathBuf {
        if cfg!(target_os = "macos") {
            self.home.join("Library/Application Support")
        } else {
            self.config()
        }
    }
}

fn codex_folder(places: &Places, scope: Scope) -> PathBuf {
    match scope {
        Scope::User => variable("CODEX_HOME").unwrap_or_else(|| places.home.join(".codex")),
        Scope::Project => places.project.join(".codex"),
    }
}

/// A directory that the environment names.
fn variable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

/// The line that a client's shell runs. A program that is missing, crashes or is killed blocks too.
fn hook_command(program: &str, event: &str, client: Client) -> String {
    let client = match client {
        Client::ClaudeCode => String::new(),
        other => format!(" --client {}", other.as_str()),
    };
    format!("{} hook {event}{client} || exit 2", quote(program))
}

/// A word for the shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
