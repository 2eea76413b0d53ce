//! A second engine over the same store.

use crate::dispatch::{Limiter, Limits};
use crate::engine::{Engine, Environment};
use crate::port::{Model, OwnerId, Tools};
use std::sync::Arc;

impl Engine {
    /// An engine over the same store with other tools and models, and an owner of its own. A tool
    /// of one may run plans with the other: their calls do not wait for each other's slots.
    #[must_use]
    pub fn beside(&self, tools: Arc<dyn Tools>, model: Arc<dyn Model>, limits: Limits) -> Self {
        let env = &self.env;
        let environment = Environment {
            store: Arc::clone(&env.store),
            artifacts: Arc::clone(&env.artifacts),
            tokens: env.tokens.clone(),
            tools,
            secrets: Arc::clone(&env.secrets),
            model,
            executors: Arc::clone(&env.executors),
            agents: env.agents,
            prompts: Arc::clone(&env.prompts),
            surroundings: Arc::clone(&env.surroundings),
            redaction: env.redaction.clone(),
            clock: Arc::clone(&env.clock),
            ids: Arc::clone(&env.ids),
            limiter: Limiter::new(limits),
            owner: OwnerId(format!("engine-{:016x}", env.ids.entropy())),
            lease_ttl: env.lease_ttl,
            policy: Arc::clone(&env.policy),
            policy_version: env.policy_version.clone(),
            bounds: env.bounds,
            keeping: env.keeping,
        };
        Self {
            env: Arc::new(environment),
            active: Arc::default(),
        }
    }
}
