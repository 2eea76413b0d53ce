//! The one task that follows the journal for all listeners.

use super::open_streams::{self, OpenStreams};
use super::options::EventsOptions;
use super::progress::{Latest, StepOfRun};
use super::topic::{PAGE, Shared, Topic};
use crate::http::Caller;
use planwright_core::event::trace_of_plan;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::journal::{Entry, StreamName, decode};
use planwright_core::plan::Bounds;
use planwright_core::run::{Run, RunEvent};
use planwright_core::trace::TraceId;
use planwright_engine::port::{
    FeedOf, LoggedLine, Placed, Position, Progress, StoreError, is_last_feed_page,
};
use planwright_engine::{Engine, Journals, Observer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time to wait before the journal is read again after it could not be.
const FAILED_PAUSE: Duration = Duration::from_millis(500);

/// Runs whose plan is remembered.
const MAX_RUNS: usize = 50_000;

/// The event streams of a service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events(Arc<Hub>);

/// What all streams share.
#[derive(Debug)]
pub struct Hub {
    pub(super) journals: Journals,
    pub(super) engine: Engine,
    pub(super) options: EventsOptions,
    pub(super) stop: CancellationToken,
    pub(super) open_streams: Arc<OpenStreams>,
    topics: Mutex<HashMap<PlanId, Shared>>,
    /// Runs that are executed here with their plans and traces, for their progress.
    executed: Mutex<HashMap<RunId, (PlanId, TraceId)>>,
}

impl std::ops::Deref for Events {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.0
    }
}

impl Events {
    /// Begins to follow the journal until `stop`; needs a runtime.
    pub fn start(engine: Engine, options: EventsOptions, stop: CancellationToken) -> Self {
        let hub = Arc::new(Hub {
            journals: engine.journals(),
            engine: engine.clone(),
            options,
            stop,
            open_streams: Arc::default(),
            topics: Mutex::default(),
            executed: Mutex::default(),
        });
        engine.watch(Arc::new(ProgressOf(Arc::downgrade(&hub))));
        tokio::spawn(follow(Arc::clone(&hub)));
        Self(hub)
    }

    /// A place for one more answer that is sent as it comes, if there is room.
    pub(crate) fn enter(&self, caller: &Caller) -> Option<open_streams::StreamPermit> {
        self.open_streams.enter(caller, false, &self.options)
    }

    /// A place for one more stream of all plans.
    pub(super) fn enter_global(&self, caller: &Caller) -> Option<open_streams::StreamPermit> {
        self.open_streams.enter(caller, true, &self.options)
    }

    /// Who listens.
    pub(crate) fn open_streams(&self) -> &OpenStreams {
        &self.open_streams
    }

    /// How the streams are bounded.
    pub(crate) fn options(&self) -> &EventsOptions {
        &self.options
    }

    /// Returns how many streams are open.
    pub fn streams(&self) -> usize {
        self.open_streams.count()
    }
}

impl Hub {
    pub(super) fn bounds(&self) -> &Bounds {
        self.engine.bounds()
    }

    /// The plan's topic, read from the journal if it had no listener lately.
    pub(super) async fn topic(&self, plan: &PlanId) -> Result<Shared, StoreError> {
        let topic = Arc::clone(
            self.topics()
                .entry(plan.clone())
                .or_insert_with(|| Arc::new(Topic::new(plan.clone()))),
        );
        topic
            .load(&self.journals, self.bounds(), &self.options)
            .await?;
        Ok(topic)
    }

    fn topics(&self) -> MutexGuard<'_, HashMap<PlanId, Shared>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executed(&self) -> MutexGuard<'_, HashMap<RunId, (PlanId, TraceId)>> {
        self.executed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets plans that have no listener.
    fn tidy(&self) {
        let Some(then) = Instant::now().checked_sub(self.options.linger) else {
            return;
        };
        // A task that listens, or is about to, holds the topic too.
        self.topics()
            .retain(|_, topic| Arc::strong_count(topic) > 1 || !topic.is_idle_since(then));
    }
}

async fn follow(hub: Arc<Hub>) {
    let following = async {
        let mut changes = hub.journals.changes();
        let mut place = loop {
            match hub.journals.end_of_feed().await {
                Ok(end) => {
                    break StreamPermit {
                        after: end,
                        plans: HashMap::new(),
                    };
                }
                Err(error) => failed(&error).await,
            }
        };
        let mut tidied = Instant::now();
        loop {
            changes.mark_unchanged();
            match place.advance(&hub).await {
                Ok(true) => {}
                Ok(false) => {
                    if tidied.elapsed() > hub.options.linger {
                        tidied = Instant::now();
                        hub.tidy();
                    }
                    // The slow look is for plans to be forgotten.
                    let waited = tokio::time::timeout(hub.options.linger, changes.changed()).await;
                    if matches!(waited, Ok(Err(_))) {
                        return;
                    }
                }
                Err(error) => failed(&error).await,
            }
        }
    };
    tokio::select! {
        () = hub.stop.cancelled() => {}
        () = following => {}
    }
}

async fn failed(error: &StoreError) {
    tracing::warn!(%error, "the journal cannot be followed");
    tokio::time::sleep(FAILED_PAUSE).await;
}

/// How far the journal was followed.
struct StreamPermit {
    after: Position,
    plans: HashMap<RunId, PlanId>,
}

impl StreamPermit {
    /// Takes the next page to the topics. Returns whether there may be more.
    async fn advance(&mut self, hub: &Hub) -> Result<bool, StoreError> {
        let page = hub.journals.feed(&FeedOf::All, self.after, PAGE).await?;
        for placed in &page {
            if let Some(topic) = self.topic(hub, placed).await {
                if let Some(version) = topic.missing_version(placed)
                    && let Some(document) =
                        hub.journals.version_content(&topic.plan, version).await?
                {
                    topic.give_version(version, document);
                }
                topic.push(placed, &hub.options);
            }
            self.after = placed.position;
        }
        Ok(!is_last_feed_page(&page, PAGE))
    }

    async fn topic(&mut self, hub: &Hub, placed: &Placed) -> Option<Shared> {
        if hub.topics().is_empty() {
            return None;
        }
        let plan = match &placed.stream {
            StreamName::Plan(plan) => plan.clone(),
            StreamName::Run(run) => plan_of(hub, &mut self.plans, run, placed).await?,
        };
        hub.topics().get(&plan).cloned()
    }
}

/// The plan that a record of a run belongs to.
pub(super) async fn plan_of(
    hub: &Hub,
    known: &mut HashMap<RunId, PlanId>,
    run: &RunId,
    placed: &Placed,
) -> Option<PlanId> {
    if let Some(plan) = known.get(run) {
        return Some(plan.clone());
    }
    let plan = if placed.record.seq == 1 {
        match decode::<RunEvent>(&placed.record).map(|entry| entry.event) {
            Ok(RunEvent::RunStarted { plan, .. }) => Some(plan),
            Ok(_) | Err(_) => None,
        }
    } else {
        hub.journals.plan_of_run(run).await.ok()
    };
    let Some(plan) = plan else {
        tracing::warn!(%run, "a run does not say which plan it belongs to");
        return None;
    };
    if known.len() >= MAX_RUNS {
        known.clear();
    }
    known.insert(run.clone(), plan.clone());
    Some(plan)
}

/// Tells listeners how far the calls of runs in this process are.
struct ProgressOf(std::sync::Weak<Hub>);

impl Observer for ProgressOf {
    fn entry(&self, _: &Run, _: &Entry<RunEvent>) {}

    fn executing(&self, run: &Run) {
        if let Some(hub) = self.0.upgrade() {
            let plan = run.plan().id().clone();
            let trace = run.start().trace.unwrap_or_else(|| trace_of_plan(&plan));
            hub.executed().insert(run.id().clone(), (plan, trace));
        }
    }

    fn left(&self, run: &RunId) {
        if let Some(hub) = self.0.upgrade() {
            hub.executed().remove(run);
        }
    }

    fn progress_of(&self, run: &RunId, step: &StepId, progress: &Progress) {
        self.tell(run, step, |latest, of| latest.report(of, progress));
    }

    fn log_of(&self, run: &RunId, step: &StepId, line: &LoggedLine) {
        self.tell(run, step, |latest, of| latest.report_log(of, line));
    }
}

impl ProgressOf {
    /// Tells those who listen to the plan of a run, if any do.
    fn tell(&self, run: &RunId, step: &StepId, tell: impl FnOnce(&Latest, StepOfRun<'_>)) {
        let Some(hub) = self.0.upgrade() else { return };
        let Some((plan, trace)) = hub.executed().get(run).cloned() else {
            return;
        };
        let topic = hub.topics().get(&plan).cloned();
        if let Some(topic) = topic {
            let of = StepOfRun {
                plan: &plan,
                run,
                step,
                trace,
            };
            tell(&topic.progress, of);
        }
    }
}
