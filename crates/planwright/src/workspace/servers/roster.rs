//! All servers that any file names, and how each of them stands.

use super::expand::Scope;
use super::files::{self, Foreign};
use super::launch::{Launch, check_name, is_reserved};
use crate::config::file::{self, Config};
use crate::trust::{Trust, TrustState, home, is_inside};
use planwright_adapters::mcp::{ServerSpec, takes_sign_in};
use planwright_core::digest::Digest;
use serde_json::json;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The file that names a server, in the order in which files win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A file that the user named on the command line: trusted, because the user named it.
    Named,
    /// `planwright.toml` of the workspace.
    Workspace,
    /// `planwright.toml` of the user: trusted, because the user wrote it.
    User,
    /// `.mcp.json` of the workspace.
    McpJson,
    /// `.vscode/mcp.json` of the workspace.
    VsCode,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "the file of --servers",
            Self::Workspace => file::FILE,
            Self::User => "the user's planwright.toml",
            Self::McpJson => ".mcp.json",
            Self::VsCode => ".vscode/mcp.json",
        })
    }
}

/// A server as one file names it.
#[derive(Debug)]
pub(crate) struct ListedServer {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) launch: Launch,
    pub(crate) digest: Digest,
    pub(crate) trusted: TrustState,
    pub(crate) enabled: bool,
    shadowed_by: Option<Source>,
    /// Its own word about its tools is taken.
    believed: bool,
    pub(crate) spec: Result<ServerSpec, String>,
}

/// What stands between a server and its use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ServerReadiness<'a> {
    Ready(&'a ServerSpec),
    Untrusted,
    /// It was trusted with another launch line.
    Changed,
    Disabled,
    Shadowed(Source),
    Unusable(&'a str),
}

impl ServerReadiness<'_> {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Disabled => "disabled",
            Self::Shadowed(_) => "shadowed",
            Self::Unusable(_) => "unusable",
        }
    }
}

impl ListedServer {
    pub(crate) fn readiness(&self) -> ServerReadiness<'_> {
        match (&self.spec, self.shadowed_by, self.trusted) {
            (_, Some(source), _) => ServerReadiness::Shadowed(source),
            _ if !self.enabled => ServerReadiness::Disabled,
            (Err(problem), None, _) => ServerReadiness::Unusable(problem),
            (Ok(_), None, TrustState::Unknown) => ServerReadiness::Untrusted,
            (Ok(_), None, TrustState::Changed) => ServerReadiness::Changed,
            (Ok(spec), None, TrustState::Trusted) => ServerReadiness::Ready(spec),
        }
    }

    /// Returns whether what it says about its own tools is taken at its word.
    pub(crate) fn is_believed(&self) -> bool {
        self.believed
    }

    /// Returns why it cannot be used, and what helps; nothing if it can.
    pub(crate) fn obstacle(&self) -> Option<(String, Option<String>)> {
        let Self { name, source, .. } = self;
        let trust = Some("To review what it runs and trust it: planwright trust".to_owned());
        Some(match self.readiness() {
            ServerReadiness::Ready(_) => return None,
            ServerReadiness::Untrusted => (
                format!("the server `{name}` of {source} is not trusted"),
                trust,
            ),
            ServerReadiness::Changed => (
                format!(
                    "the server `{name}` of {source} is not what you trusted: its launch line changed"
                ),
                trust,
            ),
            ServerReadiness::Disabled => (
                format!("the server `{name}` is turned off"),
                Some(format!(
                    "set `enabled = true` in [servers.{name}] of {}",
                    file::FILE
                )),
            ),
            ServerReadiness::Shadowed(by) => (
                format!("the server `{name}` of {source} is hidden by that of {by}"),
                None,
            ),
            ServerReadiness::Unusable(problem) => (
                format!("the server `{name}` of {source} cannot be used: {problem}"),
                None,
            ),
        })
    }
}

/// All servers that any file names.
#[derive(Debug)]
pub(crate) struct Roster {
    /// By name; of one name, the one that counts is first.
    pub(crate) servers: Vec<ListedServer>,
    /// What is wrong with the files themselves.
    pub(crate) problems: Vec<String>,
    pub(crate) trust: Trust,
}

impl Roster {
    pub(crate) fn read(workspace: &Path, config: &Config, trust_project: bool) -> Self {
        let trust = Trust::read(workspace);
        let mut problems = Vec::new();
        let written = gather(workspace, config, &mut problems);
        let variable = |name: &str| std::env::var(name).ok();
        let scope = Scope {
            variable: &variable,
            workspace,
        };
        let user_is_outside = !home().is_some_and(|home| is_inside(&home, workspace));
        let mut servers: Vec<ListedServer> = Vec::new();
        for (
            source,
            Foreign {
                name,
                launch,
                enabled,
                problem,
            },
        ) in written
        {
            let shadowed_by = servers
                .iter()
                .find(|server| server.name == name)
                .map(|server| server.source);
            let believed = is_believed(config, &name);
            let written = launch.digest_with_files(&scope);
            let digest = if believed {
                written
            } else {
                // Trust in a server that is not believed is less than trust in one that is.
                Digest::of_json(&json!([written, "annotations are not believed"]))
            };
            let believed_by_place =
                source == Source::Named || source == Source::User && user_is_outside;
            let trusted = if believed_by_place || trust_project {
                TrustState::Trusted
            } else {
                trust.trust_state(&name, &digest)
            };
            let spec = match problem {
                Some(problem) => Err(problem),
                None => specify(&name, &launch, config, &scope),
            };
            let spec = spec.map(|spec| ServerSpec {
                trusted_as: Some(digest),
                ..spec
            });
            let enabled = enabled
                && config
                    .server(&name)
                    .all(|table| table.enabled != Some(false));
            servers.push(ListedServer {
                name,
                source,
                launch,
                digest,
                trusted,
                enabled,
                shadowed_by,
                believed,
                spec,
            });
        }
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        if servers
            .iter()
            .any(|server| server.trusted != TrustState::Trusted)
        {
            problems.extend(trust.problem().map(str::to_owned));
        }
        Self {
            servers,
            problems,
            trust,
        }
    }

    /// The server that counts under this name.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedServer> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// The servers that count, each once.
    pub(crate) fn effective(&self) -> impl Iterator<Item = &ListedServer> {
        self.servers
            .iter()
            .filter(|server| server.shadowed_by.is_none())
    }

    /// What may be started.
    pub(crate) fn ready(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers
            .iter()
            .filter_map(|server| match server.readiness() {
                ServerReadiness::Ready(spec) => Some(spec),
                ServerReadiness::Untrusted
                | ServerReadiness::Changed
                | ServerReadiness::Disabled
                | ServerReadiness::Shadowed(_)
                | ServerReadiness::Unusable(_) => None,
            })
    }

    /// Servers that files of the workspace name and that could be used if the user trusts them.
    pub(crate) fn project_servers(&self) -> impl Iterator<Item = &ListedServer> {
        self.effective().filter(|server| {
            let by_user = matches!(server.source, Source::Named | Source::User);
            let own = by_user && server.trusted == TrustState::Trusted;
            !own && server.enabled && server.launch.check().is_ok()
        })
    }

    /// Servers that only wait for the user's word.
    pub(crate) fn untrusted_servers(&self) -> impl Iterator<Item = &ListedServer> {
        let waits = |server: &&ListedServer| {
            matches!(
                server.readiness(),
                ServerReadiness::Untrusted | ServerReadiness::Changed
            )
        };
        self.servers.iter().filter(waits)
    }
}

/// Every server of every file, those that win first.
fn gather(workspace: &Path, config: &Config, problems: &mut Vec<String>) -> Vec<(Source, Foreign)> {
    let mut written = Vec::new();
    let mut settings_only = Vec::new();
    if let Some(path) = config.servers_file() {
        match files::read(path, "mcpServers") {
            Ok(found) => written.extend(found.into_iter().map(|server| (Source::Named, server))),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    for (source, tables) in [
        (Source::Workspace, config.servers()),
        (Source::User, config.user_servers()),
    ] {
        for (name, table) in tables {
            let enabled = table.enabled != Some(false);
            match table.launch() {
                Some(launch) => {
                    written.push((
                        source,
                        Foreign {
                            name: name.clone(),
                            launch,
                            enabled,
                            problem: None,
                        },
                    ));
                }
                None if is_reserved(name) => {}
                None => settings_only.push((source, name.clone())),
            }
        }
    }
    for (source, file, key) in [
        (Source::McpJson, ".mcp.json", "mcpServers"),
        (Source::VsCode, ".vscode/mcp.json", "servers"),
    ] {
        match files::read(&workspace.join(file), key) {
            Ok(found) => written.extend(found.into_iter().map(|server| (source, server))),
            Err(problem) => problems.push(format!("{file}: {problem}")),
        }
    }
    for (source, name) in settings_only {
        if !written.iter().any(|(_, server)| server.name == name) {
            let problem = Some(
                "it has neither a `command` nor a `url`, and no other file names it".to_owned(),
            );
            written.push((
                source,
                Foreign {
                    name,
                    launch: Launch::default(),
                    enabled: true,
                    problem,
                },
            ));
        }
    }
    written
}

/// Returns whether a server's word about its tools is taken. One word against it is enough.
fn is_believed(config: &Config, name: &str) -> bool {
    config
        .server(name)
        .all(|table| table.trust_annotations != Some(false))
}

/// Returns whether people sign in to the server by themselves. One word for it is enough: no other file
/// has them share a sign-in.
fn signs_in_personally(config: &Config, spec: &ServerSpec) -> Result<bool, String> {
    let name = &spec.name;
    let mut tables = config.server(name);
    if !tables.any(|table| table.personal_sign_in == Some(true)) {
        return Ok(false);
    }
    match takes_sign_in(spec) {
        true => Ok(true),
        false => Err(
            "`personal_sign_in` is for a server over HTTP that is given no token by its table"
                .to_owned(),
        ),
    }
}

/// The server ready to be started, or why it cannot be.
fn specify(
    name: &str,
    launch: &Launch,
    config: &Config,
    scope: &Scope<'_>,
) -> Result<ServerSpec, String> {
    check_name(name)?;
    if is_reserved(name) {
        return Err("its name belongs to a server that is part of the program".to_owned());
    }
    launch.check()?;
    let mut spec = ServerSpec::new(name, launch.expand(scope)?);
    spec.believed = is_believed(config, name);
    if let Some(seconds) = config
        .server(name)
        .find_map(|table| table.start_timeout_seconds)
    {
        spec.start_timeout = Duration::from_secs(seconds);
    }
    for table in config.server(name) {
        spec.era = spec.era.or(table.era()?);
    }
    spec.streams_events = launch.kind.as_deref() == Some("sse");
    spec.headers_helper.clone_from(&launch.headers_helper);
    if let Some(per_plan) = config.server(name).find_map(|table| table.per_plan) {
        spec.per_plan = per_plan;
    }
    spec.personal_sign_in = signs_in_personally(config, &spec)?;
    if let Some(log) = config.server(name).find_map(|table| table.log_stderr) {
        spec.logs_stderr = log;
    }
    if let Some(connections) = config.server(name).find_map(|table| table.max_connections) {
        spec.max_connections = connections;
    }
    Ok(spec)
}
