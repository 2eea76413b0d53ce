//! `[executors.NAME]`: programs that work on agent steps, and which of them may be started.

use crate::config::{Config, FILE};
use crate::exit::Failure;
use planwright_adapters::executor::{CommandExecutors, ExecutorOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One executor as it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutorTable {
    /// The program and its arguments.
    command: Vec<String>,
    /// Variables that it sees, besides PATH, HOME, LANG and TMPDIR.
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// Where it starts, relative to the workspace.
    #[serde(default)]
    cwd: Option<PathBuf>,
}

/// `[agent]`: what holds for every executor.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentTable {
    pub(crate) scope: ScopeMode,
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

/// The executors that may be started: those of the user's own file, and those of the workspace's if it is trusted.
pub(crate) fn usable(config: &Config, workspace: &Path, trust_project: bool) -> CommandExecutors {
    let project = config.executors().iter().filter(|_| trust_project);
    let all = project.chain(config.user_executors());
    let options = |table: &ExecutorTable| ExecutorOptions {
        command: table.command.clone(),
        env: table.env.clone(),
        timeout: table.timeout_seconds.map_or(ExecutorOptions::DEFAULT_TIMEOUT, Duration::from_secs),
        cwd: table.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
    };
    let executors: BTreeMap<String, ExecutorOptions> =
        all.map(|(name, table)| (name.clone(), options(table))).collect();
    CommandExecutors::new(executors)
}

/// An executor without a program could only fail later.
pub(crate) fn check(file: &str, tables: &BTreeMap<String, ExecutorTable>) -> Result<(), Failure> {
    for (name, table) in tables {
        if table.command.first().is_none_or(|program| program.trim().is_empty()) {
            let hint = format!("write command = [\"program\", \"argument\"] under [executors.{name}]");
            return Err(Failure::usage(format!("{file}: the executor `{name}` has no command")).hint(hint));
        }
        if table.timeout_seconds == Some(0) {
            return Err(Failure::usage(format!(
                "{FILE}: a timeout of 0 seconds lets `{name}` finish nothing"
            )));
        }
    }
    Ok(())
}
