//! A service of its own for each test: the whole application on a free port of this process, over
//! stores in memory.

use crate::counting_store::CountingStore;
use crate::tools::{MemoryFiles, tools};
use planwright_api::LogLine;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::policy::{Policy, PolicyDocument, Role};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_engine::Engine;
use planwright_engine::access::{Grant, mint};
use planwright_engine::memory::{
    ManualClock, MemoryArtifacts, MemoryNotes, MemoryPasses, MemoryPasskeys, MemoryStore,
    MemoryTokens, NoModel, SystemClock,
};
use planwright_engine::port::{
    Assertion, BoxFuture, Ceremony, Clock, MadePasskey, Model, Passkey, PasskeyFault,
    PasskeyVerifier, PlanFiles, Registration, TokenId, Tokens as _,
};
use planwright_server::Service as Parts;
use planwright_server::http::{AllowedHost, Http, ServeError, Settings, listen, serve};
use planwright_testing::service::ServiceClient;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Everything a test may want to be different.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    /// The operator's `[policy]`, as JSON.
    pub(crate) policy: Value,
    /// The operator's `[roles]`, as JSON.
    pub(crate) roles: Value,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Sessions, for two services that are one after a restart.
    pub(crate) passes: Arc<MemoryPasses>,
    /// What services leave for each other.
    pub(crate) notes: Arc<MemoryNotes>,
    /// Bytes that one principal may bring into the store.
    pub(crate) stored_bytes: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            policy: json!({}),
            roles: Value::Null,
            model: Arc::new(NoModel),
            clock: Arc::new(SystemClock::new()),
            passes: Arc::default(),
            notes: Arc::default(),
            stored_bytes: Engine::DEFAULT_STORED_BYTES,
        }
    }
}

/// A running service.
pub(crate) struct Service {
    runtime: Option<Runtime>,
    served: Option<JoinHandle<Result<(), ServeError>>>,
    http: Http,
    tokens: Arc<MemoryTokens>,
    pub(crate) store: Arc<CountingStore>,
    /// The files that tools have written.
    pub(crate) files: MemoryFiles,
    projected: Arc<ProjectedPlans>,
    client: ServiceClient,
}

impl std::ops::Deref for Service {
    type Target = ServiceClient;

    fn deref(&self) -> &ServiceClient {
        &self.client
    }
}

/// Believes devices that repeat the challenge and the origin, and takes what they made as an id.
#[derive(Debug)]
struct Repeating;

impl Repeating {
    fn check(ceremony: Ceremony<'_>, said: &[u8]) -> Result<(), PasskeyFault> {
        let expected = [ceremony.challenge, ceremony.origin.as_bytes()].concat();
        if said == expected {
            Ok(())
        } else {
            Err(PasskeyFault::OtherQuestion)
        }
    }
}

impl PasskeyVerifier for Repeating {
    fn check_registration(
        &self,
        ceremony: Ceremony<'_>,
        said: &Registration,
    ) -> Result<MadePasskey, PasskeyFault> {
        Self::check(ceremony, &said.client_data)?;
        Ok(MadePasskey {
            id: said.attestation.clone(),
            key: Vec::new(),
            counter: 0,
        })
    }

    fn check_assertion(
        &self,
        ceremony: Ceremony<'_>,
        passkey: &Passkey,
        said: &Assertion,
    ) -> Result<u32, PasskeyFault> {
        Self::check(ceremony, &said.client_data)?;
        Ok(passkey.counter + 1)
    }
}

/// The plans whose files had to be written, in order.
#[derive(Debug, Default)]
struct ProjectedPlans(Mutex<Vec<String>>);

impl PlanFiles for ProjectedPlans {
    fn write<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap().push(plan.to_string());
        Box::pin(async { Ok(()) })
    }
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::start(Setup::default())
    }

    /// A service that asks this model.
    pub(crate) fn with_model(model: impl Model + 'static) -> Self {
        Self::start(Setup {
            model: Arc::new(model),
            ..Setup::default()
        })
    }

    pub(crate) fn start(setup: Setup) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let entered = runtime.enter();
        let files = MemoryFiles::default();
        let tokens = Arc::new(MemoryTokens::new());
        let policy = PolicyDocument {
            roles: serde_json::from_value(setup.roles).unwrap(),
            ..serde_json::from_value(setup.policy).unwrap()
        };
        let policy = Policy::read(&policy).unwrap();
        let store = MemoryStore::with_clock(Arc::clone(&setup.clock));
        let store = Arc::new(CountingStore::new(store));
        let engine = Engine::builder(Arc::new(tools(&files)))
            .clock(setup.clock)
            .stored_bytes(setup.stored_bytes)
            .store(
                Arc::<CountingStore>::clone(&store),
                Arc::new(MemoryArtifacts::default()),
            )
            .tokens(Arc::<MemoryTokens>::clone(&tokens))
            .policy(Arc::new(policy))
            .model(setup.model)
            .build();
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let settings = Settings {
            hosts: AllowedHost::of_address(address),
            grace: Duration::from_millis(100),
            ..setup.settings
        };
        let projected = Arc::new(ProjectedPlans::default());
        let parts = Parts {
            engine,
            tokens: Arc::<MemoryTokens>::clone(&tokens),
            passes: setup.passes,
            passkeys: Arc::new(MemoryPasskeys::new()),
            passkey_verifier: Arc::new(Repeating),
            files: Arc::<ProjectedPlans>::clone(&projected),
            answers: store.answers(),
            notes: setup.notes,
            rates: None,
        };
        let http = Http::new(parts, settings);
        let served = http.clone();
        let served = runtime.spawn(async move { serve(&served, listener, None).await });
        drop(entered);
        let mut service = Self {
            runtime: Some(runtime),
            served: Some(served),
            http,
            tokens,
            store,
            files,
            projected,
            client: ServiceClient {
                host: address.to_string(),
                admin: String::new(),
            },
        };
        service.client.admin = service.token("admin", "person", "ada");
        service
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(future)
    }

    /// Does something beside the service.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.as_ref().unwrap().spawn(work);
    }

    /// Waits until the service has ended by itself.
    pub(crate) fn ended(&mut self) -> Result<(), ServeError> {
        let served = self.served.take().unwrap();
        self.block_on(served).unwrap()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.http.service.engine
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    fn now(&self) -> planwright_core::time::Timestamp {
        self.engine().now()
    }

    pub(crate) fn token(&self, role: &str, kind: &str, name: &str) -> String {
        self.token_with_id(role, kind, name).1
    }

    /// Makes a token and returns its id with it.
    pub(crate) fn token_with_id(&self, role: &str, kind: &str, name: &str) -> (TokenId, String) {
        let grant = Grant {
            to: Principal {
                kind: [
                    PrincipalKind::Person,
                    PrincipalKind::Agent,
                    PrincipalKind::Service,
                ]
                .into_iter()
                .find(|known| known.as_str() == kind)
                .unwrap(),
                name: name.to_owned(),
            },
            role: [
                Role::Viewer,
                Role::Author,
                Role::Operator,
                Role::Approver,
                Role::Admin,
            ]
            .into_iter()
            .find(|known| known.as_str() == role)
            .unwrap(),
            lifetime: None,
        };
        let minted = mint(&grant, self.now()).unwrap();
        self.block_on(self.tokens.add(&minted.token)).unwrap();
        (minted.token.id.clone(), minted.text.expose().to_owned())
    }

    pub(crate) fn revoke_token(&self, id: &TokenId) {
        assert!(self.block_on(self.tokens.revoke(id, self.now())).unwrap());
    }

    /// The plans whose files the service had to write, in order.
    pub(crate) fn projected(&self) -> Vec<String> {
        self.projected.0.lock().unwrap().clone()
    }

    /// The journal of a stream as `log --json` prints it.
    pub(crate) fn log(&self, stream: &StreamName) -> Vec<Value> {
        let journals = self.engine().journals();
        let records = self.block_on(journals.read(stream, 0, 1_000)).unwrap();
        let line = |record| serde_json::to_value(LogLine::new(stream, record).unwrap()).unwrap();
        records.iter().map(line).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.http.stop_now.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A clock that stands still, for tests in which time is what matters.
pub(crate) fn manual_clock() -> ManualClock {
    ManualClock::at(planwright_core::time::Timestamp::from_millis(
        1_800_000_000_000,
    ))
}
