//! The supervisor as the service holds it.

use super::files::DueFiles;
use super::requested::RequestedRuns;
use super::scheduler::{RunScheduler, SchedulerCommand};
use super::{follow, keep};
use crate::context::Verdict;
use crate::context::{current_claim, for_same_request};
use crate::engine::Engine;
use crate::port::PlanFiles;
use crate::run::command::CommandError;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::remote_command::RunCommand;
use crate::run::start::StartRunError;
use crate::worker::follow_worker_tools;
use planwright_core::id::{PlanId, RunId};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most runs that can be asked for: each holds a journal in memory.
const MAX_RUNS: usize = 1 << 20;

/// Orders that have been given and not yet looked at.
const MAX_COMMANDS: usize = 1024;

/// The options with which runs are executed in the background.
#[derive(Debug, Clone)]
pub struct SupervisorOptions {
    /// At most this many runs are in memory at once; others wait for their turn, as ids.
    pub max_runs: usize,
    /// Kept in step with the journal when a run is let go of, and when time changes a plan.
    pub files: Option<Arc<dyn PlanFiles>>,
}

impl Default for SupervisorOptions {
    fn default() -> Self {
        Self {
            max_runs: 256,
            files: None,
        }
    }
}

/// The work that the supervisor is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SupervisorStats {
    /// Runs that are being executed here.
    pub executing: usize,
    /// Runs that wait for their turn.
    pub queued: usize,
    /// Runs that could not go on and are tried again later.
    pub troubled: usize,
    /// Nothing is started any more.
    pub stopping: bool,
}

/// The result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Runs whose calls were still in flight when the time was over. They go on at the next start,
    /// as after a crash.
    pub cut_off: usize,
}

/// Executes runs in the background. Cheap to clone; ends with the last clone, or by
/// [`Supervisor::stop`].
#[derive(Debug, Clone)]
pub struct Supervisor {
    pub(super) engine: Engine,
    files: DueFiles,
    commands: mpsc::Sender<SchedulerCommand>,
    slots: Arc<Semaphore>,
    max_runs: u32,
    stats: watch::Receiver<SupervisorStats>,
    stopping: CancellationToken,
    scheduler: Arc<Mutex<Option<JoinHandle<()>>>>,
    /// Ends the tasks when the last clone of the supervisor is dropped.
    _guard: Arc<DropGuard>,
}

impl Supervisor {
    /// Begins to execute what was being executed when the last process ended, and to follow what
    /// people decide.
    pub fn start(engine: Engine, options: &SupervisorOptions) -> Self {
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let max_runs = options.max_runs.clamp(1, MAX_RUNS);
        let slots = Arc::new(Semaphore::new(max_runs));
        let max_runs = u32::try_from(max_runs).unwrap_or(u32::MAX);
        let (stats, watched) = watch::channel(SupervisorStats::default());
        let stopping = CancellationToken::new();
        let files = DueFiles::new(options.files.clone());
        let scheduler = RunScheduler::new(
            engine.clone(),
            (Arc::clone(&slots), max_runs),
            stats,
            stopping.clone(),
            files.clone(),
        );
        let scheduler = tokio::spawn(scheduler.run(inbox));
        tokio::spawn(follow::follow(
            engine.clone(),
            commands.clone(),
            RequestedRuns {
                engine: engine.clone(),
                commands: commands.clone(),
                slots: Arc::clone(&slots),
                max_runs,
            },
            stopping.clone(),
        ));
        tokio::spawn(keep::keep(engine.clone(), files.clone(), stopping.clone()));
        tokio::spawn(files.clone().keep(stopping.clone()));
        tokio::spawn(follow_worker_tools(engine.workers(), stopping.clone()));
        Self {
            engine,
            files,
            commands,
            slots,
            max_runs,
            stats: watched,
            scheduler: Arc::new(Mutex::new(Some(scheduler))),
            _guard: Arc::new(stopping.clone().drop_guard()),
            stopping,
        }
    }

    /// Begins a run of a plan's current version and returns as soon as that is durable. The run
    /// goes on in the background; if too many are under way it waits for its turn.
    pub async fn start_run(
        &self,
        plan: &PlanId,
        mut options: RunOptions,
    ) -> Result<RunId, StartRunError> {
        if self.stopping.is_cancelled() {
            return Err(StartRunError::Stopping);
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        options.queued = slot.is_none().then_some(self.max_runs);
        let handle = self.engine.runs().start(plan, options).await?;
        let run = handle.run_id().clone();
        let command = match slot {
            Some(slot) => SchedulerCommand::Watch(handle, Some(slot)),
            None => SchedulerCommand::Queue(run.clone()),
        };
        self.send_command(command).await;
        Ok(run)
    }

    /// Takes over a run that was started, resumed, forked or taken back through the engine, so that
    /// the caller does not have to wait for it.
    pub async fn adopt(&self, handle: RunHandle) {
        self.send_command(SchedulerCommand::Watch(handle, None))
            .await;
    }

    /// Gives a command to a run and waits until it is durable or refused. A run that was waiting
    /// for it goes on.
    pub async fn command(&self, run: &RunId, command: RunCommand) -> Result<(), CommandError> {
        self.engine.runs().learn_typed(run, &command).await?;
        if command.is_decision()
            && let Some(verdict) = self.decide_and_resume(run, &command).await
        {
            return Ok(verdict?);
        }
        self.engine.runs().pass_on(run, command).await?;
        // The journal says so too; this is sooner.
        self.resume_soon(run.clone()).await;
        Ok(())
    }

    /// The short way for a run that no process executes and that has a slot. `None`: it has to be
    /// the long one, which also says what is in the way.
    async fn decide_and_resume(&self, run: &RunId, command: &RunCommand) -> Option<Verdict> {
        if self.stopping.is_cancelled() || self.engine.context.active.get(run).is_some() {
            return None;
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let this = self.clone();
        let run = run.clone();
        let command = command.clone().into_command();
        // A run that was taken is executed, even if the caller is gone.
        let claim = current_claim();
        let deciding = tokio::spawn(async move {
            let runs = this.engine.runs();
            let resuming = runs.resume_with_decision(&run, command);
            let (handle, verdict) = Box::pin(for_same_request(claim, resuming)).await.ok()??;
            this.send_command(SchedulerCommand::Watch(handle, Some(slot)))
                .await;
            verdict.await.ok()
        });
        deciding.await.ok()?
    }

    /// Looks at a run again, because a person may have decided something. The journal says so too:
    /// this is only sooner.
    pub async fn resume_soon(&self, run: RunId) {
        self.send_command(SchedulerCommand::Resume(run)).await;
    }

    /// Has the files of a plan written soon, because a person decided something about it.
    pub fn files_are_due(&self, plan: &PlanId) {
        self.files.note(plan);
    }

    /// Returns the numbers of runs that execute and wait now.
    pub fn stats(&self) -> SupervisorStats {
        *self.stats.borrow()
    }

    /// Stops starting anything. Calls in flight may finish until the time is over; nothing is
    /// paused or cancelled, and what has not ended goes on at the next start.
    pub async fn stop(&self, grace: Duration) -> Stopped {
        self.engine.drain();
        self.stopping.cancel();
        let scheduler = self
            .scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut cut_off = 0;
        if let Some(mut scheduler) = scheduler
            && tokio::time::timeout(grace, &mut scheduler).await.is_err()
        {
            scheduler.abort();
            cut_off = self.stats().executing;
        }
        if tokio::time::timeout(grace, self.files.write())
            .await
            .is_err()
        {
            tracing::warn!("there was no time to bring the files of all plans up to date");
        }
        Stopped { cut_off }
    }

    async fn send_command(&self, command: SchedulerCommand) {
        // A supervisor that has stopped takes no commands; the journal has everything for the next
        // one.
        drop(self.commands.send(command).await);
    }
}
