//! The tools of this process and those of other processes behind one door.

use super::McpServers;
use crate::toolbox::{BuildToolboxError, Toolbox};
use planwright_core::tool::Catalog;
use planwright_engine::port::{BoxFuture, Call, Outcome, Tools};

/// The in-process tools and the MCP servers together.
#[derive(Debug)]
pub struct AllTools {
    local: Toolbox,
    remote: McpServers,
}

impl AllTools {
    /// Checks that no server's name is taken twice, and that the settings fit the servers connected so far.
    pub fn new(local: Toolbox, remote: McpServers) -> Result<Self, BuildToolboxError> {
        remote.check_settings()?;
        Ok(Self { local, remote })
    }

    pub fn local(&self) -> &Toolbox {
        &self.local
    }

    pub fn remote(&self) -> &McpServers {
        &self.remote
    }
}

impl Tools for AllTools {
    fn catalog(&self) -> Catalog {
        self.local.catalog()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.local.call(call)
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.local.server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.local.serial_writes(server)
    }
}
