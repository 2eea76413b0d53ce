//! What those who administer the service can look at: it is read where the program is put together.

use planwright_engine::port::BoxFuture;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// Reads how the service is set up.
pub trait OperatorView: fmt::Debug + Send + Sync {
    /// Looks at everything now. Secrets are named and never shown.
    fn look(&self) -> BoxFuture<'_, Result<OperatorSettings, String>>;
}

/// How the service is set up, for those who administer it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorSettings {
    /// `[policy]` and `[roles]` as they are in force, as TOML.
    pub policy: String,
    /// The servers that files name, in the order of their names.
    pub servers: Vec<OperatorServer>,
    pub webhooks: Vec<OperatorWebhook>,
    pub secrets: Vec<OperatorSecret>,
}

/// A server.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorServer {
    pub name: String,
    /// The file that names it.
    pub source: String,
    /// How it is started or reached.
    pub launch: String,
    pub trusted: bool,
    pub state: OperatorServerState,
    /// What it calls itself. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_itself: Option<String>,
    /// How many of its tools can be called, if it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The end of what it wrote to its standard error before it failed. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// Where the connection to a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperatorServerState {
    /// It is not trusted, turned off, or lacks something.
    NotReady,
    /// No call needed it yet.
    Idle,
    Connected,
    /// It could not be started or reached, or the connection broke. The next call tries again.
    Failed,
}

/// An endpoint that is told what happens.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorWebhook {
    pub name: String,
    /// Without its query, which may hold a key.
    pub url: String,
    /// What it is told; everything if it is empty.
    pub events: Vec<String>,
    /// Notices that are still to be sent.
    pub waiting: u64,
    /// Notices that were given up.
    pub dead: u64,
    /// Why it is told nothing any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A secret, by its name.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorSecret {
    pub name: String,
    /// Where it is kept.
    pub source: String,
    /// Whether it can be used now.
    pub available: bool,
    /// The tools that may have it; absent if every tool may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
