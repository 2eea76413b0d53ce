//! Counters, gauges and histograms, and how they are shown to Prometheus.

use super::run_metrics::RunMetrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use planwright_engine::Engine;
use planwright_engine::webhooks::{CourierWatch, DeliveryOutcome};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The names of figures, in one place: dashboards rely on them.
pub(super) mod name {
    pub(crate) const REQUESTS: &str = "http_server_request_duration_seconds";
    pub(crate) const REQUESTS_OPEN: &str = "http_server_active_requests";
    pub(crate) const CALLS: &str = "mcp_client_operation_duration_seconds";
    pub(crate) const RUNS_BEGUN: &str = "planwright_runs_begun_total";
    pub(crate) const RUNS_ENDED: &str = "planwright_runs_ended_total";
    pub(crate) const RUNS_EXECUTING: &str = "planwright_runs_executing";
    pub(crate) const STEPS: &str = "planwright_steps_total";
    pub(crate) const CALLS_OPEN: &str = "planwright_calls_in_flight";
    pub(crate) const COMMITS: &str = "planwright_store_commit_duration_seconds";
    pub(crate) const PLANS: &str = "planwright_plans";
    pub(crate) const RUNS: &str = "planwright_runs";
    pub(crate) const WAITING: &str = "planwright_waiting";
    pub(crate) const WAITING_LONGEST: &str = "planwright_waiting_longest_seconds";
    pub(crate) const NOTICES: &str = "planwright_webhook_attempts_total";
    pub(crate) const SUPERVISED: &str = "planwright_supervised_runs";
    pub(crate) const STREAMS: &str = "planwright_sse_clients";
    pub(crate) const QUEUE_WAITING: &str = "planwright_queue_waiting";
    pub(crate) const QUEUE_HELD: &str = "planwright_queue_held";
    pub(crate) const QUEUE_DEAD: &str = "planwright_queue_dead";
    pub(crate) const QUEUE_OLDEST: &str = "planwright_queue_oldest_age_seconds";
    pub(crate) const QUEUE_REDELIVERED: &str = "planwright_queue_redelivered_total";
    pub(crate) const BROKER_UP: &str = "planwright_broker_up";
    pub(crate) const WORKERS: &str = "planwright_workers";
    pub(crate) const OFFERS_WAITING: &str = "planwright_offers_waiting";
    pub(crate) const OFFERS_OLDEST: &str = "planwright_offers_oldest_age_seconds";
    pub(crate) const BUILD: &str = "planwright_build_info";
    pub(crate) const UPTIME: &str = "process_uptime_seconds";
    pub(crate) const MEMORY: &str = "process_resident_memory_bytes";
}

const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];
/// Samples are gathered in memory until they are read, so a task drains them this often.
const UPKEEP: Duration = Duration::from_secs(10);
/// How many different tools have a line of their own. A server could make up names for ever.
const MAX_TOOLS: usize = 200;

/// The figures of this process. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    started: Instant,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Begins to count. Later calls give the same figures: a process has one set of them.
    pub fn of_this_process() -> Self {
        static FIGURES: OnceLock<Metrics> = OnceLock::new();
        FIGURES.get_or_init(Self::install).clone()
    }

    fn install() -> Self {
        let [first, .., last] = &SECONDS;
        debug_assert!(first < last);
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .expect("there are buckets")
            .build_recorder();
        let handle = recorder.handle();
        // Another recorder of this process was first: then these figures stay empty, and nothing
        // else is wrong.
        drop(metrics::set_global_recorder(recorder));
        describe();
        describe_dispatch();
        metrics::gauge!(name::BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Self {
            handle,
            started: Instant::now(),
        }
    }

    /// Counts the runs of this engine from here on. Must be called on a runtime.
    pub fn watch(&self, engine: &Engine) {
        engine.watch(Arc::new(RunMetrics::default()));
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(UPKEEP);
            loop {
                tick.tick().await;
                handle.run_upkeep();
            }
        });
    }

    /// All figures as Prometheus reads them.
    pub fn render(&self) -> String {
        metrics::gauge!(name::UPTIME).set(self.started.elapsed().as_secs_f64());
        if let Some(bytes) = resident_bytes() {
            metrics::gauge!(name::MEMORY).set(bytes);
        }
        self.handle.render()
    }
}

fn describe() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(
        name::REQUESTS,
        Unit::Seconds,
        "Requests, by method, route and status."
    );
    describe_gauge!(
        name::REQUESTS_OPEN,
        "Requests that have not been answered yet."
    );
    describe_histogram!(
        name::CALLS,
        Unit::Seconds,
        "Calls of tools, by tool and what came of them."
    );
    describe_counter!(
        name::RUNS_BEGUN,
        "Runs that this process started or took over, without child runs."
    );
    describe_counter!(
        name::RUNS_ENDED,
        "Runs that ended in this process, by status, without child runs."
    );
    describe_gauge!(
        name::RUNS_EXECUTING,
        "Runs that this process executes now, without child runs."
    );
    describe_counter!(name::STEPS, "What happened to steps.");
    describe_gauge!(name::CALLS_OPEN, "Calls that have not come back.");
    describe_histogram!(
        name::COMMITS,
        Unit::Seconds,
        "How long a commit of a run took."
    );
    describe_gauge!(
        name::PLANS,
        "Plans in the store, by the state of their review: `opened` once a run has used their approval up."
    );
    describe_gauge!(
        name::WAITING,
        "What waits for people: plans and steps to approve, questions, calls whose outcome is unknown."
    );
    describe_gauge!(
        name::WAITING_LONGEST,
        Unit::Seconds,
        "How long nothing was said about the plan that waits longest."
    );
    describe_gauge!(
        name::RUNS,
        "Runs of the plans that changed last, by status."
    );
    describe_counter!(
        name::NOTICES,
        "Attempts to tell a webhook something, by what came of them."
    );
    describe_gauge!(
        name::SUPERVISED,
        "Runs in the background: executing, queued, or to be tried again."
    );
    describe_gauge!(name::STREAMS, "Open streams of events.");
    describe_gauge!(name::BUILD, "The version that runs.");
    describe_gauge!(name::UPTIME, Unit::Seconds, "How long the process runs.");
    describe_gauge!(name::MEMORY, Unit::Bytes, "Memory that the process uses.");
}

fn describe_dispatch() {
    use metrics::{Unit, describe_counter, describe_gauge};
    describe_gauge!(
        name::QUEUE_WAITING,
        "Notices that wait for a worker at the broker."
    );
    describe_gauge!(name::QUEUE_HELD, "Notices that workers hold.");
    describe_gauge!(name::QUEUE_DEAD, "Notices that were given up.");
    describe_gauge!(
        name::QUEUE_OLDEST,
        Unit::Seconds,
        "How long the oldest notice waits."
    );
    describe_counter!(
        name::QUEUE_REDELIVERED,
        "How often notices were delivered again."
    );
    describe_gauge!(name::BROKER_UP, "Whether the broker answers: 1 or 0.");
    describe_gauge!(name::WORKERS, "Workers, by what they do.");
    describe_gauge!(
        name::OFFERS_WAITING,
        "Steps in the store that no worker has taken."
    );
    describe_gauge!(
        name::OFFERS_OLDEST,
        Unit::Seconds,
        "How long the first of them has waited."
    );
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and no store holds so many things"
)]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}

/// As Linux tells it; elsewhere the figure is missing.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u32 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(f64::from(kilobytes) * 1024.0)
}

/// A gauge that is higher by one while this lives.
#[derive(Debug)]
pub(crate) struct GaugeGuard(&'static str);

impl GaugeGuard {
    /// An open stream of events.
    pub(crate) fn stream() -> Self {
        Self::one(name::STREAMS)
    }

    pub(super) fn one(name: &'static str) -> Self {
        metrics::gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}

/// The tool's name as a label, as long as there are not too many.
pub(super) fn tool_label(tool: &str) -> String {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.contains(tool) || known.len() < MAX_TOOLS && known.insert(tool.to_owned()) {
        return tool.to_owned();
    }
    "other".to_owned()
}

/// Counts what came of attempts to tell webhooks.
#[derive(Debug)]
pub struct WebhookMetrics;

impl CourierWatch for WebhookMetrics {
    fn count_attempt(&self, endpoint: &str, outcome: DeliveryOutcome) {
        let outcome = outcome.as_str();
        metrics::counter!(name::NOTICES, "endpoint" => endpoint.to_owned(), "outcome" => outcome)
            .increment(1);
    }
}
