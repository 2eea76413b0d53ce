//! All configured servers as one set of tools.

use super::server::Server;
use super::{McpOptions, RefusedTool, ServerSpec, ServerStatus, call, resources};
use crate::toolbox::{BuildToolboxError, check_args};
use futures::future;
use planwright_core::id::RunId;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_core::tool::{Catalog, ToolName};
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome, ServerNews, Tools};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{broadcast, watch};

/// News that a listener may be behind with.
const MAX_NEWS: usize = 256;

/// The configured servers, each with at most one connection, or one per run. Cloning shares them.
#[derive(Debug, Clone)]
pub struct McpServers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    servers: Vec<Arc<Server>>,
    options: Arc<McpOptions>,
    /// Counts the changes of the servers' tools, to know when the catalog is out of date.
    changes: Arc<watch::Sender<u64>>,
    catalog: Mutex<(u64, Catalog)>,
    news: broadcast::Sender<ServerNews>,
}

impl McpServers {
    /// Starts nothing yet.
    pub fn new(specs: Vec<ServerSpec>, options: McpOptions) -> Result<Self, BuildToolboxError> {
        let mut names = BTreeSet::new();
        for spec in &specs {
            if !is_name(&spec.name) {
                return Err(BuildToolboxError::BadServerName(spec.name.clone()));
            }
            if !names.insert(&spec.name) {
                return Err(BuildToolboxError::DuplicateServer(spec.name.clone()));
            }
        }
        let options = Arc::new(options);
        let changes = Arc::<watch::Sender<u64>>::default();
        let (news, _) = broadcast::channel(MAX_NEWS);
        let servers = specs
            .into_iter()
            .map(|spec| {
                Arc::new(Server::new(
                    spec,
                    Arc::clone(&options),
                    Arc::clone(&changes),
                    news.clone(),
                ))
            })
            .collect();
        Ok(Self(Arc::new(Shared {
            servers,
            options,
            changes,
            catalog: Mutex::default(),
            news,
        })))
    }

    /// Sends people to the page of a service from here on, where a call wants a sign-in.
    pub(super) fn offer_sign_in_page(&self) {
        let offered = &self.0.options.has_sign_in_page;
        offered.store(true, Ordering::Relaxed);
    }

    /// Connects to all servers that are not connected, in parallel. A server that fails is reported
    /// and does not keep the others from working.
    pub async fn connect(&self) -> Vec<ServerStatus> {
        future::join_all(self.0.servers.iter().map(|server| async move {
            // Why it failed is part of its status.
            server.connection().await.map(drop).unwrap_or_default();
        }))
        .await;
        self.status()
    }

    /// Connects to one server. `None` if there is none of that name.
    pub async fn connect_one(&self, name: &str) -> Option<ServerStatus> {
        let server = self.server(name)?;
        server.connection().await.map(drop).unwrap_or_default();
        Some(server.status())
    }

    /// Connects to one server as this person for a moment, so that its tools are known to all.
    pub(super) async fn learn_tools_as(&self, name: &str, person: Principal) {
        let Some(server) = self.server(name) else {
            return;
        };
        let own = Arc::new(server.for_one_run(Some(person)));
        // Without a connection nothing is known, and the next call says why.
        own.connection().await.map(drop).unwrap_or_default();
        server.take_tools_of(&own);
        own.close().await;
    }

    /// Hears the tools of one server in the background, unless they are known: a person may have signed in to it at another
    /// service of the store.
    pub(super) fn learn_tools(&self, name: &str, person: Option<Principal>) {
        let is_known = |server: &Arc<Server>| !server.table().tools.is_empty();
        if self.server(name).is_none_or(is_known) {
            return;
        }
        let (servers, name) = (self.clone(), name.to_owned());
        tokio::spawn(async move {
            match person {
                Some(person) => servers.learn_tools_as(&name, person).await,
                None => drop(servers.connect_one(&name).await),
            }
        });
    }

    /// Takes the tools of one server as an earlier process heard them, without starting it, unless
    /// this one has listed them. Returns whether they are known then.
    pub fn recall_one(&self, name: &str) -> bool {
        self.server(name).is_some_and(|server| server.recall())
    }

    /// The servers whose tools are only remembered, each with when it listed them.
    pub fn recalled_servers(&self) -> BTreeMap<String, Timestamp> {
        let servers = self.0.servers.iter();
        servers
            .filter_map(|server| Some((server.spec.name.clone(), server.recalled_from()?)))
            .collect()
    }

    /// The names of all servers, in the order of their specifications.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .servers
            .iter()
            .map(|server| server.spec.name.as_str())
    }

    /// Returns the status of every server, in the order of their specifications.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0
            .servers
            .iter()
            .map(|server| server.status())
            .collect()
    }

    /// Tools that servers list and that cannot be called, each with the reason.
    pub fn refused_tools(&self) -> Vec<RefusedTool> {
        self.0
            .servers
            .iter()
            .flat_map(|server| server.table().refused.clone())
            .collect()
    }

    /// Checks that the operator's settings fit the servers that were connected: a decision about a
    /// tool that does not exist protects nothing.
    pub fn check_settings(&self) -> Result<(), BuildToolboxError> {
        let settings = &self.0.options.tools;
        for named in settings.classes.keys().chain(settings.key_arguments.keys()) {
            let Ok(name) = ToolName::try_from(named.clone()) else {
                return Err(BuildToolboxError::UnknownTool(named.clone()));
            };
            let Some(server) = self.server(&name.server).filter(|server| server.is_known()) else {
                continue;
            };
            if server.table().tools.contains_key(&name) {
                continue;
            }
            let refused = server
                .table()
                .refused
                .iter()
                .any(|refused| refused.tool == name.tool);
            return Err(
                match settings.key_arguments.get(named).filter(|_| refused) {
                    Some(argument) => BuildToolboxError::UnknownKeyArgument {
                        tool: named.clone(),
                        argument: argument.clone(),
                    },
                    None => BuildToolboxError::UnknownTool(named.clone()),
                },
            );
        }
        Ok(())
    }

    /// Lists the tools of all connected servers again.
    pub async fn refresh(&self) -> Vec<ServerStatus> {
        future::join_all(self.0.servers.iter().map(|server| server.refresh())).await;
        self.status()
    }

    /// Ends all connections and the processes behind them, within about two seconds. Later calls
    /// connect again.
    pub async fn close(&self) {
        let closing = |server: &Arc<Server>| {
            let server = Arc::clone(server);
            async move { future::join(server.close(), server.own.close()).await }
        };
        future::join_all(self.0.servers.iter().map(closing)).await;
    }

    pub(super) fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.0
            .servers
            .iter()
            .find(|server| server.spec.name == name)
    }
}

impl McpServers {
    /// Told of every change of any server's tools.
    pub(super) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub(super) fn subscribe_news(&self) -> broadcast::Receiver<ServerNews> {
        self.0.news.subscribe()
    }

    /// Counts the changes of any server's tools.
    pub(super) fn changes(&self) -> u64 {
        *self.0.changes.borrow()
    }
}

impl Tools for McpServers {
    /// The tools of every server that was connected at least once, as last listed, and of those that
    /// were recalled.
    fn catalog(&self) -> Catalog {
        let changes = self.changes();
        let mut cached = self
            .0
            .catalog
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if cached.0 != changes {
            let tables: Vec<_> = self.0.servers.iter().map(|server| server.table()).collect();
            *cached = (
                changes,
                tables
                    .iter()
                    .flat_map(|table| table.tools.values().cloned())
                    .collect(),
            );
        }
        cached.1.clone()
    }

    fn call(&self, mut call: Call) -> BoxFuture<'static, Outcome> {
        let server = self.server(&call.tool.server).cloned();
        Box::pin(async move {
            let unknown = CallError::Unavailable(format!("there is no tool {}", call.tool));
            let Some(mut server) = server else {
                return Err(unknown);
            };
            if server.spec.personal_sign_in {
                let person = call.acts_for.as_ref();
                let person = person.or_else(|| server.options.own_person()).cloned();
                let person = person.ok_or_else(|| in_no_name(&server.spec.name))?;
                server = server.own.of(&server, &call.top_run, Some(&person))?;
            } else if server.spec.per_plan {
                server = server.own.of(&server, &call.top_run, None)?;
            }
            let tool = call::tool(&server, &call).await?.ok_or(unknown)?;
            if call
                .definition
                .is_some_and(|judged| judged != tool.digest())
            {
                return Err(changed(&call.tool));
            }
            check_args(&tool, &mut call)?;
            if tool.made_here {
                return Box::pin(resources::call(&server, call)).await;
            }
            call::make(server, tool, call).await
        })
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.0.options.tools.limits.get(server).copied()
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.0
            .options
            .tools
            .serial_writes
            .get(server)
            .copied()
            .unwrap_or(true)
    }

    fn instructions(&self) -> Vec<(String, String)> {
        let of_server =
            |server: &Arc<Server>| Some((server.spec.name.clone(), server.instructions()?));
        self.0.servers.iter().filter_map(of_server).collect()
    }

    fn release(&self, top_run: &RunId) {
        for server in &self.0.servers {
            server.own.end(top_run);
        }
    }
}

/// People sign in to the server by themselves, and none of them started or approved the run.
fn in_no_name(server: &str) -> CallError {
    CallError::refused(
        "unauthorized",
        format!("each person signs in to {server}, and no person started or approved this run"),
    )
}

/// The server lists another definition than the one that was looked at when the call was allowed.
fn changed(tool: &ToolName) -> CallError {
    CallError::refused(
        "tool_changed",
        format!("{tool} changed right before it was called"),
    )
}

/// The name is part of tool names and of file names.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
