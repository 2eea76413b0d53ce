//! `[executors.NAME]`: programs that work on agent steps, and which of them may be started.

use crate::config::file::{Config, FILE};
use crate::exit::Failure;
use crate::trust::{Loosening, Subject, Trust, TrustState};
use planwright_adapters::executor::{AgentKind, AgentOptions, CommandExecutors, ExecutorOptions};
use planwright_adapters::process::Children;
use planwright_core::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One executor as it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutorTable {
    /// The program and its arguments. A coding agent that is known needs none.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// The coding agent that it is. Without a command, the name says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// The model that a coding agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// A coding agent keeps its own tools and settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own_tools: bool,
    /// Variables that it sees, besides PATH, HOME, LANG and TMPDIR.
    #[serde(default)]
    pub(crate) env: Vec<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// Where it starts, relative to the workspace.
    #[serde(default)]
    pub(crate) cwd: Option<PathBuf>,
}

impl ExecutorTable {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout_seconds
            .map_or(ExecutorOptions::DEFAULT_TIMEOUT, Duration::from_secs)
    }

    /// What trust in it is about: what is started, where, and what it sees. Patience needs no
    /// trust.
    fn digest(&self) -> Digest {
        let Self {
            command,
            kind,
            model,
            own_tools,
            env,
            timeout_seconds: _,
            cwd,
        } = self;
        let mut subject = json!({ "command": command, "env": env, "cwd": cwd });
        if kind.is_some() || model.is_some() || *own_tools {
            subject["agent"] = json!({ "kind": kind, "model": model, "ownTools": own_tools });
        }
        Digest::of_json(&subject)
    }

    /// The coding agent that an executor of this name is, if it is one.
    pub(crate) fn agent(&self, name: &str) -> Option<AgentKind> {
        match &self.kind {
            Some(kind) => AgentKind::from_name(kind),
            None if self.command.is_empty() => AgentKind::from_name(name),
            None => None,
        }
    }

    /// The program and its first arguments. A coding agent gets those of each attempt besides.
    pub(crate) fn launch_line(&self, name: &str) -> Vec<String> {
        match self.agent(name) {
            Some(kind) if self.command.is_empty() => vec![kind.as_str().to_owned()],
            Some(_) | None => self.command.clone(),
        }
    }
}

impl ExecutorTable {
    /// What the file makes of it.
    pub(crate) fn loosening(&self, name: &str) -> Loosening {
        let agent = self.agent(name);
        let directory = self.cwd.as_deref().unwrap_or_else(|| Path::new("."));
        let mut loosening = Loosening::new(
            Subject::Executor(name.to_owned()),
            FILE,
            format!("[executors.{name}]"),
            "a program with your rights works on agent steps; what it does besides its tool calls is not recorded",
            &json!(null),
        )
        .part("command", json!(self.launch_line(name)).to_string());
        if agent.is_none() || self.own_tools {
            loosening = loosening.part("directory", directory.display().to_string());
        }
        if let Some(kind) = agent {
            let own = if self.own_tools {
                "with its own tools and settings"
            } else {
                "without tools of its own"
            };
            loosening = loosening.part("coding agent", format!("{}, {own}", kind.as_str()));
        }
        if let Some(model) = &self.model {
            loosening = loosening.part("model", model.clone());
        }
        for variable in &self.env {
            loosening = loosening.part("sees", format!("your variable {variable}"));
        }
        loosening.digest = self.digest();
        loosening
    }
}

/// `[agent]`: what holds for every executor.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentTable {
    pub(crate) scope: ScopeMode,
    /// Variables that show that an agent gives a command, besides those that are known.
    pub(crate) marks: Vec<String>,
}

/// What becomes of a call that is outside a plan's scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeMode {
    /// It is refused.
    #[default]
    Enforce,
    /// It is noted, and a person is asked unless the tool only reads.
    Observe,
}

/// The name under which trust in an executor is kept.
pub(crate) fn trust_name(executor: &str) -> String {
    Subject::Executor(executor.to_owned()).trust_name()
}

/// An executor that a file describes.
#[derive(Debug)]
pub(crate) struct DescribedExecutor {
    pub(crate) name: String,
    pub(crate) table: ExecutorTable,
    /// It is in the user's own file.
    pub(crate) own: bool,
    pub(crate) digest: Digest,
    verdict: TrustState,
}

impl DescribedExecutor {
    /// Returns why it may not be started.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let what = match self.verdict {
            TrustState::Trusted => return None,
            TrustState::Changed => "is not what you trusted: its launch line changed",
            TrustState::Unknown => "is not trusted",
        };
        Some(format!("the executor `{}` of {FILE} {what}", self.name))
    }

    /// Which file describes it.
    pub(crate) fn source(&self) -> &'static str {
        if self.own { "your own file" } else { FILE }
    }

    /// The launch line, for people.
    pub(crate) fn line(&self) -> String {
        self.table.launch_line(&self.name).join(" ")
    }
}

/// Everything that files describe. Where both describe one, the user's own file counts.
pub(crate) fn read_executors(
    config: &Config,
    workspace: &Path,
    trust_project: bool,
) -> Vec<DescribedExecutor> {
    let trust = (!config.executors().is_empty() && !trust_project).then(|| Trust::read(workspace));
    let project = config
        .executors()
        .iter()
        .map(|(name, table)| (name, table, false));
    let own = config
        .user_executors()
        .iter()
        .map(|(name, table)| (name, table, true));
    let describe = |(name, table, own): (&String, &ExecutorTable, bool)| {
        let digest = table.digest();
        let verdict = match trust.as_ref().filter(|_| !own) {
            Some(trust) => trust.trust_state(&trust_name(name), &digest),
            None => TrustState::Trusted,
        };
        (
            name.clone(),
            DescribedExecutor {
                name: name.clone(),
                table: table.clone(),
                own,
                digest,
                verdict,
            },
        )
    };
    let all: BTreeMap<String, DescribedExecutor> = project.chain(own).map(describe).collect();
    all.into_values().collect()
}

/// The executors that may be started: those of the user's own file, and those of the workspace's
/// that the user trusts.
pub(crate) fn usable(
    described: Vec<DescribedExecutor>,
    workspace: &Path,
    children: &Children,
) -> CommandExecutors {
    let ready = described
        .into_iter()
        .filter(|executor| executor.verdict == TrustState::Trusted);
    let options = ready.map(|executor| {
        let options = executor_options(&executor.name, executor.table, workspace);
        (executor.name, options)
    });
    CommandExecutors::new(options.collect(), children.clone())
}

fn executor_options(name: &str, table: ExecutorTable, workspace: &Path) -> ExecutorOptions {
    let agent = table.agent(name).map(|kind| AgentOptions {
        kind,
        model: table.model.clone(),
        own_tools: table.own_tools,
        bridge: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("planwright")),
        places: attempt_places(),
    });
    ExecutorOptions {
        timeout: table.timeout(),
        command: table.launch_line(name),
        cwd: table
            .cwd
            .map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
        env: table.env,
        agent,
    }
}

/// Where attempts of coding agents keep their configuration: a folder of the user's, because others
/// could leave instructions in one that everybody can write.
fn attempt_places() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("planwright/attempts"))
}

/// An executor without a program could only fail later.
pub(crate) fn check(file: &str, tables: &BTreeMap<String, ExecutorTable>) -> Result<(), Failure> {
    for (name, table) in tables {
        check_agent(file, name, table)?;
        let line = table.launch_line(name);
        let program = line.first();
        if program.is_none_or(|program| program.trim().is_empty()) {
            let hint =
                format!("write command = [\"program\", \"argument\"] under [executors.{name}]");
            return Err(
                Failure::usage(format!("{file}: the executor `{name}` has no command")).hint(hint),
            );
        }
        if table.timeout_seconds == Some(0) {
            return Err(Failure::usage(format!(
                "{FILE}: a timeout of 0 seconds lets `{name}` finish nothing"
            )));
        }
    }
    Ok(())
}

/// What is said about a coding agent has to be about one.
fn check_agent(file: &str, name: &str, table: &ExecutorTable) -> Result<(), Failure> {
    let known = || AgentKind::ALL.map(AgentKind::as_str).join(", ");
    if let Some(kind) = &table.kind
        && AgentKind::from_name(kind).is_none()
    {
        let problem =
            format!("{file}: `{kind}` of [executors.{name}] is no coding agent known here");
        let hint = format!("kind is one of {}; others need only a command", known());
        return Err(Failure::usage(problem).hint(hint));
    }
    if table.agent(name).is_none() {
        let set = [
            ("model", table.model.is_some()),
            ("own_tools", table.own_tools),
        ];
        if let Some((key, _)) = set.into_iter().find(|(_, set)| *set) {
            let problem = format!("{file}: {key} of [executors.{name}] is for coding agents");
            let hint = format!("say which it is: kind = one of {}", known());
            return Err(Failure::usage(problem).hint(hint));
        }
    } else if table.cwd.is_some() && !table.own_tools {
        let problem = format!(
            "{file}: cwd of [executors.{name}] has no use: without tools of its own the agent sees no directory"
        );
        let hint = "remove cwd, or let it keep its tools with own_tools = true";
        return Err(Failure::usage(problem).hint(hint));
    }
    Ok(())
}
