//! A second engine over the same store.

use crate::context::{
    ActiveRuns, Clients, ConcurrencyLimits, Context, Limiter, OfferDesk, Ports, RecentReviews,
    RunFamilies, Settings,
};
use crate::engine::Engine;
use crate::port::{Model, OwnerId, Tools};
use std::sync::Arc;

impl Engine {
    /// An engine over the same store with other tools and models, and an owner of its own. A tool
    /// of one may run plans with the other: their calls do not wait for each other's slots.
    #[must_use]
    pub fn fork_engine(
        &self,
        tools: Arc<dyn Tools>,
        model: Arc<dyn Model>,
        limits: ConcurrencyLimits,
    ) -> Self {
        let ports = Ports {
            tools,
            model,
            ..self.context.ports.clone()
        };
        let settings = Settings {
            owner: OwnerId(format!("engine-{:016x}", ports.ids.entropy())),
            ..self.context.settings.clone()
        };
        Self {
            context: Arc::new(Context {
                ports,
                settings,
                redaction: self.context.redaction.clone(),
                limiter: Limiter::new(limits),
                active: ActiveRuns::default(),
                desk: OfferDesk::default(),
                worker_tools: Arc::clone(&self.context.worker_tools),
                clients: Clients::default(),
                families: RunFamilies::default(),
                reviews: RecentReviews::default(),
                overview: tokio::sync::Mutex::default(),
                kept_times: tokio::sync::Mutex::default(),
            }),
        }
    }
}
