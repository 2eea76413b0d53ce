//! The tools of this process and those of other processes behind one door.

use super::McpServers;
use crate::toolbox::{BuildToolboxError, Toolbox};
use planwright_core::id::RunId;
use planwright_core::tool::Catalog;
use planwright_engine::port::{BoxFuture, Call, Outcome, Tools};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The in-process tools and the MCP servers together.
#[derive(Debug)]
pub struct AllTools {
    local: Toolbox,
    remote: McpServers,
    /// Whose tools are remote.
    servers: BTreeSet<String>,
    /// All tools, with the number of changes up to which that is true: it is asked for with every
    /// call.
    catalog: Mutex<(u64, Catalog)>,
}

impl AllTools {
    /// Checks that no server's name is taken twice, and that the settings fit the servers connected
    /// so far.
    pub fn new(local: Toolbox, remote: McpServers) -> Result<Self, BuildToolboxError> {
        remote.check_settings()?;
        let servers: BTreeSet<String> = remote.names().map(str::to_owned).collect();
        let catalog = local.catalog();
        let disabled = local.disabled_tools();
        let mut local_names = catalog.iter().map(|tool| tool.name.server.as_str()).chain(
            disabled
                .iter()
                .filter_map(|(tool, _)| tool.split('.').next()),
        );
        match local_names.find(|name| servers.contains(*name)) {
            Some(twice) => Err(BuildToolboxError::DuplicateServer(twice.to_owned())),
            None => {
                let merged = Mutex::new((u64::MAX, Catalog::default()));
                Ok(Self {
                    local,
                    remote,
                    servers,
                    catalog: merged,
                })
            }
        }
    }

    pub fn local(&self) -> &Toolbox {
        &self.local
    }

    pub fn remote(&self) -> &McpServers {
        &self.remote
    }

    fn of(&self, server: &str) -> &dyn Tools {
        if self.servers.contains(server) {
            &self.remote
        } else {
            &self.local
        }
    }
}

impl Tools for AllTools {
    fn catalog(&self) -> Catalog {
        let changes = self.remote.changes();
        let mut cached = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.0 != changes {
            let local = self.local.catalog();
            let remote = self.remote.catalog();
            *cached = (
                changes,
                local.iter().chain(remote.iter()).cloned().collect(),
            );
        }
        cached.1.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.of(&call.tool.server).call(call)
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.of(server).server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.of(server).serial_writes(server)
    }

    fn instructions(&self) -> Vec<(String, String)> {
        self.remote.instructions()
    }

    fn release(&self, top_run: &RunId) {
        self.remote.release(top_run);
    }
}
