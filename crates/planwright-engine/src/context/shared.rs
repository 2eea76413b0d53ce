//! The one value that every facade points to.

use super::WorkerTools;
use super::{
    ActiveRuns, Clients, KeptOverview, KeptTimes, Limiter, OfferDesk, Ports, RecentReviews,
    RunFamilies, Settings,
};
use crate::redaction::known_secrets::Redaction;
use planwright_core::tool::Catalog;
use std::sync::Arc;

/// The ports, the settings and the state in memory of one engine. Facades share it behind one
/// `Arc`; nothing outside this crate sees it, so a port can change without a face noticing.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    /// Everything that is known to be secret in this process.
    pub(crate) redaction: Redaction,
    /// Counts the calls in flight over all runs of this engine.
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) active: ActiveRuns,
    /// Offers to workers that runs of this engine wait for.
    pub(crate) desk: OfferDesk,
    /// The tools of workers.
    pub(crate) worker_tools: Arc<WorkerTools>,
    /// Clients of the gateway.
    pub(crate) clients: Clients,
    pub(crate) families: RunFamilies,
    /// Plans that were folded lately.
    pub(crate) reviews: RecentReviews,
    /// All plans at a glance.
    pub(crate) overview: tokio::sync::Mutex<KeptOverview>,
    /// How long tools took in other plans.
    pub(crate) kept_times: tokio::sync::Mutex<KeptTimes>,
}

impl Context {
    /// The tools known now.
    pub(crate) fn catalog(&self) -> Catalog {
        self.ports.tools.catalog()
    }

    /// The time limit of calls whose step names none, as a run keeps it.
    pub(crate) fn call_timeout_ms(&self) -> u64 {
        u64::try_from(self.settings.call_timeout.as_millis()).unwrap_or(u64::MAX)
    }
}
