//! A service of its own for each test: the whole application on a free port of this process, over
//! stores in memory.

use crate::counting_store::CountingStore;
use crate::http_client::{Reply, Request};
use crate::tools::{MemoryFiles, tools};
use planwright_api::LogLine;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::policy::{Policy, PolicyDocument, Role};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_engine::Engine;
use planwright_engine::access::{Grant, mint};
use planwright_engine::memory::{
    ManualClock, MemoryAnswers, MemoryArtifacts, MemoryStore, MemoryTokens, NoModel, SystemClock,
};
use planwright_engine::port::{BoxFuture, Clock, Model, PlanFiles, TokenId, Tokens as _};
use planwright_server::Service as Parts;
use planwright_server::http::{AllowedHost, Http, Settings, listen, serve};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Everything a test may want to be different.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    /// The operator's `[policy]`, as JSON.
    pub(crate) policy: Value,
    /// The operator's `[roles]`, as JSON.
    pub(crate) roles: Value,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            policy: json!({}),
            roles: Value::Null,
            model: Arc::new(NoModel),
            clock: Arc::new(SystemClock::new()),
        }
    }
}

/// A running service.
pub(crate) struct Service {
    runtime: Option<Runtime>,
    http: Http,
    tokens: Arc<MemoryTokens>,
    pub(crate) store: Arc<CountingStore>,
    /// The files that tools have written.
    pub(crate) files: MemoryFiles,
    projected: Arc<ProjectedPlans>,
    /// Host and port.
    pub(crate) host: String,
    /// The token of a person who may do everything.
    pub(crate) admin: String,
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
            files: Arc::<ProjectedPlans>::clone(&projected),
            answers: Arc::new(MemoryAnswers::default()),
        };
        let http = Http::new(parts, settings);
        let served = http.clone();
        runtime.spawn(async move { serve(&served, listener, None).await.unwrap() });
        drop(entered);
        let mut service = Self {
            runtime: Some(runtime),
            http,
            tokens,
            store,
            files,
            projected,
            host: address.to_string(),
            admin: String::new(),
        };
        service.admin = service.token("admin", "person", "ada");
        service
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(future)
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

    /// A request with the token of the person who may do everything.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.bare(method, path).token(&self.admin)
    }

    /// A request without a token.
    pub(crate) fn bare(&self, method: &str, path: &str) -> Request {
        Request {
            address: self.host.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("Host".to_owned(), self.host.clone())],
            body: None,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.request("GET", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.request("POST", path).json(body).send()
    }

    /// Posts a plan with these steps.
    #[track_caller]
    pub(crate) fn plan(&self, id: &str, steps: Value) -> Value {
        let plan =
            json!({ "id": id, "title": format!("Plan {id}"), "goal": "a test", "steps": steps });
        self.post("/plan", &plan).ends(201).json()
    }

    #[track_caller]
    pub(crate) fn approve(&self, id: &str) {
        self.post(
            &format!("/plan/{id}/approve"),
            &json!({ "decision": "approve", "version": 1 }),
        )
        .ends(200);
    }

    /// Begins a run and returns its id.
    #[track_caller]
    pub(crate) fn run(&self, id: &str) -> String {
        let begun = self
            .request("POST", &format!("/plan/{id}/run"))
            .send()
            .ends(202)
            .json();
        begun["runId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, id: &str) -> String {
        self.get(&format!("/plan/{id}")).ends(200).json()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, status: &str) {
        wait_until(&format!("{id} to be {status}"), || {
            self.status(id) == status
        });
    }

    /// The run with this id.
    #[track_caller]
    pub(crate) fn result(&self, id: &str, run: &str) -> Value {
        self.get(&format!("/plan/{id}/runs/{run}")).ends(200).json()
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

#[track_caller]
pub(crate) fn wait_until(awaited: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {awaited}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The step of a run's result.
#[track_caller]
pub(crate) fn step<'a>(result: &'a Value, id: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap();
    steps
        .iter()
        .find(|step| step["id"] == id)
        .unwrap_or_else(|| panic!("no step {id} in {result:#}"))
}

/// A step that calls a tool.
fn call(id: &str, tool: &str, args: Value, after: &[&str]) -> Value {
    json!({ "id": id, "title": format!("Step {id}"), "tool": tool, "args": args, "dependsOn": after })
}

pub(crate) fn echo(id: &str, value: impl Into<Value>, after: &[&str]) -> Value {
    call(id, "demo.echo", json!({ "value": value.into() }), after)
}

pub(crate) fn sleep(id: &str, ms: u64, after: &[&str]) -> Value {
    call(id, "demo.sleep", json!({ "ms": ms, "value": id }), after)
}

/// A call with an effect that is seen from outside: one line in `effects.txt`.
pub(crate) fn effect(id: &str, after: &[&str]) -> Value {
    let args = json!({ "path": "effects.txt", "content": format!("{id}\n") });
    call(id, "append_file", args, after)
}
