//! The tables of `planwright.toml` that have no file of their own, as they are written.

use crate::config::dispatch::DispatchTable;
use crate::config::executors::ExecutorTable;
use crate::config::models::ModelsTable;
use crate::workspace::servers::ServerTable;
use planwright_adapters::mcp::PassedRequests;
use planwright_core::plan::Budget;
use planwright_core::policy::{Mode, TimeSpan};
use planwright_core::tool::EffectClass;
use planwright_mcp::NameStyle;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// `[chat]`: one budget for the calls and tokens of a conversation and of the plans that are run
/// from it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ChatTable {
    pub(super) max_calls: Option<u64>,
    pub(super) max_tokens: Option<u64>,
}

/// `[gateway]`: what becomes of calls that a person would have to agree to, and what the session of
/// a client may spend.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayTable {
    pub(super) mode: Option<Mode>,
    pub(super) max_calls: Option<u64>,
    pub(super) max_seconds: Option<f64>,
    pub(super) per_tool: BTreeMap<String, u64>,
    pub(super) same_call: Option<u64>,
    pub(super) names: Names,
    pub(super) pass: BTreeSet<Passed>,
}

/// `names`: how tools and prompts of servers are called behind the gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Names {
    #[default]
    Prefixed,
    Plain,
}

/// `pass`: what goes through the gateway besides calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Passed {
    /// Servers of the earlier era may ask for the model of the client.
    Sampling,
    /// They may ask for the directories the client works in.
    Roots,
    /// Clients read addresses that they make up from templates of the servers.
    Templates,
}

impl GatewayTable {
    pub(crate) fn names(&self) -> NameStyle {
        match self.names {
            Names::Prefixed => NameStyle::Prefixed,
            Names::Plain => NameStyle::Plain,
        }
    }

    pub(crate) fn passes_templates(&self) -> bool {
        self.pass.contains(&Passed::Templates)
    }

    pub(crate) fn passed_requests(&self) -> PassedRequests {
        PassedRequests {
            sampling: self.pass.contains(&Passed::Sampling),
            roots: self.pass.contains(&Passed::Roots),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode.unwrap_or(Mode::Enforce)
    }

    /// What the session of one client may spend.
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            calls: self.max_calls,
            per_tool: self.per_tool.clone(),
            seconds: self.max_seconds,
            tokens: None,
            same_call: self.same_call,
        }
    }
}

/// The times for which plans are waited for and kept. 0 days mean: for ever.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PlansTable {
    pub(super) stale_after_days: Option<u32>,
    pub(super) stalled_after: Option<TimeSpan>,
    /// The same in minutes, as pi-plan-mode writes it.
    pub(super) executor_timeout_minutes: Option<u64>,
    pub(super) archive_after_days: Option<u32>,
    pub(super) delete_after_days: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreTable {
    /// A file that holds the passphrase of an encrypted store and that only its owner can read.
    pub(super) passphrase_file: Option<PathBuf>,
    /// A Postgres database that holds the store instead of a file of the workspace.
    pub(super) url: Option<String>,
    /// A bucket that holds the large values instead of the store.
    pub(super) objects: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Local {
    pub(super) run_command: bool,
    pub(super) http_get: HttpGet,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HttpGet {
    pub(super) enabled: bool,
    pub(super) allow: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) class: Option<EffectClass>,
    pub(super) key_argument: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    pub(super) global: Option<usize>,
    /// The time limit of calls whose step names none.
    pub(super) call_timeout_seconds: Option<u64>,
    /// What one principal may bring into the store.
    pub(super) stored_megabytes_per_principal: Option<u32>,
    pub(super) per_server: BTreeMap<String, usize>,
    pub(super) per_tool: BTreeMap<String, usize>,
}

/// `[sign_in]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SignInTable {
    pub(crate) oidc: Option<OidcTable>,
}

/// `[sign_in.oidc]`: the identity provider that people may sign in with.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OidcTable {
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    /// The name of the secret that the provider knows this service by.
    pub(crate) client_secret: Option<String>,
    /// What the button says.
    pub(crate) label: Option<String>,
    /// The claim that is the person's name; `email` unless it is said.
    pub(crate) name_claim: Option<String>,
    /// The claim that roles are given by; `groups` unless it is said.
    pub(crate) role_claim: Option<String>,
    /// The role of each of its values.
    pub(crate) roles: BTreeMap<String, String>,
    /// The domains that a verified address has to be of.
    #[serde(default)]
    pub(crate) allowed_domains: Vec<String>,
    /// What is asked for besides `openid`; `email` and `profile` unless it is said.
    pub(crate) scopes: Option<Vec<String>>,
}

/// `[serve]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServeTable {
    /// `/metrics` needs no token.
    pub(crate) metrics_public: bool,
    /// Names and addresses that the service answers to, besides those of its machine.
    pub(crate) allow_hosts: Vec<String>,
    /// Web origins whose pages may use the service, besides its own.
    pub(crate) allow_origins: Vec<String>,
    pub(crate) max_connections: Option<usize>,
    pub(crate) max_idle_per_address: Option<usize>,
    pub(crate) idle_timeout_seconds: Option<u64>,
    /// Requests that are worked on at once.
    pub(crate) max_in_flight: Option<usize>,
    /// Requests of one principal that are worked on at once.
    pub(crate) max_in_flight_per_principal: Option<usize>,
    /// Event streams that are open at once, and of one principal.
    pub(crate) max_streams: Option<usize>,
    pub(crate) max_streams_per_principal: Option<usize>,
    /// Streams of everything that happens, and of one principal.
    pub(crate) max_global_streams: Option<usize>,
    pub(crate) max_global_streams_per_principal: Option<usize>,
    /// The time the service goes on answering once it said that it is not ready any more.
    pub(crate) drain_seconds: Option<u64>,
    /// The path under which a proxy shows the service.
    pub(crate) base_path: Option<String>,
    /// Runs that are executed at once; others wait for their turn.
    pub(crate) max_runs: Option<usize>,
    /// Requests of one principal per second, over time.
    pub(crate) requests_per_second: Option<u32>,
    /// Requests of one principal at once.
    pub(crate) burst: Option<u32>,
}

/// `planwright.toml` in the user's directory.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserFile {
    pub(super) servers: BTreeMap<String, ServerTable>,
    pub(super) models: ModelsTable,
    pub(super) executors: BTreeMap<String, ExecutorTable>,
    pub(super) agent: UserAgentTable,
    pub(super) store: UserStoreTable,
    pub(super) dispatch: DispatchTable,
    pub(super) policy: UserPolicyTable,
}

/// `[policy]` of the user's file: what holds in every folder, also where its own file says otherwise.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserPolicyTable {
    /// Tools that only a person's approval lets through.
    pub(super) guarded_tools: Vec<String>,
}

/// `[store]` of the user's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserStoreTable {
    /// The key that stores are the user's by. No workspace can name it.
    pub(super) key_file: Option<PathBuf>,
    /// A Postgres database that holds the store of every workspace that names none itself.
    pub(super) url: Option<String>,
    /// A bucket that holds the large values of every workspace that names none itself.
    pub(super) objects: Option<String>,
}

/// `[agent]` of the user's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UserAgentTable {
    pub(super) marks: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BoundsTable {
    pub(super) max_document_bytes: Option<usize>,
    pub(super) max_steps: Option<usize>,
    pub(super) max_edges: Option<usize>,
    pub(super) max_depth: Option<usize>,
    pub(super) max_text: Option<usize>,
    pub(super) max_resolved_bytes: Option<usize>,
}
