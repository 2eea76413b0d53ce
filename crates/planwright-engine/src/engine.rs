//! The engine: plans in, runs out. Cheap to clone; everything it knows is in the store.

use crate::agent::AgentSettings;
use crate::dispatch::{Limiter, Limits, Request};
use crate::maintenance::Keeping;
use crate::memory::{
    MemoryArtifacts, MemorySecrets, MemoryStore, NoExecutors, NoModel, NoSurroundings, RandomIds,
    SystemClock,
};
use crate::port::{
    Artifacts, Clock, Executors, Ids, Model, OwnerId, Secrets, Store, Surroundings, Tokens, Tools,
};
use crate::redaction::known_secrets::Redaction;
use crate::run::observer::{Observer, Observers};
use planwright_core::id::RunId;
use planwright_core::plan::Bounds;
use planwright_core::planning::Prompts;
use planwright_core::policy::Policy;
use planwright_core::tool::Catalog;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Everything the engine was given.
#[derive(Debug)]
pub struct Environment {
    pub store: Arc<dyn Store>,
    pub artifacts: Arc<dyn Artifacts>,
    /// Who has access to the service. Without them nobody does, and no approval is lost with any.
    pub tokens: Option<Arc<dyn Tokens>>,
    pub tools: Arc<dyn Tools>,
    pub secrets: Arc<dyn Secrets>,
    pub model: Arc<dyn Model>,
    /// The prompts that the operator replaced.
    pub prompts: Arc<Prompts>,
    /// Where plans will work.
    pub surroundings: Arc<dyn Surroundings>,
    /// Programs that work on agent steps.
    pub executors: Arc<dyn Executors>,
    /// What the operator decided about executors.
    pub agents: AgentSettings,
    /// Everything that is known to be secret in this process.
    pub redaction: Redaction,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub limiter: Arc<Limiter>,
    pub owner: OwnerId,
    /// A run whose owner has not been heard of for this long can be taken over.
    pub lease_ttl: Duration,
    /// What the operator decided about calls and people.
    pub policy: Arc<Policy>,
    /// Part of every digest: a new policy needs new approvals.
    pub policy_version: String,
    pub bounds: Bounds,
    /// How long things are waited for and kept.
    pub keeping: Keeping,
}

/// Runs plans. See [`Engine::builder`].
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) env: Arc<Environment>,
    pub(crate) active: Arc<Active>,
}

/// The runs this engine is executing.
#[derive(Default)]
pub(crate) struct Active {
    inboxes: Mutex<BTreeMap<RunId, mpsc::Sender<Request>>>,
    watchers: Mutex<Vec<Arc<dyn Observer>>>,
    pub(crate) postman: std::sync::OnceLock<()>,
    pub(crate) words_corrected: std::sync::atomic::AtomicBool,
    /// Nothing starts any more: the runs let go of what they are at as soon as no call is in
    /// flight.
    draining: watch::Sender<bool>,
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Active")
    }
}

impl Active {
    /// Those who watch one run, and those who watch all.
    pub(crate) fn watching(&self, mut observers: Vec<Arc<dyn Observer>>) -> Observers {
        observers.extend(
            self.watchers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .cloned(),
        );
        Observers(observers)
    }

    pub(crate) fn insert(&self, run: RunId, inbox: mpsc::Sender<Request>) {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(run, inbox);
    }

    pub(crate) fn remove(&self, run: &RunId) {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(run);
    }

    pub(crate) fn get(&self, run: &RunId) -> Option<mpsc::Sender<Request>> {
        self.inboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(run)
            .cloned()
    }

    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }
}

/// Puts an engine together. Without a store everything lives in memory and ends with the process.
#[derive(Debug)]
pub struct EngineBuilder {
    store: Option<Arc<dyn Store>>,
    artifacts: Option<Arc<dyn Artifacts>>,
    tokens: Option<Arc<dyn Tokens>>,
    tools: Arc<dyn Tools>,
    secrets: Option<Arc<dyn Secrets>>,
    model: Option<Arc<dyn Model>>,
    prompts: Arc<Prompts>,
    surroundings: Option<Arc<dyn Surroundings>>,
    executors: Option<Arc<dyn Executors>>,
    agents: AgentSettings,
    redaction: Redaction,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn Ids>>,
    limits: Limits,
    owner: Option<OwnerId>,
    lease_ttl: Duration,
    policy: Arc<Policy>,
    policy_version: Option<String>,
    bounds: Bounds,
    keeping: Keeping,
}

impl Engine {
    /// The version of the built-in policy: read-only tools may run, everything else is asked about.
    pub const DEFAULT_POLICY: &'static str = "default-1";

    pub fn builder(tools: Arc<dyn Tools>) -> EngineBuilder {
        EngineBuilder {
            store: None,
            artifacts: None,
            tokens: None,
            tools,
            secrets: None,
            model: None,
            prompts: Arc::default(),
            surroundings: None,
            executors: None,
            agents: AgentSettings::default(),
            redaction: Redaction::default(),
            clock: None,
            ids: None,
            limits: Limits::default(),
            owner: None,
            lease_ttl: Duration::from_secs(30),
            policy: Arc::default(),
            policy_version: None,
            bounds: Bounds::default(),
            keeping: Keeping::default(),
        }
    }

    pub fn environment(&self) -> &Environment {
        &self.env
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.env.store
    }

    /// What the operator decided.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.env.policy
    }

    /// Lets every run finish the calls that are in flight and then lets go of it where it is, as a
    /// crash would, but with nothing lost. There is no way back: the process is about to end.
    pub fn drain(&self) {
        self.active.draining.send_replace(true);
    }

    /// From here on this observer is told about every run that this engine starts or takes over.
    pub fn watch(&self, observer: Arc<dyn Observer>) {
        self.active
            .watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(observer);
    }

    /// The tools known now.
    pub fn catalog(&self) -> Catalog {
        self.env.tools.catalog()
    }
}

impl EngineBuilder {
    /// Keeps the journal (what other systems call checkpoints) and large values here.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>, artifacts: Arc<dyn Artifacts>) -> Self {
        self.store = Some(store);
        self.artifacts = Some(artifacts);
        self
    }

    /// Whoever approves with a token needs one that is not taken away before the run begins.
    #[must_use]
    pub fn tokens(mut self, tokens: Arc<dyn Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Where `${secret.NAME}` comes from, and the memory of everything secret that the tools share.
    #[must_use]
    pub fn secrets(mut self, secrets: Arc<dyn Secrets>, redaction: Redaction) -> Self {
        self.secrets = Some(secrets);
        self.redaction = redaction;
        self
    }

    /// The models that plan, think and reflect. Without any, only what people write runs.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Prompts that replace those of this program, by name.
    #[must_use]
    pub fn prompts(mut self, prompts: Prompts) -> Self {
        self.prompts = Arc::new(prompts);
        self
    }

    /// What planners are told about the place in which plans will work.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Arc<dyn Surroundings>) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// The programs that work on agent steps, besides the built-in executor.
    #[must_use]
    pub fn executors(mut self, executors: Arc<dyn Executors>) -> Self {
        self.executors = Some(executors);
        self
    }

    /// What the operator decided about executors.
    #[must_use]
    pub fn agents(mut self, agents: AgentSettings) -> Self {
        self.agents = agents;
        self
    }

    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Limits over all runs of this engine.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The name under which this engine owns runs. It must be unique among living engines.
    #[must_use]
    pub fn owner(mut self, owner: OwnerId) -> Self {
        self.owner = Some(owner);
        self
    }

    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// What the operator decided. Its version is part of every digest, so that a change voids
    /// earlier approvals.
    #[must_use]
    pub fn policy(mut self, policy: Arc<Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// Replaces the policy's own version, for callers that decide more than it says.
    #[must_use]
    pub fn policy_version(mut self, version: impl Into<String>) -> Self {
        self.policy_version = Some(version.into());
        self
    }

    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// How long things are waited for and kept.
    #[must_use]
    pub fn keeping(mut self, keeping: Keeping) -> Self {
        self.keeping = keeping;
        self
    }

    pub fn build(self) -> Engine {
        let ids = self.ids.unwrap_or_else(|| Arc::new(RandomIds));
        let owner = self
            .owner
            .unwrap_or_else(|| OwnerId(format!("engine-{:016x}", ids.entropy())));
        let of_policy = || {
            self.policy
                .version()
                .unwrap_or(Engine::DEFAULT_POLICY)
                .to_owned()
        };
        let policy_version = self.policy_version.clone().unwrap_or_else(of_policy);
        let env = Environment {
            store: self
                .store
                .unwrap_or_else(|| Arc::new(MemoryStore::default())),
            artifacts: self
                .artifacts
                .unwrap_or_else(|| Arc::new(MemoryArtifacts::default())),
            tokens: self.tokens,
            tools: self.tools,
            secrets: self
                .secrets
                .unwrap_or_else(|| Arc::new(MemorySecrets::default())),
            model: self.model.unwrap_or_else(|| Arc::new(NoModel)),
            prompts: self.prompts,
            surroundings: self
                .surroundings
                .unwrap_or_else(|| Arc::new(NoSurroundings)),
            executors: self.executors.unwrap_or_else(|| Arc::new(NoExecutors)),
            agents: self.agents,
            redaction: self.redaction,
            clock: self
                .clock
                .unwrap_or_else(|| Arc::new(SystemClock::default())),
            ids,
            limiter: Limiter::new(self.limits),
            owner,
            lease_ttl: self.lease_ttl,
            policy: self.policy,
            policy_version,
            bounds: self.bounds,
            keeping: self.keeping,
        };
        Engine {
            env: Arc::new(env),
            active: Arc::default(),
        }
    }
}
