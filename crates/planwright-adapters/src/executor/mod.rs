//! Executors that are programs: a coding agent's command line, or a script. Each attempt gets the
//! instruction on its standard input and a gateway to the plan's tools that lives as long as the
//! attempt.

mod client;
mod coding_agent;
mod gateway;
mod lines;
mod process;

pub use client::{CallGatewayError, call_gateway};
pub use coding_agent::{AgentKind, AgentOptions};

use crate::process::Children;
use planwright_engine::port::{BoxFuture, DelegateError, Delegated, Delegation, Executors};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The variable that says where the gateway of an attempt is.
pub const GATEWAY: &str = "PLANWRIGHT_GATEWAY";
/// The variable that holds the token of an attempt.
pub const STEP_TOKEN: &str = "PLANWRIGHT_STEP_TOKEN";

/// One configured executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of this process that it sees, besides a few harmless ones.
    pub env: Vec<String>,
    pub timeout: Duration,
    /// The directory it starts in. That of a coding agent is its own, unless it keeps its tools.
    pub cwd: PathBuf,
    /// The coding agent that it is, if it is one whose options are known.
    pub agent: Option<AgentOptions>,
}

impl ExecutorOptions {
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
}

/// All configured executors.
#[derive(Debug, Clone, Default)]
pub struct CommandExecutors {
    executors: BTreeMap<String, ExecutorOptions>,
    children: Children,
}

impl CommandExecutors {
    pub fn new(executors: BTreeMap<String, ExecutorOptions>, children: Children) -> Self {
        Self {
            executors,
            children,
        }
    }
}

impl Executors for CommandExecutors {
    fn names(&self) -> Vec<String> {
        self.executors.keys().cloned().collect()
    }

    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Delegated> {
        match self.executors.get(&delegation.executor).cloned() {
            Some(options) => Box::pin(process::execute(options, self.children.clone(), delegation)),
            None => {
                let unknown = Err(DelegateError::Unknown(delegation.executor));
                Box::pin(std::future::ready(unknown.into()))
            }
        }
    }
}
