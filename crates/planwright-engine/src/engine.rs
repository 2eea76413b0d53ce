//! The engine: plans in, runs out. Cheap to clone; everything it knows is in the store.

use crate::context::GroupedStore;
use crate::context::{
    ActiveRuns, AgentSettings, Clients, ConcurrencyLimits, Context, DispatchSettings, Limiter,
    LogKeeper, Observer, OfferDesk, Ports, RecentReviews, Retention, RetentionPorts, RunFamilies,
    Settings, ToolsWithWorkers, WorkerTools,
};
use crate::journal::journals::Journals;
use crate::maintenance::Maintenance;
use crate::memory::{
    MemoryArtifacts, MemorySecrets, MemoryStore, NoExecutors, NoLeftovers, NoModel, NoStepLogs,
    NoSurroundings, RandomIds, SystemClock,
};
use crate::overview::Overview;
use crate::planner::Planner;
use crate::port::{
    Artifacts, Clock, Executors, Ids, Leftovers, Model, Offers, Outbox, OwnerId, RetentionStore,
    Secrets, StepLogs, Store, Surroundings, Tokens, Tools,
};
use crate::redaction::known_secrets::Redaction;
use crate::review::briefing::Briefings;
use crate::review::inbox::Inbox;
use crate::review::plans::Plans;
use crate::review::trial::Trials;
use crate::run::runs::Runs;
use crate::session::{Sessions, start_looking};
use crate::worker::Workers;
use planwright_core::plan::Bounds;
use planwright_core::planning::Prompts;
use planwright_core::policy::Policy;
use planwright_core::time::Timestamp;
use planwright_core::tool::Catalog;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs plans. See [`Engine::builder`].
///
/// The engine itself only opens facades, one for each area; all of them share its context.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) context: Arc<Context>,
}

/// Puts an engine together. Without a store everything lives in memory and ends with the process.
#[derive(Debug)]
pub struct EngineBuilder {
    store: Option<Arc<dyn Store>>,
    artifacts: Option<Arc<dyn Artifacts>>,
    retention_ports: Option<RetentionPorts>,
    tokens: Option<Arc<dyn Tokens>>,
    tools: Arc<dyn Tools>,
    secrets: Option<Arc<dyn Secrets>>,
    model: Option<Arc<dyn Model>>,
    prompts: Arc<Prompts>,
    surroundings: Option<Arc<dyn Surroundings>>,
    executors: Option<Arc<dyn Executors>>,
    leftovers: Option<Arc<dyn Leftovers>>,
    step_logs: Option<Arc<dyn StepLogs>>,
    agents: AgentSettings,
    call_timeout: Duration,
    stored_bytes: u64,
    redaction: Redaction,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn Ids>>,
    limits: ConcurrencyLimits,
    owner: Option<OwnerId>,
    lease_ttl: Duration,
    policy: Arc<Policy>,
    policy_version: Option<String>,
    bounds: Bounds,
    retention: Retention,
    offers: Option<Arc<dyn Offers>>,
    dispatch: DispatchSettings,
}

impl Engine {
    /// The version of the built-in policy: read-only tools may run, everything else is asked about.
    pub const DEFAULT_POLICY: &'static str = "default-1";

    /// The time limit of calls whose step names none, unless the operator chose another.
    pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(600);

    /// Bytes that one principal may bring into the store unless the operator says otherwise.
    pub const DEFAULT_STORED_BYTES: u64 = 10 << 30;

    /// Begins to build an engine over these tools.
    pub fn builder(tools: Arc<dyn Tools>) -> EngineBuilder {
        EngineBuilder {
            store: None,
            artifacts: None,
            retention_ports: None,
            tokens: None,
            tools,
            secrets: None,
            model: None,
            prompts: Arc::default(),
            surroundings: None,
            executors: None,
            leftovers: None,
            step_logs: None,
            agents: AgentSettings::default(),
            call_timeout: Self::DEFAULT_CALL_TIMEOUT,
            stored_bytes: Self::DEFAULT_STORED_BYTES,
            redaction: Redaction::default(),
            clock: None,
            ids: None,
            limits: ConcurrencyLimits::default(),
            owner: None,
            lease_ttl: Duration::from_secs(30),
            policy: Arc::default(),
            policy_version: None,
            bounds: Bounds::default(),
            retention: Retention::default(),
            offers: None,
            dispatch: DispatchSettings::default(),
        }
    }

    /// The review life of plans: propose, edit, discuss, approve, put away.
    pub fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    /// What approvers read before they approve.
    pub fn briefings(&self) -> Briefings {
        Briefings::new(&self.context)
    }

    /// What a plan, a run or an edit would be, without calling or storing anything.
    pub fn trials(&self) -> Trials {
        Trials::new(&self.context)
    }

    /// The life of runs: start, resume, command, fork, undo.
    pub fn runs(&self) -> Runs {
        Runs::new(&self.context)
    }

    /// The sessions of clients of the gateway.
    pub fn sessions(&self) -> Sessions {
        Sessions::new(&self.context)
    }

    /// Plans that models write.
    pub fn planner(&self) -> Planner {
        Planner::new(&self.context).looking_with(start_looking)
    }

    /// The plans that people have to look at.
    pub fn inbox(&self) -> Inbox {
        Inbox::new(&self.context)
    }

    /// All plans at a glance: searched lists and figures.
    pub fn overview(&self) -> Overview {
        Overview::new(&self.context)
    }

    /// The workers, what waits for them, and the queues of the broker.
    pub fn workers(&self) -> Workers {
        Workers::new(&self.context)
    }

    /// What time does to plans and runs.
    pub fn maintenance(&self) -> Maintenance {
        Maintenance::new(&self.context)
    }

    /// Reading journals, their feed and large values.
    pub fn journals(&self) -> Journals {
        Journals::new(&self.context)
    }

    /// The operator's policy.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.context.settings.policy
    }

    /// The version of the policy that is part of every digest.
    pub fn policy_version(&self) -> &str {
        &self.context.settings.policy_version
    }

    /// The bounds on documents and values.
    pub fn bounds(&self) -> &Bounds {
        &self.context.settings.bounds
    }

    /// The name under which this engine owns runs.
    pub fn owner(&self) -> &OwnerId {
        &self.context.settings.owner
    }

    /// The time by the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.context.ports.clock.now()
    }

    /// Randomness for new ids and for delays that must not coincide.
    pub fn entropy(&self) -> u64 {
        self.context.ports.ids.entropy()
    }

    /// The secrets known in this process, to mask them in what is shown.
    pub fn redaction(&self) -> &Redaction {
        &self.context.redaction
    }

    /// The place of values that are too large for the journal.
    pub fn artifacts(&self) -> &Arc<dyn Artifacts> {
        &self.context.ports.artifacts
    }

    /// The lines that servers logged during the calls of a run.
    pub fn step_logs(&self) -> &Arc<dyn StepLogs> {
        &self.context.ports.step_logs
    }

    /// The language models.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.context.ports.model
    }

    /// The tools known now.
    pub fn catalog(&self) -> Catalog {
        self.context.catalog()
    }

    /// Lets every run finish the calls that are in flight and then lets go of it where it is, as a
    /// crash would, but with nothing lost. There is no way back: the process is about to end.
    pub fn drain(&self) {
        self.context.active.drain();
    }

    /// Says that a person may be there while calls are under way: what a server asks in the middle of
    /// one is held open for them, within the time of the call. Holds for every run that this engine
    /// starts or takes over from here on.
    pub fn hold_questions(&self) {
        let holds = &self.context.active.holds_questions;
        holds.store(true, Ordering::Relaxed);
    }

    /// Tells this observer about every run that this engine starts or takes over from here on.
    pub fn watch(&self, observer: Arc<dyn Observer>) {
        self.context.active.watch_all(observer);
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

    /// Lets journals leave the database for sealed files, and what was sealed be removed. The
    /// journals that these webhooks were not told of yet stay.
    #[must_use]
    pub fn retention_store(
        mut self,
        store: Arc<dyn RetentionStore>,
        outbox: Arc<dyn Outbox>,
        endpoints: Vec<String>,
    ) -> Self {
        self.retention_ports = Some(RetentionPorts {
            store,
            outbox,
            endpoints,
        });
        self
    }

    /// Sets the tokens. An approver who uses a token needs one that is not revoked before the run
    /// begins.
    #[must_use]
    pub fn tokens(mut self, tokens: Arc<dyn Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Returns where `${secret.NAME}` comes from, and the memory of everything secret that the
    /// tools share.
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

    /// Tells planners about the place in which plans will work.
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

    /// Ends what interrupted calls left running, before they are made again. Without it no call
    /// leaves anything.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Arc<dyn Leftovers>) -> Self {
        self.leftovers = Some(leftovers);
        self
    }

    /// Keeps what servers log during calls. Without it those lines are told live and forgotten.
    #[must_use]
    pub fn step_logs(mut self, step_logs: Arc<dyn StepLogs>) -> Self {
        self.step_logs = Some(step_logs);
        self
    }

    /// Sets what the operator decided about executors.
    #[must_use]
    pub fn agents(mut self, agents: AgentSettings) -> Self {
        self.agents = agents;
        self
    }

    /// Sets the time limit of calls whose step names none.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Sets how many bytes one principal may bring into the store: versions, what belongs to them, and
    /// comments.
    #[must_use]
    pub fn stored_bytes(mut self, limit: u64) -> Self {
        self.stored_bytes = limit;
        self
    }

    /// Sets the clock. Without one the engine uses the time of the system.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the source of ids. Without one they are random.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Limits over all runs of this engine.
    #[must_use]
    pub fn limits(mut self, limits: ConcurrencyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The name under which this engine owns runs. It must be unique among living engines.
    #[must_use]
    pub fn owner(mut self, owner: OwnerId) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Sets how long a lease on a run lasts without being renewed.
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

    /// Sets the bounds on documents and values.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Returns how long things are waited for and kept.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Lets workers carry out steps: the offers that they take, and which steps these are. Also what a worker takes
    /// comes from there.
    #[must_use]
    pub fn workers(mut self, offers: Arc<dyn Offers>, dispatch: DispatchSettings) -> Self {
        self.offers = Some(offers);
        self.dispatch = dispatch;
        self
    }

    /// Says which steps workers carry out, where there is no store that could offer them: these steps fail.
    #[must_use]
    pub fn dispatch(mut self, dispatch: DispatchSettings) -> Self {
        self.dispatch = dispatch;
        self
    }

    /// Builds the engine, with adapters in memory for every port that was not set.
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
        let worker_tools = Arc::new(WorkerTools::default());
        let tools: Arc<dyn Tools> = if self.dispatch.capabilities.is_empty() {
            self.tools
        } else {
            Arc::new(ToolsWithWorkers {
                own: self.tools,
                workers: Arc::clone(&worker_tools),
            })
        };
        let grouped = GroupedStore::new(
            self.store
                .unwrap_or_else(|| Arc::new(MemoryStore::default())),
        );
        let ports = Ports {
            store: Arc::<GroupedStore>::clone(&grouped),
            grouped,
            artifacts: self
                .artifacts
                .unwrap_or_else(|| Arc::new(MemoryArtifacts::default())),
            retention: self.retention_ports,
            tokens: self.tokens,
            tools,
            offers: self.offers,
            secrets: self
                .secrets
                .unwrap_or_else(|| Arc::new(MemorySecrets::default())),
            model: self.model.unwrap_or_else(|| Arc::new(NoModel)),
            surroundings: self
                .surroundings
                .unwrap_or_else(|| Arc::new(NoSurroundings)),
            executors: self.executors.unwrap_or_else(|| Arc::new(NoExecutors)),
            leftovers: self.leftovers.unwrap_or_else(|| Arc::new(NoLeftovers)),
            step_logs: self.step_logs.unwrap_or_else(|| Arc::new(NoStepLogs)),
            clock: self
                .clock
                .unwrap_or_else(|| Arc::new(SystemClock::default())),
            ids,
        };
        let settings = Settings {
            policy: self.policy,
            policy_version,
            bounds: self.bounds,
            owner,
            lease_ttl: self.lease_ttl,
            retention: self.retention,
            agents: self.agents,
            call_timeout: self.call_timeout,
            stored_bytes: self.stored_bytes,
            prompts: self.prompts,
            dispatch: self.dispatch,
        };
        let active = ActiveRuns::default();
        active.watch_all(Arc::new(LogKeeper {
            logs: Arc::clone(&ports.step_logs),
            clock: Arc::clone(&ports.clock),
        }));
        Engine {
            context: Arc::new(Context {
                ports,
                settings,
                redaction: self.redaction,
                limiter: Limiter::new(self.limits),
                active,
                desk: OfferDesk::default(),
                worker_tools,
                clients: Clients::default(),
                families: RunFamilies::default(),
                reviews: RecentReviews::default(),
                overview: tokio::sync::Mutex::default(),
                kept_times: tokio::sync::Mutex::default(),
            }),
        }
    }
}
