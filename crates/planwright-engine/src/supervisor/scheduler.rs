//! The one task that knows which runs are executed, which wait for their turn, and which are in
//! trouble.

use super::files::DueFiles;
use super::handle::SupervisorStats;
use crate::engine::Engine;
use crate::port::{AcquireError, OwnerId, StoreError};
use crate::run::handle::RunHandle;
use crate::run::resume::Continued;
use crate::run::start::StartRunError;
use futures::FutureExt as _;
use planwright_core::id::RunId;
use planwright_core::run::RunState;
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The pause before a held run is tried again: its holder may only be writing a command to it.
const HELD_PAUSE: Duration = Duration::from_millis(200);

/// Owners of runs that wait for them are looked at this often: one that died is noticed by its
/// free lock.
const OWNERS_PAUSE: Duration = Duration::from_secs(1);

/// A run that waits for a slot for longer than this says so in its journal.
const NOTE_PAUSE: Duration = Duration::from_secs(1);

/// Runs that are told at once that they wait; the rest is told later.
const MAX_NOTED: usize = 1000;

/// A run that cannot go on is tried again after this long, then four times as long, and so on.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_mins(15);

/// Runs that may wait for their turn. They are ids; beyond this they are found again by looking
/// through the store.
const MAX_QUEUE: usize = 100_000;

/// The commands that the scheduler is given.
#[derive(Debug)]
pub(super) enum SchedulerCommand {
    /// This run may be able to go on.
    Resume(RunId),
    /// This run was begun without a slot, and its journal says so.
    Queue(RunId),
    /// This run is being executed. Its slot, if it has one, is free once it has stopped.
    Watch(RunHandle, Option<OwnedSemaphorePermit>),
}

/// Why a run is not executed any more.
enum RunExit {
    /// It ended, or only a person can move it on.
    Done,
    /// The plan was adjusted: the work may go on in another run.
    Adjusted,
    /// The work goes on in this one.
    ContinuedAs(RunHandle),
    /// Another owner holds it until then.
    Held { owner: OwnerId, until: Timestamp },
    /// Its lease ran out, but its owner is alive: it was stopped, or the machine slept.
    Overdue,
    /// It cannot go on, and no retry helps.
    Hopeless(StartRunError),
    /// It failed, and may succeed later.
    Failed(String),
}

pub(super) struct RunScheduler {
    engine: Engine,
    slots: Arc<Semaphore>,
    stats: watch::Sender<SupervisorStats>,
    stopping: CancellationToken,
    queue: VecDeque<RunId>,
    queued: BTreeSet<RunId>,
    /// Runs in the queue whose journals say that they wait.
    noted: BTreeSet<RunId>,
    /// When those that still wait are noted.
    note_at: Option<Duration>,
    max_runs: u32,
    /// The number of tasks for a run: one, or two while a command to go on meets one to watch.
    executing: BTreeMap<RunId, usize>,
    /// Runs that a person decided about while they were executed: they are looked at once more
    /// afterwards.
    again: BTreeSet<RunId>,
    /// Runs that are tried again later, by the time for which the machine is awake.
    later: BTreeSet<(Duration, RunId)>,
    /// Runs that other owners hold. They are tried again as soon as their owner is dead.
    held: BTreeMap<OwnerId, BTreeSet<RunId>>,
    /// When the owners of held runs are looked at next.
    owners_due: Duration,
    /// Runs whose living owner had time enough to renew its lease.
    overdue: BTreeSet<RunId>,
    /// How often in a row a run could not be executed.
    tries: BTreeMap<RunId, u32>,
    tasks: JoinSet<(RunId, RunExit)>,
    files: DueFiles,
}

impl RunScheduler {
    pub(super) fn new(
        engine: Engine,
        (slots, max_runs): (Arc<Semaphore>, u32),
        stats: watch::Sender<SupervisorStats>,
        stopping: CancellationToken,
        files: DueFiles,
    ) -> Self {
        Self {
            engine,
            slots,
            stats,
            stopping,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            noted: BTreeSet::new(),
            note_at: None,
            max_runs,
            executing: BTreeMap::new(),
            again: BTreeSet::new(),
            later: BTreeSet::new(),
            held: BTreeMap::new(),
            owners_due: Duration::ZERO,
            overdue: BTreeSet::new(),
            tries: BTreeMap::new(),
            tasks: JoinSet::new(),
            files,
        }
    }

    /// Works until told to stop, and then until nothing is in flight any more.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<SchedulerCommand>) {
        let stopping = self.stopping.clone();
        while !stopping.is_cancelled() {
            self.fill_slots();
            self.publish_stats();
            let clock = Arc::clone(&self.engine.context.ports.clock);
            let now = clock.awake();
            let next = self.later.first().map(|(at, _)| at.saturating_sub(now));
            let owners = self.owners_due.saturating_sub(now);
            let note = self.note_at.map(|at| at.saturating_sub(now));
            let slots = Arc::clone(&self.slots);
            tokio::select! {
                biased;
                () = stopping.cancelled() => {}
                Some((run, exit)) = next_exit(&mut self.tasks) => self.handle_exit(run, exit),
                Some(command) = commands.recv() => self.handle_command(command),
                // A slot that a run outside of the queue held became free.
                _ = slots.acquire(), if !self.queue.is_empty() => {}
                () = async { clock.sleep(next.expect("guarded")).await }, if next.is_some() => self.retry_due(),
                () = async { clock.sleep(note.expect("guarded")).await }, if note.is_some() => self.note_waiting(),
                () = clock.sleep(owners), if !self.held.is_empty() => self.look_at_owners().await,
            }
        }
        commands.close();
        while let Ok(command) = commands.try_recv() {
            self.handle_command(command);
        }
        self.publish_stats();
        while let Some((run, _)) = next_exit(&mut self.tasks).await {
            self.forget_task(&run);
            self.publish_stats();
        }
    }

    fn forget_task(&mut self, run: &RunId) {
        if let Some(tasks) = self.executing.get_mut(run) {
            *tasks -= 1;
            if *tasks == 0 {
                self.executing.remove(run);
            }
        }
    }

    fn publish_stats(&self) {
        let stats = SupervisorStats {
            executing: self.executing.len(),
            queued: self.queue.len(),
            troubled: self.tries.len(),
            stopping: self.stopping.is_cancelled(),
        };
        self.stats
            .send_if_modified(|told| std::mem::replace(told, stats) != stats);
    }

    fn handle_command(&mut self, command: SchedulerCommand) {
        match command {
            SchedulerCommand::Resume(run) => self.enqueue(run),
            SchedulerCommand::Queue(run) => {
                self.noted.insert(run.clone());
                self.enqueue(run);
            }
            SchedulerCommand::Watch(handle, slot) => self.watch(handle, slot),
        }
    }

    fn enqueue(&mut self, run: RunId) {
        if self.executing.contains_key(&run) {
            self.again.insert(run);
        } else if self.queue.len() >= MAX_QUEUE {
            tracing::warn!(%run, "too many runs wait for their turn; this one is found at the next start");
        } else if self.queued.insert(run.clone()) {
            self.queue.push_back(run);
        }
    }

    /// Gives a slot to each run that waits, as long as there are any.
    fn fill_slots(&mut self) {
        while !self.queue.is_empty() {
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
                let now = self.engine.context.ports.clock.awake();
                if self.noted.len() < self.queue.len() {
                    self.note_at.get_or_insert(now + NOTE_PAUSE);
                }
                return;
            };
            let Some(run) = self.queue.pop_front() else {
                return;
            };
            self.queued.remove(&run);
            self.noted.remove(&run);
            *self.executing.entry(run.clone()).or_default() += 1;
            self.forget_held(&run);
            let engine = self.engine.clone();
            let files = self.files.clone();
            let patient = !self.overdue.contains(&run);
            self.tasks.spawn(async move {
                let executed = AssertUnwindSafe(resume_run(&engine, &run, &files, patient))
                    .catch_unwind()
                    .await;
                drop(slot);
                (
                    run,
                    executed.unwrap_or_else(|_| RunExit::Failed("the run panicked".to_owned())),
                )
            });
        }
    }

    fn watch(&mut self, mut handle: RunHandle, slot: Option<OwnedSemaphorePermit>) {
        let run = handle.run_id().clone();
        let files = self.files.clone();
        *self.executing.entry(run.clone()).or_default() += 1;
        self.tasks.spawn(async move {
            let executed = AssertUnwindSafe(watch_over(&mut handle, &files))
                .catch_unwind()
                .await;
            drop(slot);
            (
                run,
                executed.unwrap_or_else(|_| RunExit::Failed("the run panicked".to_owned())),
            )
        });
    }

    fn handle_exit(&mut self, run: RunId, exit: RunExit) {
        self.forget_task(&run);
        let again = self.again.remove(&run);
        let clock = Arc::clone(&self.engine.context.ports.clock);
        let now = clock.awake();
        if !matches!(exit, RunExit::Overdue) {
            self.overdue.remove(&run);
        }
        match exit {
            RunExit::Done => {
                self.tries.remove(&run);
                if again {
                    self.enqueue(run);
                }
            }
            RunExit::Adjusted => {
                self.tries.remove(&run);
                self.enqueue(run);
            }
            RunExit::ContinuedAs(handle) => {
                self.tries.remove(&run);
                self.watch(handle, None);
            }
            RunExit::Hopeless(error) => {
                tracing::warn!(%run, %error, "the run cannot go on by itself");
                self.tries.remove(&run);
            }
            RunExit::Held { owner, until } => {
                let tries = self.count_try(&run);
                let longest = self.engine.context.settings.lease_ttl.max(HELD_PAUSE);
                let pause = if tries == 0 {
                    HELD_PAUSE
                } else {
                    until.since(clock.now()).clamp(HELD_PAUSE, longest)
                };
                if self.held.is_empty() {
                    self.owners_due = now + OWNERS_PAUSE;
                }
                self.held.entry(owner).or_default().insert(run.clone());
                self.later.insert((now + pause, run));
            }
            RunExit::Overdue => {
                // Its owner renews the lease as soon as it runs again, well within this time.
                self.overdue.insert(run.clone());
                let pause = self.engine.context.settings.lease_ttl / 2;
                self.later.insert((now + pause, run));
            }
            RunExit::Failed(reason) => {
                let pause = backoff(self.count_try(&run));
                tracing::warn!(%run, reason, again_in = ?pause, "the run could not be executed");
                self.later.insert((now + pause, run));
            }
        }
    }

    /// Writes into the journals of the runs that wait for a slot that they do. One after the other
    /// and beside everything else: it is for people who look.
    fn note_waiting(&mut self) {
        self.note_at = None;
        let unnoted: Vec<RunId> = self
            .queue
            .iter()
            .filter(|run| !self.noted.contains(*run))
            .take(MAX_NOTED)
            .cloned()
            .collect();
        self.noted.extend(unnoted.iter().cloned());
        let engine = self.engine.clone();
        let slots = self.max_runs;
        let noting = async move {
            for run in unnoted {
                if let Err(error) = engine.runs().note_queued(&run, slots).await {
                    tracing::debug!(%run, %error, "it is not noted that the run waits");
                }
            }
        };
        let stopping = self.stopping.clone();
        tokio::spawn(async move { stopping.run_until_cancelled(noting).await });
    }

    /// Takes up the runs of owners that died. Asking costs one look at a lock per owner, not one at
    /// each run.
    async fn look_at_owners(&mut self) {
        let store = Arc::clone(&self.engine.context.ports.store);
        let mut dead = BTreeSet::new();
        for owner in self.held.keys() {
            match store.is_dead(owner).await {
                Ok(true) => {
                    dead.insert(owner.clone());
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "it cannot be told which owners are alive");
                    break;
                }
            }
        }
        for owner in dead {
            let Some(runs) = self.held.remove(&owner) else {
                continue;
            };
            tracing::info!(
                owner = owner.0,
                runs = runs.len(),
                "an owner died: its runs are taken over"
            );
            self.later.retain(|(_, run)| !runs.contains(run));
            for run in runs {
                self.enqueue(run);
            }
        }
        self.owners_due = self.engine.context.ports.clock.awake() + OWNERS_PAUSE;
    }

    /// The run is tried now: what is known about its owner is found out anew.
    fn forget_held(&mut self, run: &RunId) {
        self.held.retain(|_, runs| {
            runs.remove(run);
            !runs.is_empty()
        });
    }

    /// Returns how often this run was tried before.
    fn count_try(&mut self, run: &RunId) -> u32 {
        let tries = self.tries.entry(run.clone()).or_default();
        let before = *tries;
        *tries = tries.saturating_add(1);
        before
    }

    fn retry_due(&mut self) {
        let now = self.engine.context.ports.clock.awake();
        while let Some((at, _)) = self.later.first()
            && *at <= now
        {
            let (_, run) = self.later.pop_first().expect("there is a first one");
            self.enqueue(run);
        }
    }
}

/// The next task that is done; never, if there is none.
async fn next_exit(tasks: &mut JoinSet<(RunId, RunExit)>) -> Option<(RunId, RunExit)> {
    loop {
        match tasks.join_next().await {
            Some(Ok(ended)) => return Some(ended),
            // The tasks catch what panics in them, and are never aborted.
            Some(Err(error)) => tracing::error!(%error, "a task of the supervisor died"),
            None => return None,
        }
    }
}

fn backoff(tries: u32) -> Duration {
    FIRST_BACKOFF
        .saturating_mul(4_u32.saturating_pow(tries))
        .min(LONGEST_BACKOFF)
}

/// `patient`: an owner that is alive and late is given the time to renew its lease.
async fn resume_run(engine: &Engine, run: &RunId, files: &DueFiles, patient: bool) -> RunExit {
    match engine.runs().has_overdue_owner(run).await {
        Ok(true) if patient => return RunExit::Overdue,
        Ok(_) => {}
        Err(error) => return RunExit::Failed(error.to_string()),
    }
    match engine.runs().resume_unattended(run).await {
        Ok(Continued::Executing(handle)) if handle.run_id() != run => RunExit::ContinuedAs(handle),
        Ok(Continued::Executing(mut handle)) => watch_over(&mut handle, files).await,
        Ok(Continued::Nothing) => RunExit::Done,
        Err(StartRunError::Acquire(AcquireError::Held {
            owner, expires_at, ..
        })) => RunExit::Held {
            owner,
            until: expires_at,
        },
        Err(error) if is_hopeless(&error) => RunExit::Hopeless(error),
        Err(error) => RunExit::Failed(error.to_string()),
    }
}

async fn watch_over(handle: &mut RunHandle, files: &DueFiles) -> RunExit {
    match handle.wait().await {
        Ok(run) => {
            files.note(run.plan().id());
            if let RunState::Adjusted { .. } = run.state() {
                RunExit::Adjusted
            } else {
                RunExit::Done
            }
        }
        Err(error) => RunExit::Failed(error.to_string()),
    }
}

/// Returns whether trying again changes nothing. A tool that is missing may come back, a store may
/// answer again.
fn is_hopeless(error: &StartRunError) -> bool {
    use crate::journal::load::LoadError as Load;
    match error {
        StartRunError::Edited { .. }
        | StartRunError::Ended { .. }
        | StartRunError::NothingToResume(_)
        | StartRunError::ChildRun { .. }
        | StartRunError::Load(
            Load::NoSuchPlan(_) | Load::NoSuchRun(_) | Load::Damaged { .. } | Load::Plan(_),
        )
        | StartRunError::Load(Load::Store(
            StoreError::Damaged { .. } | StoreError::Sealed { .. } | StoreError::NotAdopted(_),
        ))
        | StartRunError::Acquire(AcquireError::NoSuchRun(_)) => true,
        StartRunError::Load(Load::Store(
            StoreError::Failed(_)
            | StoreError::Busy(_)
            | StoreError::Unreachable(_)
            | StoreError::Full
            | StoreError::ReadOnly
            | StoreError::Lost(_),
        ))
        | StartRunError::Acquire(AcquireError::Held { .. } | AcquireError::Store(_))
        | StartRunError::Invalid(_)
        | StartRunError::MissingTools(_)
        | StartRunError::Unsupported(_)
        | StartRunError::MissingExecutor(_)
        | StartRunError::Refused(_)
        | StartRunError::ToolsChanged { .. }
        | StartRunError::Changed { .. }
        | StartRunError::Denied(_)
        | StartRunError::BadChoice(_)
        | StartRunError::Artifact(_)
        | StartRunError::AlreadyExecuting { .. }
        | StartRunError::BeingUndone { .. }
        | StartRunError::UnknownStep(_)
        | StartRunError::Stopping
        | StartRunError::Append(_) => false,
    }
}
