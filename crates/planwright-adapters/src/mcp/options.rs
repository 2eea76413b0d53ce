//! What the operator decided about all servers.

use super::{SeenShapes, SignInTokens, ToolMemory};
use crate::process::Children;
use crate::toolbox::ToolboxOptions;
use planwright_core::principal::Principal;
use planwright_engine::Redaction;
use planwright_engine::port::{Artifacts, Secrets};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// The settings that all servers have in common.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Effect classes, key arguments and limits. They may also speak of servers that are not here.
    pub tools: ToolboxOptions,
    /// The place of images, audio and other bytes of results.
    pub artifacts: Arc<dyn Artifacts>,
    /// The directory of `<server>.log`: what the servers wrote to their standard error. Made when
    /// needed.
    pub logs: PathBuf,
    /// `true` if logs are kept at all. An encrypted workspace keeps none.
    pub keep_logs: bool,
    /// The directory servers are told about when they ask for roots, and the one they are started
    /// in unless their specification names another.
    pub workspace: Option<PathBuf>,
    /// The secrets that must not be in the logs.
    pub redaction: Redaction,
    /// Where servers that are programs are started.
    pub children: Children,
    /// The directory in which the hints of tools are remembered, outside every workspace; `None`:
    /// they are believed as they come.
    pub hints: Option<PathBuf>,
    /// What servers of the earlier era are told that they may ask the clients of the gateway for.
    pub passed: PassedRequests,
    /// The values of secrets that specifications name.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// The tokens of the servers that a person signed in to.
    pub tokens: Option<SignInTokens>,
    /// The person whose program this is. A service has none: it acts for those who ask it.
    pub person: Option<Principal>,
    /// `true` once this process is a service with a page on which people sign in to servers.
    pub has_sign_in_page: Arc<AtomicBool>,
    /// What results of tools looked like.
    pub shapes: Option<SeenShapes>,
    /// What servers answered to earlier processes; `None`: nothing is remembered.
    pub memory: Option<ToolMemory>,
    /// Servers that may start at once: each has its own time, and together they have one machine.
    pub starts: Arc<Semaphore>,
}

/// Servers that start at once, unless the operator says otherwise.
const STARTS: usize = 4;

/// Requests of servers that are passed on to the client that made a call, and are never answered
/// for it. Modern servers are told with each call what its client can be asked for; those of the
/// earlier era are told once, for all calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedRequests {
    /// What the model of the client would say.
    pub sampling: bool,
    /// The directories that the client works in.
    pub roots: bool,
}

impl McpOptions {
    /// The person whose program this is, unless it is a service.
    pub(super) fn own_person(&self) -> Option<&Principal> {
        let is_service = self.has_sign_in_page.load(Ordering::Relaxed);
        self.person.as_ref().filter(|_| !is_service)
    }

    pub fn new(artifacts: Arc<dyn Artifacts>, logs: impl Into<PathBuf>) -> Self {
        Self {
            tools: ToolboxOptions::default(),
            artifacts,
            logs: logs.into(),
            keep_logs: true,
            workspace: None,
            redaction: Redaction::default(),
            children: Children::default(),
            hints: None,
            passed: PassedRequests::default(),
            secrets: None,
            tokens: None,
            person: None,
            has_sign_in_page: Arc::default(),
            shapes: None,
            memory: None,
            starts: Arc::new(Semaphore::new(STARTS)),
        }
    }
}
