//! A second engine over the same store.

use crate::agent::AgentSettings;
use crate::dispatch::{Limiter, Limits};
use crate::engine::{Engine, Environment};
use crate::port::{Model, OwnerId, Tools};
use planwright_core::planning::{CHAT, FillPromptError};
use std::sync::Arc;

impl Engine {
    /// As [`Engine::beside`], for conversations: its agent steps are told that they talk with a person, and their scope
    /// is never only noted.
    pub fn conversing(
        &self,
        tools: Arc<dyn Tools>,
        model: Arc<dyn Model>,
        limits: Limits,
    ) -> Result<Self, FillPromptError> {
        let prompt = Some(self.env.prompts.fill(&CHAT, &[])?);
        let agents = AgentSettings { prompt, observe_scope: false };
        Ok(self.with_agents(tools, model, limits, agents))
    }

    /// An engine over the same store with other tools and models, and an owner of its own. A tool of one may run plans
    /// with the other: their calls do not wait for each other's slots.
    #[must_use]
    pub fn beside(&self, tools: Arc<dyn Tools>, model: Arc<dyn Model>, limits: Limits) -> Self {
        self.with_agents(tools, model, limits, self.env.agents.clone())
    }

    fn with_agents(
        &self,
        tools: Arc<dyn Tools>,
        model: Arc<dyn Model>,
        limits: Limits,
        agents: AgentSettings,
    ) -> Self {
        let env = &self.env;
        let environment = Environment {
            store: Arc::clone(&env.store),
            artifacts: Arc::clone(&env.artifacts),
            tools,
            secrets: Arc::clone(&env.secrets),
            model,
            prompts: Arc::clone(&env.prompts),
            surroundings: Arc::clone(&env.surroundings),
            executors: Arc::clone(&env.executors),
            agents,
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
        Self { env: Arc::new(environment), active: Arc::default() }
    }
}
