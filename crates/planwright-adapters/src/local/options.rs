//! What the operator decides about the server.

use crate::process::Children;
use std::path::PathBuf;

/// The permissions of the server. Everything dangerous is off unless said otherwise.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The directory the file tools are confined to.
    pub workspace: PathBuf,
    /// `true` if `run_command` exists.
    pub run_command: bool,
    pub http_get: HttpOptions,
    /// Where its commands are started.
    pub children: Children,
}

impl LocalOptions {
    /// File tools only.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            run_command: false,
            http_get: HttpOptions::default(),
            children: Children::default(),
        }
    }
}

/// The settings of `http_get`.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    pub enabled: bool,
    /// Hosts, as `host` (any port) or `host:port`. Empty means every host with a public address;
    /// otherwise only the hosts listed, and `*` stands for every host with a public address. A host
    /// listed by name may have a private or loopback address.
    pub allow: Vec<String>,
}
