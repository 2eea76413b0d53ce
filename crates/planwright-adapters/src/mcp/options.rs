//! What the operator decided about all servers.

use crate::process::Children;
use crate::toolbox::ToolboxOptions;
use planwright_engine::Redaction;
use planwright_engine::port::Artifacts;
use std::path::PathBuf;
use std::sync::Arc;

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
}

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
        }
    }
}
