//! The loop of one run: commands become entries, entries become durable, and only then calls are
//! made.
//!
//! Everything that has happened since the last commit goes into the next one: completions, the
//! starts they enable, and answers to other processes. While a commit is under way calls go on and
//! their answers are collected.

use super::call::Finished;
use super::commit::{Batch, Opening};
use super::flight::Flight;
use super::held::HeldQuestions;
use super::inline_budget::InlineBudget;
use super::isolation::Isolation;
use super::joint::is_free_turn;
use super::quick_read::Attended;
use super::run_time::RunTime;
use super::subplan::Child;
use crate::context::Context;
use crate::context::current_claim;
use crate::context::{Observers, Reply, Request, RunFamily, StepClaims, Tenure, Verdict};
use crate::journal::run_values::LargeValues;
use crate::journal::writer::{JournalWriter, WriteError};
use crate::port::{
    AppendError, BoxFuture, RequestClaim, StillRunning, StoreError, failed_for_good,
};
use crate::reflection::Looking;
use crate::run::runs::Runs;
use crate::run::undo::OriginalJournal;
use futures::stream::{FuturesUnordered, StreamExt as _};
use planwright_core::id::AttemptNo;
use planwright_core::journal::Cause;
use planwright_core::model::ModelUse;
use planwright_core::plan::{Document, StepIx};
use planwright_core::principal::Principal;
use planwright_core::run::{
    CallReport, Command, Corrupt, PauseOrder, Run, RunEvent, RunState, StepErrorCode, StoredValue,
};
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// What a run is told before it does anything.
#[derive(Debug)]
pub(crate) enum First {
    Nothing,
    /// This principal says that it goes on, and what it waits for, if they stood still.
    Resume(Principal, Option<RequestClaim>),
    /// A decision that it waited for. It is durable together with what follows from it.
    Decide(Box<Request>),
    /// It is new: its first entries are queued.
    Open(Box<Opening>),
    /// Its one call is in flight already.
    Attend(Box<Attended>),
}

impl First {
    /// That the run goes on, as this principal says.
    pub(crate) fn resuming(by: &Principal) -> Self {
        Self::Resume(by.clone(), current_claim())
    }

    /// That a child goes on with its parent, if it stood still. What a person stopped goes on only
    /// once the parent was told to since.
    pub(crate) fn resuming_child(
        child: &Run,
        by: &Principal,
        parent_resumed: Option<&PauseOrder>,
    ) -> Self {
        let stands = matches!(child.state(), RunState::Paused | RunState::Stalled { .. });
        let since = |paused: &PauseOrder| parent_resumed.filter(|order| order.at >= paused.at);
        match child.pause().pause_order() {
            _ if !stands => Self::Nothing,
            Some(paused) if child.pause().is_by_person() => match since(paused) {
                Some(order) => Self::Resume(order.by.clone(), None),
                None => Self::Nothing,
            },
            Some(_) | None => Self::Resume(by.clone(), None),
        }
    }
}

/// Why a run stopped being executed. The journal holds everything up to then.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An entry could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The core cannot apply an entry that it decided on itself.
    #[error("the journal cannot say this")]
    Corrupt(#[from] Corrupt),
    /// A call of an earlier process goes on: what was in flight cannot be settled.
    #[error(transparent)]
    StillRunning(#[from] StillRunning),
    /// Its first entries could not be written: there is no such run.
    #[error("the run was not opened")]
    NotOpened,
}

/// Where the run was when the loop let go of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) run: Run,
}

pub(crate) struct RunLoop {
    pub(crate) context: Arc<Context>,
    /// For the runs of sub-plans.
    pub(crate) runs: Runs,
    pub(crate) run: Run,
    pub(super) family: RunFamily,
    /// A model is being asked about the run as a whole.
    pub(crate) looking: Option<Looking>,
    /// A plan of the remaining work that has not been taken over yet, and what it took.
    pub(crate) revised: Option<(Document, Vec<ModelUse>)>,
    pub(super) large: LargeValues,
    /// The room that is left for values in the journal.
    pub(super) inline: Arc<InlineBudget>,
    pub(super) batch: Batch,
    /// Steps whose `when` was found true: nothing that it looks at changes any more.
    pub(super) met: BTreeSet<StepIx>,
    /// A ready step was not admitted: wait for a call of any run to end.
    pub(super) starved: bool,
    pub(super) freed: watch::Receiver<u64>,
    /// The process is about to end.
    pub(super) draining: watch::Receiver<bool>,
    /// Why the store failed for good, once it has.
    store_failure: watch::Receiver<Option<String>>,
    pub(super) journal: JournalWriter<RunEvent>,
    /// What is left to do before the run exists for others.
    pub(super) opening: Option<Opening>,
    /// The run is one call that reads, and policy lets it.
    pub(super) reads: bool,
    pub(super) tenure: Tenure,
    time: RunTime,
    pub(super) isolation: Isolation,
    /// Stay while only people can move the run on.
    pub(super) linger: bool,
    /// The steps that a client makes the calls of, if it makes them itself.
    pub(super) claims: Option<Arc<StepClaims>>,
    pub(crate) observers: Observers,
    inbox: mpsc::Receiver<Request>,
    /// The journal of the run that this one takes back.
    pub(super) original: Option<OriginalJournal>,
    pub(super) calls: FuturesUnordered<BoxFuture<'static, Finished>>,
    pub(super) children: BTreeMap<StepIx, Child>,
    pub(super) finished: Vec<Finished>,
    pub(super) in_flight: BTreeMap<StepIx, Flight>,
    /// The attempts that were offered to workers and are not over.
    pub(super) offered: BTreeMap<StepIx, AttemptNo>,
    /// A person may be there who answers while a call waits.
    pub(super) holds_questions: bool,
    pub(super) questions: HeldQuestions,
    /// The time of the latest decision about timers: those after it are waited for.
    decided_at: Timestamp,
    /// The order to go on with which this process took the run over.
    resumed: Option<PauseOrder>,
}

/// Where a run was.
pub(crate) struct Snapshot {
    run: Run,
    journal: JournalWriter<RunEvent>,
}

/// What a loop is started with.
pub(crate) struct Setup {
    pub(crate) runs: Runs,
    pub(crate) run: Run,
    pub(crate) journal: JournalWriter<RunEvent>,
    pub(crate) tenure: Tenure,
    pub(crate) linger: bool,
    pub(crate) claims: Option<Arc<StepClaims>>,
    pub(crate) observers: Observers,
    pub(crate) inbox: mpsc::Receiver<Request>,
    pub(crate) original: Option<OriginalJournal>,
    pub(crate) holds_questions: bool,
}

impl RunLoop {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup {
            runs,
            run,
            journal,
            tenure,
            linger,
            claims,
            observers,
            inbox,
            original,
            holds_questions,
        } = setup;
        let context = Arc::clone(&runs.context);
        let time = RunTime::of(&run, &*context.ports.clock);
        Self {
            decided_at: context.ports.clock.now(),
            resumed: None,
            freed: context.limiter.watch_freed(),
            draining: runs.context.active.draining(),
            store_failure: context.ports.store.failure(),
            context,
            family: RunFamily::enter(&runs.context, &run),
            runs,
            inline: Arc::new(InlineBudget::of(&run)),
            run,
            looking: None,
            revised: None,
            large: LargeValues::default(),
            batch: Batch::default(),
            met: BTreeSet::new(),
            starved: false,
            journal,
            opening: None,
            reads: false,
            tenure,
            time,
            isolation: Isolation::default(),
            linger,
            claims,
            observers,
            inbox,
            original,
            calls: FuturesUnordered::new(),
            children: BTreeMap::new(),
            finished: Vec::new(),
            in_flight: BTreeMap::new(),
            offered: BTreeMap::new(),
            holds_questions,
            questions: HeldQuestions::default(),
        }
    }

    /// Executes the run until it ends or only a person can move it on.
    pub(crate) async fn run(mut self, first: First) -> Result<Ended, RunError> {
        let worked = self.work(first).await;
        // Calls still in flight are not wanted any more; their tools are told, and get the time to
        // stop.
        for flight in self.in_flight.values() {
            match &flight.left {
                // The next owner waits for it.
                Some(left) => left.cancel(),
                None => flight.stop(StepErrorCode::Stopped.as_str()),
            }
        }
        self.children.clear();
        while self.calls.next().await.is_some() {}
        worked.map(|()| Ended { run: self.run })
    }

    async fn work(&mut self, first: First) -> Result<(), RunError> {
        let context = Arc::clone(&self.context);
        let plan = Arc::clone(self.run.plan());
        let first = match first {
            First::Open(opening) => {
                self.reads = opening.reads;
                self.opening = Some(*opening);
                // Reading secrets may take long, and the caller waits until the run is open.
                if !plan.all_secrets().is_empty() {
                    self.write_batch(false).await?;
                }
                First::Nothing
            }
            First::Attend(attended) => {
                self.attend(*attended);
                return self.go_on().await;
            }
            first => {
                self.observers.executing(&self.run);
                first
            }
        };
        context.learn_secrets(&plan).await;
        // A new run that only reads never began anything that could be left.
        if !self.reads {
            self.end_leftovers().await?;
        }
        self.recover().await?;
        self.execute(&Command::ResumeChildren, Cause::Recovery)?;
        match first {
            First::Nothing | First::Open(_) | First::Attend(_) => {}
            First::Resume(by, claim) => {
                self.resumed = Some(PauseOrder::new(&by, self.now()));
                let resumed = self.execute(&Command::Resume { by }, Cause::Command)?;
                if let (Some(claim), true) = (claim, resumed.is_some()) {
                    self.journal.carry_out(claim);
                }
            }
            First::Decide(request) => self.accept(*request)?,
        }
        self.go_on().await
    }

    /// Does what is next, again and again.
    async fn go_on(&mut self) -> Result<(), RunError> {
        loop {
            self.keep_lease().await?;
            let draining = *self.draining.borrow();
            if draining {
                self.questions.let_go();
            }
            self.tend_isolation(draining)?;
            self.decided_at = self.now();
            self.execute(&Command::Tick, Cause::Timer)?;
            self.isolation.begin_turn();
            if !draining && self.may_make_calls() {
                self.schedule().await?;
            }
            self.isolation.end_turn();
            // A step skipped just now can make one ready that needs approval, so people are asked
            // last.
            self.execute(&Command::AskApprovals, Cause::Schedule)?;
            self.execute(&Command::Settle, Cause::Schedule)?;
            if self.commit().await? {
                return Ok(());
            }
            if !*self.draining.borrow() && self.look().await? {
                if self.run.state().is_terminal() && self.has_nothing_to_commit() {
                    return Ok(());
                }
                continue;
            }
            self.wait().await?;
        }
    }

    /// Ends what an earlier process left running: only then is it true that its calls are over.
    /// The run is let go of if that is not possible.
    async fn end_leftovers(&mut self) -> Result<(), RunError> {
        let ports = &self.context.ports;
        let ended = ports.leftovers.end_leftovers(self.run.id()).await;
        if ended.is_err()
            && let Err(error) = ports.store.release(self.tenure.lease()).await
        {
            tracing::warn!(run = %self.run.id(), %error, "the run is let go of when its lease ends");
        }
        Ok(ended?)
    }

    /// The time of the run. Where the clock jumped forwards, its timers move along.
    pub(super) fn now(&mut self) -> Timestamp {
        let reading = self.time.read(&*self.context.ports.clock);
        if !reading.jumped.is_zero() {
            tracing::info!(
                run = %self.run.id(),
                jumped = ?reading.jumped,
                "the clock jumped forwards, or the machine slept: calls and retries get the time back"
            );
            self.run.delay_timers(reading.jumped);
        }
        reading.now
    }

    /// The store confirmed the lease recently enough.
    fn may_make_calls(&self) -> bool {
        self.tenure.allows_calls(self.context.ports.clock.uptime())
    }

    /// Renews the lease if that is due. A store that fails is asked again for as long as the lease
    /// lasts; calls in flight go on meanwhile.
    async fn keep_lease(&mut self) -> Result<(), AppendError> {
        let context = Arc::clone(&self.context);
        let asked_at = context.ports.clock.uptime();
        if !self.tenure.renewal_due_in(asked_at).is_zero() {
            return Ok(());
        }
        let lease = self.tenure.lease().clone();
        let renewing = context.ports.store.renew(&lease, self.tenure.ttl());
        match self.collecting_calls(renewing).await {
            Ok(lease) => self.tenure.renew(lease, asked_at),
            // No other process can take the run over in a store that cannot be written; one that cannot be
            // reached from here may be reached from elsewhere.
            Err(AppendError::Store(error))
                if error.may_pass() && !matches!(error, StoreError::Unreachable(_))
                    || matches!(error, StoreError::Failed(_) | StoreError::Unreachable(_))
                        && !self.tenure.is_over(context.ports.clock.uptime()) =>
            {
                tracing::warn!(run = %self.run.id(), %error, "the lease could not be renewed; the store is asked again");
                self.tenure.postpone(context.ports.clock.uptime());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns once a call may be made: half a lease without word from the store is too long.
    pub(super) async fn secure_lease(&mut self) -> Result<(), AppendError> {
        while !self.may_make_calls() {
            let clock = Arc::clone(&self.context.ports.clock);
            clock
                .sleep(self.tenure.renewal_due_in(clock.uptime()))
                .await;
            self.keep_lease().await?;
        }
        Ok(())
    }

    /// Decides, applies and queues what follows for the next commit. Returns the first event, if
    /// any. A refusal means that the world has moved on (a late answer, a step that was cancelled):
    /// nothing happens.
    pub(crate) fn execute(
        &mut self,
        command: &Command,
        cause: Cause,
    ) -> Result<Option<&RunEvent>, RunError> {
        let now = self.now();
        match self.journal.write(&mut self.run, command, cause, now) {
            Ok(entries) => Ok(entries.first().map(|entry| &entry.event)),
            Err(WriteError::Refused(refusal)) => {
                tracing::debug!(run = %self.run.id(), %refusal, "command refused");
                Ok(None)
            }
            Err(WriteError::Corrupt(corrupt)) => Err(corrupt.into()),
        }
    }

    fn accept(&mut self, request: Request) -> Result<(), RunError> {
        let first = self.journal.entries().len();
        let verdict = self.decide_request(&request.command)?;
        if let Some(claim) = request.claim
            && self.journal.entries().len() > first
        {
            self.journal.carry_out(claim);
        }
        match request.reply {
            Reply::Told(reply) => {
                // As they were written down: what is masked there is masked for the caller.
                let written = self.journal.entries()[first..]
                    .iter()
                    .map(|entry| entry.event.clone());
                let decided = verdict.map(|()| written.collect());
                self.batch.told.push((reply, decided));
            }
            Reply::Joined {
                reply,
                writer,
                reads,
            } => {
                let written = &self.journal.entries()[first..];
                let reads = reads && written.iter().all(is_free_turn);
                let leads_to_something = !written.is_empty();
                let written = written.iter().map(|entry| entry.event.clone());
                let decided = verdict.map(|()| written.collect());
                // A refusal leads to nothing, and neither does a caller who is gone.
                match reply.send(decided).is_ok() && leads_to_something {
                    true if reads => self.batch.reads.push(writer.write_first()),
                    true => self.batch.joined.push(writer),
                    false => {}
                }
            }
            Reply::Here(reply) => self.batch.replies.push((reply, verdict)),
            Reply::Message(id) => {
                let verdict = verdict.map_err(|refusal| refusal.to_string());
                self.journal.answer(id, verdict);
            }
        }
        Ok(())
    }

    fn decide_request(&mut self, command: &Command) -> Result<Verdict, RunError> {
        if let Err(refusal) = self
            .context
            .settings
            .policy
            .permit_command(&self.run, command)
        {
            return Ok(Err(refusal));
        }
        let now = self.now();
        match self
            .journal
            .write(&mut self.run, command, Cause::Command, now)
        {
            Ok(_) => Ok(Ok(())),
            Err(WriteError::Refused(refusal)) => Ok(Err(refusal)),
            Err(WriteError::Corrupt(corrupt)) => Err(corrupt.into()),
        }
    }

    /// The last order by which the run went on, for what it waits for.
    pub(super) fn last_resumed(&self) -> Option<&PauseOrder> {
        let orders = self.resumed.iter().chain(self.run.pause().resume_order());
        orders.max_by_key(|order| order.at)
    }

    /// Returns where the run is, for trying once more what may not become durable.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            run: self.run.clone(),
            journal: self.journal.clone(),
        }
    }

    pub(crate) fn restore(&mut self, before: Snapshot) {
        let Snapshot { run, journal } = before;
        self.run = run;
        self.journal = journal;
    }

    /// Waits for something while the answers of calls are collected.
    pub(super) async fn collecting_calls<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = std::pin::pin!(waiting);
        loop {
            tokio::select! {
                biased;
                ended = &mut waiting => return ended,
                Some(finished) = self.calls.next(), if !self.calls.is_empty() => self.finished.push(finished),
            }
        }
    }

    /// Waits for anything to happen, then takes everything that has happened by then.
    async fn wait(&mut self) -> Result<(), RunError> {
        if self.finished.is_empty() {
            let now = self.now();
            // Timers that fell due since the decision, while it was written, are still to be
            // served: they end the wait at once. Those before it had their turn.
            let timer = self.run.schedule().next_timer(self.decided_at);
            let timer = timer.map(|at| at.since(now));
            let clock = Arc::clone(&self.context.ports.clock);
            let isolation = self.isolation.next_timer(clock.awake());
            let renewal = self.tenure.renewal_due_in(clock.uptime());
            tokio::select! {
                biased;
                // Nothing can be recorded any more: what is in flight is stopped, and nothing starts.
                reason = failed_for_good(&mut self.store_failure) => return Err(AppendError::from(StoreError::Lost(reason)).into()),
                Some(finished) = self.calls.next(), if !self.calls.is_empty() => self.finished.push(finished),
                Some(request) = self.inbox.recv() => self.accept(request)?,
                held = self.questions.next() => self.hold(held)?,
                looked = Looking::answer(&mut self.looking) => self.record_look(looked)?,
                () = async { clock.sleep(timer.expect("guarded")).await }, if timer.is_some() => {}
                _ = self.freed.changed(), if self.starved => {}
                _ = self.draining.changed() => {}
                () = wait_for_claim(self.claims.as_deref()) => {}
                () = async { clock.sleep(isolation.expect("guarded")).await }, if isolation.is_some() => {}
                () = clock.sleep(renewal) => {}
            }
        }
        if !self.batch.reads.is_empty() {
            // They leave before anything is written about them.
            tokio::task::yield_now().await;
        }
        while let Ok(request) = self.inbox.try_recv() {
            self.accept(request)?;
        }
        self.collect_ready_calls();
        for finished in std::mem::take(&mut self.finished) {
            self.report(finished)?;
        }
        Ok(())
    }

    /// Takes the answers that are there already, so that they share the next commit.
    fn collect_ready_calls(&mut self) {
        use futures::FutureExt as _;
        while !self.calls.is_empty() {
            match self.calls.next().now_or_never() {
                Some(Some(finished)) => self.finished.push(finished),
                Some(None) | None => return,
            }
        }
    }

    fn report(&mut self, finished: Finished) -> Result<(), RunError> {
        let Finished {
            step,
            attempt,
            answer,
            large,
            used,
        } = finished;
        self.forget_child(step, attempt);
        if self
            .in_flight
            .get(&step)
            .is_some_and(|flight| flight.attempt == attempt)
        {
            self.in_flight.remove(&step);
            self.questions.forget(step);
        }
        // The values of a loop's elements are read again when they are gathered: there may be many.
        if let (Some(value), CallReport::Succeeded(StoredValue::Artifact(artifact))) =
            (large, &answer)
            && self.run.instance(step).is_none()
        {
            self.large.keep(&self.run, step, artifact.bytes, value);
        }
        for used in used {
            self.execute(&Command::NoteModel { step, used }, Cause::Report)?;
        }
        self.execute(
            &Command::Report {
                step,
                attempt,
                answer,
            },
            Cause::Report,
        )?;
        self.large.drop_unread(&self.run);
        Ok(())
    }
}

/// Waits for a client to claim a step.
async fn wait_for_claim(claims: Option<&StepClaims>) {
    match claims {
        Some(claims) => claims.wait().await,
        None => std::future::pending().await,
    }
}
