//! One thing that a file of the workspace allows and the defaults do not.

use planwright_core::digest::Digest;
use serde_json::Value;

/// What a loosening is about. What a file says about one subject is trusted as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Rules that allow, and everything in `[policy]` that they stand beside.
    Policy,
    Roles,
    RunCommand,
    HttpGet,
    AgentScope,
    GatewayMode,
    GatewayPass,
    Tool(String),
    Server(String),
    Executor(String),
    Provider(String),
    Prompt(String),
    Secret(String),
    PassphraseFile,
    /// The database that the store is in.
    StoreAddress,
    /// The bucket that large values are in.
    ObjectsAddress,
    /// Steps that are carried out by workers.
    Dispatch,
    /// The broker that is told which steps wait.
    BrokerAddress,
    Webhook(String),
    Telemetry,
    Service,
    /// Removing for good what was put away.
    Removal,
}

impl Subject {
    /// The name under which trust in it is kept. That of a server is its name alone; others have a
    /// space in them, which names of servers cannot have.
    pub(crate) fn trust_name(&self) -> String {
        match self {
            Self::Policy => "policy rules".to_owned(),
            Self::Roles => "policy roles".to_owned(),
            Self::RunCommand => "local run_command".to_owned(),
            Self::HttpGet => "local http_get".to_owned(),
            Self::AgentScope => "agent scope".to_owned(),
            Self::GatewayMode => "gateway mode".to_owned(),
            Self::GatewayPass => "gateway pass".to_owned(),
            Self::Tool(name) => format!("tool {name}"),
            Self::Server(name) => name.clone(),
            Self::Executor(name) => format!("executor {name}"),
            Self::Provider(name) => format!("model provider {name}"),
            Self::Prompt(name) => format!("prompt {name}"),
            Self::Secret(name) => format!("secret {name}"),
            Self::PassphraseFile => "store passphrase_file".to_owned(),
            Self::StoreAddress => "store url".to_owned(),
            Self::ObjectsAddress => "store objects".to_owned(),
            Self::Dispatch => "dispatch capabilities".to_owned(),
            Self::BrokerAddress => "dispatch url".to_owned(),
            Self::Webhook(name) => format!("webhook {name}"),
            Self::Telemetry => "telemetry export".to_owned(),
            Self::Service => "service access".to_owned(),
            Self::Removal => "retention removal".to_owned(),
        }
    }

    /// What it is called in a list of what was ignored, for one and for several.
    pub(crate) fn noun(&self) -> (&'static str, &'static str) {
        match self {
            Self::Policy => ("policy setting", "policy settings"),
            Self::Roles => ("role", "roles"),
            Self::RunCommand => ("run_command", "run_command"),
            Self::HttpGet => ("http_get", "http_get"),
            Self::AgentScope => ("agent scope", "agent scope"),
            Self::GatewayMode => ("gateway mode", "gateway mode"),
            Self::GatewayPass => ("gateway pass", "gateway pass"),
            Self::Tool(_) => ("tool class", "tool classes"),
            Self::Server(_) => ("server", "servers"),
            Self::Executor(_) => ("executor", "executors"),
            Self::Provider(_) => ("model provider", "model providers"),
            Self::Prompt(_) => ("prompt", "prompts"),
            Self::Secret(_) => ("secret", "secrets"),
            Self::PassphraseFile => ("passphrase file", "passphrase files"),
            Self::StoreAddress => ("store address", "store addresses"),
            Self::ObjectsAddress => ("place of large values", "places of large values"),
            Self::Dispatch => ("dispatch", "dispatch"),
            Self::BrokerAddress => ("broker address", "broker addresses"),
            Self::Webhook(_) => ("webhook", "webhooks"),
            Self::Telemetry => ("telemetry export", "telemetry exports"),
            Self::Service => ("service access", "service access"),
            Self::Removal => ("removal", "removal"),
        }
    }

    /// Its name in the file, if there can be several.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Tool(name)
            | Self::Server(name)
            | Self::Executor(name)
            | Self::Provider(name)
            | Self::Prompt(name)
            | Self::Secret(name)
            | Self::Webhook(name) => Some(name),
            Self::Policy
            | Self::Roles
            | Self::RunCommand
            | Self::HttpGet
            | Self::AgentScope
            | Self::GatewayMode
            | Self::GatewayPass
            | Self::PassphraseFile
            | Self::StoreAddress
            | Self::ObjectsAddress
            | Self::Dispatch
            | Self::BrokerAddress
            | Self::Telemetry
            | Self::Service
            | Self::Removal => None,
        }
    }
}

/// One thing that a file of the workspace allows and the defaults do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loosening {
    pub(crate) subject: Subject,
    /// The file, relative to the workspace.
    pub(crate) place: String,
    /// The key, as the file spells it.
    pub(crate) key: String,
    /// What it means, in plain words.
    pub(crate) value: String,
    /// What else the person has to see: a label and the text as it is written.
    pub(crate) parts: Vec<(&'static str, String)>,
    /// What makes it more than it seems.
    pub(crate) warnings: Vec<String>,
    /// A long text, shown on request.
    pub(crate) content: Option<String>,
    /// Of exactly what is written about the subject.
    pub(crate) digest: Digest,
}

impl Loosening {
    pub(crate) fn new(
        subject: Subject,
        place: impl Into<String>,
        key: impl Into<String>,
        value: impl Into<String>,
        written: &Value,
    ) -> Self {
        Self {
            subject,
            place: place.into(),
            key: key.into(),
            value: value.into(),
            parts: Vec::new(),
            warnings: Vec::new(),
            content: None,
            digest: Digest::of_json(written),
        }
    }

    pub(crate) fn part(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.parts.push((label, text.into()));
        self
    }

    pub(crate) fn warning(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }
}
