//! `[executors.NAME]`: programs that work on agent steps, and which of them may be started.

use crate::config::file::{Config, FILE};
use crate::exit::Failure;
use crate::trust::{Loosening, Subject, Trust, TrustState};
use planwright_adapters::executor::{CommandExecutors, ExecutorOptions};
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
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
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
            env,
            timeout_seconds: _,
            cwd,
        } = self;
        Digest::of_json(&json!({ "command": command, "env": env, "cwd": cwd }))
    }
}

impl ExecutorTable {
    /// What the file makes of it.
    pub(crate) fn loosening(&self, name: &str) -> Loosening {
        let directory = self.cwd.as_deref().unwrap_or_else(|| Path::new("."));
        let mut loosening = Loosening::new(
            Subject::Executor(name.to_owned()),
            FILE,
            format!("[executors.{name}]"),
            "a program with your rights works on agent steps; what it does besides its tool calls is not recorded",
            &json!(null),
        )
        .part("command", json!(self.command).to_string())
        .part("directory", directory.display().to_string());
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
        self.table.command.join(" ")
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
    let options = |table: ExecutorTable| ExecutorOptions {
        timeout: table.timeout(),
        cwd: table
            .cwd
            .map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
        command: table.command,
        env: table.env,
    };
    let ready = described
        .into_iter()
        .filter(|executor| executor.verdict == TrustState::Trusted);
    CommandExecutors::new(
        ready
            .map(|executor| (executor.name, options(executor.table)))
            .collect(),
        children.clone(),
    )
}

/// An executor without a program could only fail later.
pub(crate) fn check(file: &str, tables: &BTreeMap<String, ExecutorTable>) -> Result<(), Failure> {
    for (name, table) in tables {
        if table
            .command
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
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
