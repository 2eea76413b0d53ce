//! The world the engine runs in here: virtual time, tools that do what their arguments say, a store
//! in memory that can be told to fail.

use futures::FutureExt as _;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Entry, StreamName, decode};
use planwright_core::plan::Document;
use planwright_core::policy::Policy;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{Review, ReviewRefusal};
use planwright_core::run::{
    Asked, CallEffect, Question, Run, RunEvent, RunReport, Shown, StepReport,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use planwright_engine::memory::{MemoryArtifacts, MemoryStore, SequentialIds};
use planwright_engine::port::{BoxFuture, Call, CallError, Clock, Outcome, OwnerId, Store, Tools};
use planwright_engine::{
    Candidate, ConcurrencyLimits, Engine, EngineBuilder, RunOptions, StartRunError,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Follows tokio's clock, which stands still while anything can happen. Survives the runtime it was
/// read in.
#[derive(Debug)]
pub(crate) struct VirtualClock(Mutex<Hands>);

#[derive(Debug, Clone, Copy)]
struct Hands {
    now: Timestamp,
    /// Time for which the machine slept.
    slept: Duration,
    anchor: Instant,
}

impl VirtualClock {
    fn new() -> Self {
        Self(Mutex::new(Hands {
            now: Timestamp::from_millis(1_700_000_000_000),
            slept: Duration::ZERO,
            anchor: Instant::now(),
        }))
    }

    /// Goes on from `now` in another runtime, whose own clock begins anew.
    pub(crate) fn carry_over(&self, now: Timestamp) {
        *self.0.lock().unwrap() = Hands {
            now,
            slept: Duration::ZERO,
            anchor: Instant::now(),
        };
    }

    /// The machine sleeps for so long.
    pub(crate) fn suspend(&self, time: Duration) {
        let mut hands = self.0.lock().unwrap();
        hands.now = hands.now.plus(time);
        hands.slept += time;
    }

    /// The operator sets the time of day forwards.
    pub(crate) fn set_forward(&self, by: Duration) {
        let mut hands = self.0.lock().unwrap();
        hands.now = hands.now.plus(by);
    }

    /// The operator sets the time of day back.
    pub(crate) fn set_back(&self, by: Duration) {
        let mut hands = self.0.lock().unwrap();
        hands.now = hands.now.minus(by);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let hands = *self.0.lock().unwrap();
        hands.now.plus(hands.anchor.elapsed())
    }

    fn uptime(&self) -> Duration {
        let hands = *self.0.lock().unwrap();
        hands.anchor.elapsed() + hands.slept
    }

    fn awake(&self) -> Duration {
        self.0.lock().unwrap().anchor.elapsed()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let left = at.since(self.now());
        Box::pin(tokio::time::sleep(left))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// What became of one call, as the tool saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) run: String,
    pub(crate) step: String,
    pub(crate) tool: String,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) key: String,
    pub(crate) args: Value,
    /// What people had answered by then.
    pub(crate) answered: Value,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) made: Vec<Made>,
    pub(crate) told_to_stop: Vec<(String, Timestamp)>,
    /// Steps that were called before their start was durable.
    undurable: Vec<String>,
    in_flight: BTreeMap<String, usize>,
    /// The most calls that were in flight at once, by tool and by server (`server.`), and over all
    /// (the empty name).
    pub(crate) peaks: BTreeMap<String, usize>,
}

/// Tools that do what their arguments say: `ms` to take, `value` to return (the step's id if
/// absent) or `page`, the number of one of the pages, `fail` to fail with that text as often as
/// `times` says, `retryable`, `ask` to ask a person so often first, `panic`, and `stop`, what they
/// say when told to stop: `cancelled` (the default), `lost`, or `never`.
///
/// `r.read` is read-only, `w.write` unsafe, `k.put` keyed, `s.save` safe but no reader. Every call
/// checks that its start is already durable; only what reads in a session of the gateway may be
/// written later.
#[derive(Debug)]
pub(crate) struct ScriptedTools {
    pub(crate) log: Arc<Mutex<Log>>,
    pub(crate) hidden: Mutex<BTreeSet<String>>,
    /// What the tools say about themselves.
    pub(crate) description: Mutex<String>,
    pub(crate) serial_writes: bool,
    pub(crate) server_limit: Option<usize>,
    /// Texts that come from outside: no plan has them in it.
    pub(crate) pages: Vec<String>,
    store: OnceLock<Arc<MemoryStore>>,
    clock: Arc<VirtualClock>,
}

const TOOLS: [(&str, &str, EffectClass, bool); 6] = [
    ("r", "read", EffectClass::Safe, true),
    ("r", "look", EffectClass::Safe, true),
    ("w", "write", EffectClass::Unsafe, false),
    ("w", "erase", EffectClass::Unsafe, false),
    ("k", "put", EffectClass::Keyed, false),
    ("s", "save", EffectClass::Safe, false),
];

impl ScriptedTools {
    fn durable_start(&self, call: &Call) {
        let Some(store) = self.store.get() else {
            return;
        };
        if call.plan.as_str().starts_with("session-") && call.tool.server == "r" {
            return;
        }
        let started = entries(&**store, &call.run).into_iter().any(|entry| {
            matches!(entry.event, RunEvent::AttemptStarted { step, attempt, .. }
                if step == call.step && attempt == call.attempt)
        });
        if !started {
            // A panic here would be taken for the tool's own.
            self.log
                .lock()
                .unwrap()
                .undurable
                .push(call.step.to_string());
        }
    }
}

/// A run's journal as it stands.
pub(crate) fn entries(store: &dyn Store, run: &RunId) -> Vec<Entry<RunEvent>> {
    let stream = StreamName::Run(run.clone());
    let records = store
        .read(&stream, 0, usize::MAX)
        .now_or_never()
        .expect("memory answers at once")
        .unwrap();
    records
        .iter()
        .map(|record| decode(record).expect("what was written can be read"))
        .collect()
}

impl Log {
    fn begin(&mut self, names: &[String]) {
        for name in names {
            let count = self.in_flight.entry(name.clone()).or_default();
            *count += 1;
            let peak = self.peaks.entry(name.clone()).or_default();
            *peak = (*peak).max(*count);
        }
    }
}

/// Notes the end of a call, however it ends.
struct InFlight(Arc<Mutex<Log>>, Vec<String>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut log = self.0.lock().unwrap();
        for name in &self.1 {
            *log.in_flight.get_mut(name).unwrap() -= 1;
        }
    }
}

impl Tools for ScriptedTools {
    fn catalog(&self) -> Catalog {
        let hidden = self.hidden.lock().unwrap();
        let description = self.description.lock().unwrap();
        let shown = TOOLS
            .iter()
            .filter(|(server, tool, ..)| !hidden.contains(&format!("{server}.{tool}")));
        Catalog::new(shown.map(|&(server, name, class, read_only)| {
            let annotations = if read_only {
                Annotations::read_only()
            } else {
                Annotations::default()
            };
            let definition =
                ToolDefinition::new(server, name, &description, json!({"type": "object"}));
            let mut tool = KnownTool::new(definition.with_annotations(annotations), class);
            tool.key_argument = (class == EffectClass::Keyed).then(|| "key".to_owned());
            tool
        }))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.durable_start(&call);
        let log = Arc::clone(&self.log);
        let clock = Arc::clone(&self.clock);
        let names = vec![
            String::new(),
            format!("{}.", call.tool.server),
            call.tool.to_string(),
        ];
        let earlier = {
            let mut log = log.lock().unwrap();
            let earlier = log
                .made
                .iter()
                .filter(|made| made.step == call.step.as_str())
                .count() as u64;
            log.made.push(Made {
                run: call.run.to_string(),
                step: call.step.to_string(),
                tool: call.tool.to_string(),
                attempt: call.attempt,
                at: clock.now(),
                key: call.idempotency_key.clone(),
                args: Value::Object(call.args.clone()),
                answered: serde_json::to_value(&call.answered).unwrap(),
            });
            log.begin(&names);
            earlier
        };
        let in_flight = InFlight(Arc::clone(&log), names);
        let page = call.args.get("page").and_then(Value::as_u64);
        let page = page.and_then(|number| self.pages.get(usize::try_from(number).ok()?).cloned());
        Box::pin(async move {
            let _in_flight = in_flight;
            let number = |key: &str| call.args.get(key).and_then(Value::as_u64);
            let told = async {
                call.cancelled.cancelled().await;
                log.lock()
                    .unwrap()
                    .told_to_stop
                    .push((call.step.to_string(), clock.now()));
                match call.args.get("stop").and_then(Value::as_str) {
                    None | Some("cancelled") => CallError::Cancelled,
                    Some("lost") => CallError::Lost("the line broke".into()),
                    Some(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(number("ms").unwrap_or_default())) => {}
                error = told => return Err(error),
            }
            if let Some(message) = call.args.get("fail").and_then(Value::as_str)
                && earlier < number("times").unwrap_or(u64::MAX)
            {
                let retryable = call.args.get("retryable") == Some(&Value::Bool(true));
                return Err(CallError::Failed {
                    code: "tool_error".into(),
                    message: message.into(),
                    retryable,
                    effect: CallEffect::Unknown,
                });
            }
            if earlier < number("ask").unwrap_or_default() {
                let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
                let message = format!("question {earlier}");
                let question = Question {
                    key: "n".into(),
                    message,
                    schema,
                    url: None,
                };
                let asked = Asked {
                    questions: vec![question],
                    state: Some("state".into()),
                };
                return Err(CallError::InputRequired(Box::new(asked)));
            }
            assert!(!call.args.contains_key("panic"), "this tool panics");
            let value = page
                .map(Value::from)
                .or_else(|| call.args.get("value").cloned());
            Ok(value.unwrap_or_else(|| json!(call.step.as_str())))
        })
    }

    fn server_limit(&self, _: &str) -> Option<usize> {
        self.server_limit
    }

    fn serial_writes(&self, _: &str) -> bool {
        self.serial_writes
    }
}

/// Everything a test needs. Engines made here share the store.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    pub(crate) tools: Arc<ScriptedTools>,
    ids: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut ScriptedTools)) -> Self {
        let clock = Arc::new(VirtualClock::new());
        let store = Arc::new(MemoryStore::with_clock(Arc::<VirtualClock>::clone(&clock)));
        let mut tools = ScriptedTools {
            log: Arc::default(),
            hidden: Mutex::default(),
            description: Mutex::new("scripted".to_owned()),
            serial_writes: true,
            server_limit: None,
            pages: Vec::new(),
            store: OnceLock::from(Arc::clone(&store)),
            clock: Arc::clone(&clock),
        };
        adjust(&mut tools);
        Self {
            clock,
            store,
            artifacts: Arc::default(),
            tools: Arc::new(tools),
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    pub(crate) fn builder(&self, name: &str) -> EngineBuilder {
        let tools = Arc::<ScriptedTools>::clone(&self.tools);
        let clock = Arc::<VirtualClock>::clone(&self.clock);
        let ids = SequentialIds::starting_at(self.ids.fetch_add(1_000_000, Ordering::Relaxed));
        Engine::builder(tools)
            .clock(clock)
            .ids(Arc::new(ids))
            .owner(OwnerId(name.to_owned()))
            // Calls of these tests take hours of virtual time.
            .call_timeout(Duration::from_secs(48 * 3600))
    }

    pub(crate) fn engine(&self, name: &str) -> Engine {
        let store = Arc::<MemoryStore>::clone(&self.store);
        let artifacts = Arc::<MemoryArtifacts>::clone(&self.artifacts);
        self.builder(name).store(store, artifacts).build()
    }

    pub(crate) fn engine_with(&self, name: &str, limits: ConcurrencyLimits) -> Engine {
        let store = Arc::<MemoryStore>::clone(&self.store);
        let artifacts = Arc::<MemoryArtifacts>::clone(&self.artifacts);
        self.builder(name)
            .store(store, artifacts)
            .limits(limits)
            .build()
    }

    /// An engine under a policy, as it would be written in JSON.
    pub(crate) fn engine_under(&self, name: &str, policy: Value) -> Engine {
        let store = Arc::<MemoryStore>::clone(&self.store);
        let artifacts = Arc::<MemoryArtifacts>::clone(&self.artifacts);
        let policy = Policy::read(&serde_json::from_value(policy).unwrap()).unwrap();
        self.builder(name)
            .store(store, artifacts)
            .policy(Arc::new(policy))
            .build()
    }

    /// Proposes, approves and runs a plan to its end (or until it waits for a person).
    pub(crate) async fn run(&self, document: Value) -> Run {
        let engine = self.engine("one");
        let id = approved(&engine, document).await;
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap()
    }

    pub(crate) fn made(&self) -> Vec<Made> {
        let log = self.tools.log.lock().unwrap();
        assert!(
            log.undurable.is_empty(),
            "called before their start was durable: {:?}",
            log.undurable
        );
        log.made.clone()
    }

    /// The steps in the order they were called.
    pub(crate) fn called(&self) -> Vec<String> {
        self.made().into_iter().map(|made| made.step).collect()
    }

    pub(crate) fn calls_of(&self, step: &str) -> usize {
        self.called()
            .iter()
            .filter(|called| *called == step)
            .count()
    }

    pub(crate) fn peak(&self, name: &str) -> usize {
        self.tools
            .log
            .lock()
            .unwrap()
            .peaks
            .get(name)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn told_to_stop(&self) -> Vec<(String, Timestamp)> {
        self.tools.log.lock().unwrap().told_to_stop.clone()
    }
}

pub(crate) fn person() -> Principal {
    Principal::person("ada")
}

pub(crate) fn options() -> RunOptions {
    RunOptions::new(person())
}

pub(crate) fn document(value: Value) -> Document {
    serde_json::from_value(value).unwrap()
}

/// A plan of calls of `r.read`, from their ids, dependencies and arguments.
pub(crate) fn reads(steps: &[(&str, &[&str], Value)]) -> Value {
    let step = |(id, depends_on, args): &(&str, &[&str], Value)| json!({"id": id, "tool": "r.read", "dependsOn": depends_on, "args": args});
    json!({"id": "p", "steps": steps.iter().map(step).collect::<Vec<_>>()})
}

/// `n` steps one after the other.
pub(crate) fn chain(n: usize, tool: &str, ms: u64) -> Value {
    let step = |at: usize| {
        let before: Vec<String> = (at > 1)
            .then(|| format!("s{}", at - 1))
            .into_iter()
            .collect();
        json!({"id": format!("s{at}"), "tool": tool, "dependsOn": before, "args": {"ms": ms}})
    };
    json!({"id": "p", "steps": (1..=n).map(step).collect::<Vec<_>>()})
}

/// Proposes a plan and agrees to it.
pub(crate) async fn approved(engine: &Engine, value: Value) -> PlanId {
    let (review, findings) = engine
        .plans()
        .propose(document(value), &person())
        .await
        .unwrap();
    assert!(
        !findings
            .iter()
            .any(planwright_core::plan::Finding::is_error),
        "{findings:?}"
    );
    approve(engine, review.id(), &person()).await;
    review.id().clone()
}

/// A person agrees to what a run of the current version would do.
pub(crate) async fn approve(engine: &Engine, id: &PlanId, by: &Principal) {
    let (_, candidate) = candidate_of(engine, id).await;
    let shown = Shown::Digest(candidate.digest);
    engine
        .plans()
        .approve(id, &Map::new(), shown, by, Assurance::Terminal)
        .await
        .unwrap();
}

/// The plan as it is now, with what a run of it would do.
pub(crate) async fn candidate_of(engine: &Engine, id: &PlanId) -> (Review, Candidate) {
    let (review, _) = engine.plans().load_review(id).await.unwrap();
    let candidate = engine.plans().candidate(&review, &Map::new()).await;
    (review, candidate.unwrap())
}

/// A change that no person agreed to starts nothing.
pub(crate) async fn assert_waits_for_a_person(engine: &Engine, run: &RunId) {
    let refused = engine.runs().continue_adjusted(run, options()).await;
    assert!(
        matches!(
            refused,
            Err(StartRunError::Refused(ReviewRefusal::NotApproved))
        ),
        "{:?}",
        refused.err()
    );
}

pub(crate) fn report_of(run: &Run, step: &str) -> StepReport {
    let ix = run.plan().find(step).unwrap();
    StepReport::new(run, ix, run.updated_at())
}

pub(crate) fn status_of(run: &Run, step: &str) -> &'static str {
    report_of(run, step).status.as_str()
}

pub(crate) fn millis(run: &Run) -> u128 {
    RunReport::new(run, run.updated_at()).duration.as_millis()
}

/// Waits in virtual time.
pub(crate) async fn after(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
