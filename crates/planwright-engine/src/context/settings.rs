//! The operator's decisions, as one engine obeys them.

use super::DispatchSettings;
use crate::port::OwnerId;
use planwright_core::plan::Bounds;
use planwright_core::planning::Prompts;
use planwright_core::policy::Policy;
use std::sync::Arc;
use std::time::Duration;

/// The operator's decisions for one engine.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Rules about calls and people.
    pub(crate) policy: Arc<Policy>,
    /// Part of every digest: a new policy needs new approvals.
    pub(crate) policy_version: String,
    pub(crate) bounds: Bounds,
    /// The name under which this engine owns runs.
    pub(crate) owner: OwnerId,
    /// A run whose owner has not renewed its lease for this long can be taken over.
    pub(crate) lease_ttl: Duration,
    pub(crate) retention: Retention,
    pub(crate) agents: AgentSettings,
    /// The time limit of calls whose step names none.
    pub(crate) call_timeout: Duration,
    /// Bytes that one principal may bring into the store.
    pub(crate) stored_bytes: u64,
    /// Prompts that replace those of this program.
    pub(crate) prompts: Arc<Prompts>,
    /// Which steps are carried out by workers.
    pub(crate) dispatch: DispatchSettings,
}

/// The operator's decisions about executors of agent steps.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentSettings {
    /// Calls outside a plan's scope are noted instead of refused; a person is asked unless the tool
    /// only reads and policy allows the call.
    pub observe_scope: bool,
}

/// Retention and staleness limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Days after which a proposed or approved plan expires if no one touched it; 0: never.
    pub stale_after_days: u32,
    /// A run that no process has executed for this long is stalled.
    pub stalled_after: Duration,
    /// Time after which a plan that is over is archived; `None`: never.
    pub archive_after: Option<Duration>,
    /// Time after which an archived plan is deleted; `None`: never.
    pub delete_after: Option<Duration>,
    /// Time after which the journals of ended runs, and of plans that were put away, leave the
    /// database for sealed files; `None`: never.
    pub seal_after: Option<Duration>,
    /// Time after which a plan that was put away, and whose journals are all sealed, is removed for
    /// good; `None`: never.
    pub remove_after: Option<Duration>,
    /// Time after which large values that no journal names are removed; `None`: never.
    pub remove_artifacts_after: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            stale_after_days: 30,
            stalled_after: Duration::from_mins(30),
            archive_after: None,
            delete_after: None,
            seal_after: Some(Duration::from_hours(24 * 90)),
            remove_after: None,
            remove_artifacts_after: None,
        }
    }
}
