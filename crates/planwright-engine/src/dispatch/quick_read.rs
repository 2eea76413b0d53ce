//! A call of a client that only reads, made where it is wanted.
//!
//! Its run is decided on by the same rules as any other and has the same entries, and as long as nothing
//! happens to it but its answer, it has no loop. The call leaves first, and what is written about it is made
//! after the answer is on its way. A run that takes longer, or to which anything else happens, gets a loop
//! with the call in flight: it can be told to stop, asks people, and is tried again there.

use super::call::{self, Finished};
use super::run_loop::{First, RunLoop};
use super::schedule::{ErrorDetail, Prepared, check_args};
use crate::context::{
    ClientEars, Demand, JointOpening, LateRecord, Observers, Presence, RunFamily, Tenure,
    current_claim, telemetry,
};
use crate::dispatch::inline_budget::InlineBudget;
use crate::journal::call_digest::call_digest;
use crate::journal::run_values::{LargeValues, RunValues};
use crate::journal::writer::JournalWriter;
use crate::port::{Append, AppendError, BoxFuture, Call, Lease, LeaseRule, StoreError};
use crate::run::child::{ChildOrder, WANTED_STEP, options};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use planwright_core::digest::Digest;
use planwright_core::id::AttemptNo;
use planwright_core::journal::Cause;
use planwright_core::plan::StepIx;
use planwright_core::policy::{CallToJudge, late_arguments};
use planwright_core::run::{
    CallFacts, CallReport, Command, Run, RunEvent, StepError, StepErrorCode, StoredValue,
    idempotency_key, priorities, unit_estimate,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{EffectClass, KnownTool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// For so long a call is waited for before its run gets a loop. Until then no command can reach it.
const PATIENCE: Duration = Duration::from_millis(25);

/// The epoch of the first lease of a run.
const FIRST: u64 = 1;

/// What became of the run of a call that only reads.
#[derive(Debug)]
pub(crate) enum ReadRun {
    /// It has a loop.
    Executing(RunHandle),
    /// It is over.
    Ended(Result<Value, StepError>),
}

/// A call in flight, and the run that it is.
struct Reading {
    runs: Runs,
    run: Run,
    journal: JournalWriter<RunEvent>,
    tenure: Tenure,
    options: RunOptions,
    observers: Observers,
    run_span: Span,
    family: RunFamily,
    flight: ReadInFlight,
    /// What the run comes after, until that is written.
    decided: Option<JointOpening>,
    /// It is, and there was room for the records of the run.
    is_followed: bool,
}

struct ReadInFlight {
    step: StepIx,
    attempt: AttemptNo,
    cancelled: CancellationToken,
    span: Span,
    presence: Presence,
    calling: BoxFuture<'static, Finished>,
}

/// A call that is in flight when the loop of its run begins.
pub(crate) struct Attended {
    pub(crate) run_span: Span,
    flight: ReadInFlight,
}

impl fmt::Debug for Attended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attended")
            .field("step", &self.flight.step)
            .finish_non_exhaustive()
    }
}

impl RunLoop {
    /// Goes on with a call that was made before the loop began.
    pub(super) fn attend(&mut self, attended: Attended) {
        let ReadInFlight {
            step,
            attempt,
            cancelled,
            span,
            presence,
            calling,
        } = attended.flight;
        self.reads = true;
        self.note_flight(step, attempt, cancelled, span, None);
        self.keep_presence(step, presence);
        self.calls.push(calling);
    }
}

impl Runs {
    /// Makes a call that only reads, and that nothing was held against. Its run comes after the entry
    /// that says so.
    pub(crate) async fn read(
        &self,
        order: ChildOrder,
        ears: ClientEars,
        mut decided: JointOpening,
    ) -> Result<ReadRun, CallReport> {
        let Some(mut reading) = self.begin_read(&order, ears) else {
            decided.follow().await.map_err(|error| unwritten(&error))?;
            let opened = Box::pin(self.open_reading_child(&order)).await;
            return opened.map(ReadRun::Executing);
        };
        reading.decided = Some(decided);
        let mut guarded = Guarded(Some(reading));
        let answered = match guarded.0.as_mut() {
            Some(reading) => reading.answered().await,
            None => return Err(CallReport::NotMade),
        };
        let Some(reading) = guarded.0.take() else {
            return Err(CallReport::NotMade);
        };
        let ended = match answered {
            Ok(Some(finished)) => reading.end(finished).await,
            Ok(None) => Box::pin(reading.hand_over()).await.map(ReadRun::Executing),
            Err(error) => Err(error),
        };
        ended.map_err(|error| unwritten(&error))
    }

    /// Decides about the run of a call as its loop would, and makes the call. Nothing if there is any
    /// reason not to make it at once and without a loop.
    fn begin_read(&self, order: &ChildOrder, ears: ClientEars) -> Option<Reading> {
        let context = &self.context;
        // The entries carry out no request of a caller, and nothing begins in a process that is about to end.
        if current_claim().is_some() || *context.active.draining().borrow() {
            return None;
        }
        let plan = Arc::clone(&order.subplan.plan);
        let step = plan.find(WANTED_STEP)?;
        let written = plan.step(step);
        let catalog = context.ports.tools.catalog();
        let tool = catalog.resolve(written.action_label()).ok()?;
        let is_plain = plan.len() == 1
            && order.wanted.is_some()
            && order.variables.is_empty()
            && written.capability.is_none()
            && plan.all_secrets().is_empty();
        if !is_plain || !tool.is_read_only() || tool.class != EffectClass::Safe {
            return None;
        }
        let presence = context.limiter.try_enter()?;
        let demand = Demand::of(&*context.ports.tools, &tool.name.server);
        let permit = context.limiter.try_admit(tool, demand)?;

        let asked_at = context.ports.clock.uptime();
        let started = self.start_of_child(&plan, order);
        let priority = priorities(&plan, unit_estimate);
        let id = order.parent.child();
        let (mut run, mut journal) = self.first_entries(&id, &plan, priority, started, Vec::new());
        let (facts, digest) = self.facts_of_read(&run, step, tool)?;
        let args = Arc::clone(&facts.args);
        let command = Command::Start {
            step,
            tool: tool.name.clone(),
            class: tool.class,
            call: digest,
            facts: Some(Box::new(facts)),
        };
        let now = context.ports.clock.now();
        let entries = journal
            .write(&mut run, &command, Cause::Schedule, now)
            .ok()?;
        let Some(RunEvent::AttemptStarted { attempt, .. }) = entries.first().map(|e| &e.event)
        else {
            return None;
        };
        let attempt = *attempt;
        drop(command);

        let observers = context.active.watching(Vec::new());
        let run_span = telemetry::run_span(&run);
        let family = RunFamily::enter(context, &run);
        let Value::Object(args) = Arc::unwrap_or_clone(args) else {
            return None;
        };
        let cancelled = CancellationToken::new();
        let mut call = Call {
            tool: tool.name.clone(),
            args,
            definition: Some(tool.digest()),
            plan: plan.id().clone(),
            run: id.clone(),
            top_run: family.top().clone(),
            acts_for: run.start().acts_for().cloned(),
            step: run.step_id(step).clone(),
            attempt,
            idempotency_key: idempotency_key(&id, &run.start().digest, run.step_id(step)),
            cancelled: cancelled.clone(),
            answered: Vec::new(),
            progress: observers.sink(&id, run.step_id(step)).and(ears.progress),
            trace: None,
            answer: ears.answer,
            client: ears.client,
            person: None,
            files: Vec::new(),
        };
        let span = run_span.in_scope(|| telemetry::call_span(&call, &context.redaction));
        call.trace = telemetry::call_place(&span, run.start().trace, &call);
        let prepared = Prepared {
            step,
            call,
            permit,
            expectation: None,
            offer: None,
        };
        let budget = Arc::new(InlineBudget::of(&run));
        let calling = call::make(context, &budget, prepared, span.clone(), None);
        let ttl = context.settings.lease_ttl;
        let lease = Lease {
            run: id,
            owner: context.settings.owner.clone(),
            epoch: FIRST,
            expires_at: now.plus(ttl),
        };
        Some(Reading {
            runs: self.clone(),
            tenure: Tenure::new(lease, ttl, asked_at),
            options: options(order),
            observers,
            run_span,
            family,
            flight: ReadInFlight {
                step,
                attempt,
                cancelled,
                span,
                presence,
                calling,
            },
            run,
            journal,
            decided: None,
            is_followed: false,
        })
    }

    /// What decides about the call of such a run, or nothing if a person would be asked.
    fn facts_of_read(
        &self,
        run: &Run,
        step: StepIx,
        tool: &KnownTool,
    ) -> Option<(CallFacts, Digest)> {
        let plan = run.plan();
        let values = LargeValues::default();
        let args = plan
            .resolve_args(step, &RunValues::new(run, &values, step))
            .ok()?;
        let args = check_args(tool, args, ErrorDetail::WithValues).ok()?;
        let args = Arc::new(Value::Object(args));
        let subject = CallToJudge {
            tool: Some(tool),
            args: &args,
            unknown: &BTreeSet::new(),
            step: run.definition(step),
            step_id: plan.step_id(step).as_str(),
            plan: plan.id().as_str(),
            chosen_by_model: run.is_agent_call(),
        };
        let late = !late_arguments(plan, step).is_empty();
        let policy = &self.context.settings.policy;
        let facts = CallFacts::new(policy, tool, Arc::clone(&args), late, &subject);
        let consent = run.start().consent.as_deref();
        let pin = consent.and_then(|consent| consent.pins.get(&tool.name.to_string()));
        let is_pinned = pin.is_none_or(|pin| pin.digest == tool.digest());
        let call = call_digest(&tool.name, &args);
        let asks = run.asks_about(step, call, &facts);
        (is_pinned && !asks).then_some((facts, call))
    }
}

impl Reading {
    /// Waits for the answer. Nothing if it takes too long for a run without a loop.
    async fn answered(&mut self) -> Result<Option<Finished>, AppendError> {
        let finished = match futures::poll!(&mut self.flight.calling) {
            Poll::Ready(finished) => Some(finished),
            Poll::Pending => {
                // The request is on its way when this goes on.
                tokio::task::yield_now().await;
                None
            }
        };
        self.follow()
            .await
            .inspect_err(|_| self.flight.cancelled.cancel())?;
        if finished.is_some() {
            return Ok(finished);
        }
        let answer = tokio::time::timeout(PATIENCE, &mut self.flight.calling).await;
        Ok(answer.ok())
    }

    /// Returns once the decision that the run comes after is written, and there is room for its records.
    async fn follow(&mut self) -> Result<(), AppendError> {
        if let Some(decided) = &mut self.decided {
            let followed = decided.follow().await;
            self.decided = None;
            followed?;
        }
        if self.is_followed {
            return Ok(());
        }
        let store = &self.runs.context.ports.grouped;
        if !store.has_room() {
            store.flush().await?;
        }
        if let Some(reason) = store.trouble() {
            return Err(StoreError::Failed(reason).into());
        }
        self.is_followed = true;
        self.observers.executing(&self.run);
        // Of the first entry they heard just now.
        self.observers
            .tell(&self.run, &self.journal.entries()[1..], Duration::ZERO);
        Ok(())
    }

    /// Hands in the first entries of the run.
    async fn open(&mut self) -> Result<(), AppendError> {
        self.follow().await?;
        let (append, _) = self.journal.take_append(&self.run, opening(&self.tenure));
        self.runs.context.ports.grouped.hold_begun(append);
        Ok(())
    }

    /// Ends the run with an answer that leaves nothing open, or has its loop see to it.
    async fn end(self, finished: Finished) -> Result<ReadRun, AppendError> {
        let value = match (&finished.answer, &finished.large) {
            (CallReport::Succeeded(_), Some(large)) => Some(Value::clone(large)),
            (CallReport::Succeeded(StoredValue::Inline(value)), None) => Some(Value::clone(value)),
            _ => None,
        };
        let store = Arc::clone(&self.runs.context.ports.grouped);
        let Some(value) = value.filter(|_| store.has_room()) else {
            return Box::pin(self.hand_over_with(finished)).await;
        };
        let Self {
            runs,
            run,
            journal,
            tenure,
            observers,
            run_span,
            family,
            flight,
            ..
        } = self;
        store.hold_unmade(Box::new(ReadRecord {
            run,
            journal,
            first: opening(&tenure),
            observers,
            run_span,
            report: Command::Report {
                step: flight.step,
                attempt: flight.attempt,
                answer: finished.answer,
            },
            at: runs.context.ports.clock.now(),
            _family: family,
        }));
        Ok(ReadRun::Ended(Ok(value)))
    }

    async fn hand_over_with(mut self, finished: Finished) -> Result<ReadRun, AppendError> {
        self.flight.calling = Box::pin(std::future::ready(finished));
        self.hand_over().await.map(ReadRun::Executing)
    }

    /// Gives the run a loop, which goes on with the call.
    async fn hand_over(mut self) -> Result<RunHandle, AppendError> {
        self.open()
            .await
            .inspect_err(|_| self.flight.cancelled.cancel())?;
        let Self {
            runs,
            run,
            journal,
            tenure,
            options,
            run_span,
            family,
            flight,
            ..
        } = self;
        let attended = Attended { run_span, flight };
        let first = First::Attend(Box::new(attended));
        let handle = runs.execute(run, journal, tenure, options, first, None);
        // The loop has a place of its own in the family by now.
        drop(family);
        Ok(handle)
    }
}

/// A call that goes on in a run with a loop if the one who waits for it goes away.
struct Guarded(Option<Reading>);

impl Drop for Guarded {
    fn drop(&mut self) {
        let Some(reading) = self.0.take() else {
            return;
        };
        // Without a runtime this process is ending, and nothing goes on any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = reading.hand_over().await {
                    tracing::warn!(%error, "a read was given up");
                }
            });
        }
    }
}

/// The lease that the first entries of a run take.
fn opening(tenure: &Tenure) -> LeaseRule {
    LeaseRule::Open {
        owner: tenure.lease().owner.clone(),
        ttl: tenure.ttl(),
    }
}

/// A read that has ended, as it is written when there is time for it.
struct ReadRecord {
    run: Run,
    /// It has the first entries, which are not taken yet.
    journal: JournalWriter<RunEvent>,
    first: LeaseRule,
    observers: Observers,
    run_span: Span,
    report: Command,
    at: Timestamp,
    _family: RunFamily,
}

impl fmt::Debug for ReadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadRecord")
            .field("run", self.run.id())
            .finish_non_exhaustive()
    }
}

impl LateRecord for ReadRecord {
    fn make(self: Box<Self>) -> Vec<Append> {
        let Self {
            mut run,
            mut journal,
            first,
            observers,
            run_span,
            report,
            at,
            _family,
        } = *self;
        let (began, _) = journal.take_apart(&run, first);
        let mut made = vec![began];
        let commands = [(report, Cause::Report), (Command::Settle, Cause::Schedule)];
        for (command, cause) in &commands {
            if let Err(error) = journal.write(&mut run, command, *cause, at) {
                let run = run.id();
                tracing::error!(%run, %error, "the end of a read cannot be written");
                return made;
            }
        }
        let (ended, entries) = journal.take_apart(&run, LeaseRule::Release { epoch: FIRST });
        made.push(ended);
        observers.tell(&run, &entries, Duration::ZERO);
        telemetry::run_left(&run_span, &run);
        observers.left(run.id());
        made
    }
}

/// A read whose record cannot be written is no read: its value is told to no one.
fn unwritten(error: &AppendError) -> CallReport {
    let message = format!("nothing is read while the journal cannot be written: {error}");
    CallReport::Failed(StepError::new(StepErrorCode::ValueNotStored, message))
}
