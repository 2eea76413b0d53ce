//! A service over a database in a directory of its own.

use crate::client::{Answer, Client};
use planwright_adapters::sqlite::SqliteStore;
use planwright_adapters::webauthn::WebAuthn;
use planwright_core::id::PlanId;
use planwright_core::plan::Document;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_core::run::Run;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::access::{Grant, mint};
use planwright_engine::memory::{
    MemoryArtifacts, MemoryNotes, MemoryPasses, MemoryPasskeys, MemoryTokens,
};
use planwright_engine::port::{BoxFuture, LogLevel, LoggedLine, PlanFiles, Progress, Tokens as _};
use planwright_engine::{Engine, FunctionTools, RunOptions};
use planwright_server::Service;
use planwright_server::events::EventsOptions;
use planwright_server::http::{AllowedHost, Http, Settings, listen, serve};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often a stream is asked for while there is no room for it.
const MAX_ASKED: usize = 100;

/// One life of the service.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    http: Http,
    served: JoinHandle<()>,
}

#[derive(Debug)]
struct NoFiles;

impl PlanFiles for NoFiles {
    fn write<'a>(&'a self, _: &'a PlanId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// `t.work` takes `ms`, tells `progress` so often, and logs `log` lines.
fn tools() -> FunctionTools {
    let schema = json!({ "type": "object" });
    let work = ToolDefinition::new("t", "work", "Works.", schema)
        .with_annotations(Annotations::read_only());
    FunctionTools::new().with(work, |call| async move {
        let number = |name: &str| {
            call.args
                .get(name)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        for done in 0..number("progress") {
            let message = Some("on the way".to_owned());
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            call.progress.report(Progress {
                done: done as f64,
                total: None,
                message,
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for line in 1..=number("log") {
            call.progress.report_log(LoggedLine {
                level: LogLevel::Notice,
                logger: None,
                text: format!("line {line}"),
            });
        }
        tokio::time::sleep(Duration::from_millis(number("ms"))).await;
        match call.args.get("fail").and_then(Value::as_str) {
            Some(text) => Err(planwright_engine::port::CallError::failed(text)),
            None => Ok(json!({ "from": call.step.to_string() })),
        }
    })
}

impl World {
    pub(crate) async fn start(directory: &Path, events: EventsOptions) -> Self {
        let store = SqliteStore::open(&directory.join("planwright.db")).unwrap();
        let store = Arc::new(store);
        let artifacts = Arc::new(MemoryArtifacts::default());
        let engine = Engine::builder(Arc::new(tools()))
            .store(Arc::<SqliteStore>::clone(&store), artifacts)
            .build();
        let grant = Grant {
            to: Principal::person("ada"),
            role: Role::Admin,
            lifetime: None,
        };
        let minted = mint(&grant, engine.now()).unwrap();
        let tokens = Arc::new(MemoryTokens::new());
        tokens.add(&minted.token).await.unwrap();
        let service = Service {
            engine: engine.clone(),
            tokens,
            passes: Arc::new(MemoryPasses::new()),
            passkeys: Arc::new(MemoryPasskeys::new()),
            passkey_verifier: Arc::new(WebAuthn),
            files: Arc::new(NoFiles),
            answers: store,
            notes: Arc::new(MemoryNotes::new()),
            rates: None,
        };
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let settings = Settings {
            hosts: AllowedHost::of_address(address),
            requests_per_second: 100_000,
            burst: 100_000,
            grace: Duration::from_secs(2),
            events,
            ..Settings::default()
        };
        let http = Http::new(service, settings);
        let served = tokio::spawn({
            let http = http.clone();
            async move { serve(&http, listener, None).await.unwrap() }
        });
        Self {
            engine,
            address,
            token: minted.text.expose().to_owned(),
            http,
            served,
        }
    }

    /// Stops the service in good order.
    pub(crate) async fn stop(self) {
        self.http.stop.cancel();
        self.served.await.unwrap();
    }

    pub(crate) fn tell_to_stop(&self) {
        self.http.stop.cancel();
    }

    pub(crate) fn streams(&self) -> usize {
        self.http.events.streams()
    }

    /// Asks for a stream, again if the service has too much to do for this caller at the moment.
    pub(crate) async fn listen(&self, path: &str, last: Option<&str>) -> Client {
        for _ in 0..MAX_ASKED {
            match self.try_listen(path, last).await {
                Ok(client) => return client,
                Err(answer) if matches!(answer.status, 429 | 503) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(answer) => panic!("{path}: {answer:?}"),
            }
        }
        panic!("{path}: there was never room for it");
    }

    pub(crate) async fn try_listen(
        &self,
        path: &str,
        last: Option<&str>,
    ) -> Result<Client, Answer> {
        Client::open(self.address, path, &self.token, "text/event-stream", last).await
    }

    pub(crate) async fn get(&self, path: &str, accept: &str) -> Answer {
        let client = Client::open(self.address, path, &self.token, accept, None).await;
        match client {
            Ok(client) => client.into_answer().await,
            Err(answer) => answer,
        }
    }

    /// The events of a plan as one list.
    pub(crate) async fn list(&self, plan: &str) -> Vec<Value> {
        let answer = self
            .get(&format!("/plan/{plan}/events"), "application/json")
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["events"].as_array().unwrap().clone()
    }

    pub(crate) async fn propose(&self, document: Value) {
        let document: Document = serde_json::from_value(document).unwrap();
        self.engine
            .plans()
            .propose(document, &Principal::person("ada"))
            .await
            .unwrap();
    }

    /// Proposes, approves and runs until the run has ended or waits.
    pub(crate) async fn run(&self, document: Value) -> Run {
        let document: Document = serde_json::from_value(document).unwrap();
        let options = RunOptions::new(Principal::person("ada"));
        self.engine
            .runs()
            .run_document(document, options)
            .await
            .unwrap()
            .wait()
            .await
            .unwrap()
    }
}

/// A plan of `count` steps, one after the other.
pub(crate) fn chain(id: &str, count: usize, ms: u64) -> Value {
    let step = |number: usize| {
        let before: Vec<String> = (number > 1)
            .then(|| format!("s{}", number - 1))
            .into_iter()
            .collect();
        json!({ "id": format!("s{number}"), "title": format!("step_{number}"), "tool": "t.work",
                "args": { "ms": ms }, "dependsOn": before })
    };
    json!({ "id": id, "title": "A chain", "steps": (1..=count).map(step).collect::<Vec<_>>() })
}
