//! Starting, resuming and forking runs.

use crate::context::current_claim;
use crate::context::telemetry;
use crate::context::{JointOpening, Tenure};
use crate::dispatch::{Ended, First, Opening, RunError, RunLoop, Setup};
use crate::journal::load::{LoadError, load_review, load_run};
use crate::journal::writer::{JournalWriter, not_before};
use crate::port::{AcquireError, Append, AppendError, ArtifactError, Lease, LeaseRule, StoreError};
use crate::reflection::Origin;
use crate::review::append::{damaged_plan, write_error};
use crate::review::missing_executor::MissingExecutor;
use crate::review::plans::{Candidate, ReviewError};
use crate::run::durations;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::undo::{OriginalJournal, UNDOING};
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::journal::{Cause, Head, StreamName};
use planwright_core::plan::{Document, Finding, OnFailure, Plan, StepIx};
use planwright_core::policy::{Permission, PolicyDenial};
use planwright_core::principal::Assurance;
use planwright_core::review::{Review, ReviewCommand, ReviewRefusal};
use planwright_core::run::{
    Consent, Fork, Parent, Reflection, ReusedResult, Run, RunEvent, Shown, carry_over,
    estimates_by_tool, priorities, reusable_results,
};
use planwright_core::status::RunStatus;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

/// The reason a run was not started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartRunError {
    /// The plan or run cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The plan has errors, listed as findings.
    #[error("the plan is not valid")]
    Invalid(Vec<Finding>),
    /// These tools are not available.
    #[error("Required tools not available: {}", .0.join(", "))]
    MissingTools(Vec<String>),
    /// The plan uses features that this version cannot execute.
    #[error("this version cannot execute {}", .0.join(", "))]
    Unsupported(Vec<String>),
    /// A step has no model or executor to work on it.
    #[error(transparent)]
    MissingExecutor(#[from] MissingExecutor),
    /// The review refuses the start, for example without an approval.
    #[error(transparent)]
    Refused(#[from] ReviewRefusal),
    /// The plan has another version than the run.
    #[error(
        "the plan was edited since: the run executes version {run}, the plan is at version {current}"
    )]
    Edited {
        /// Version that the run executes.
        run: u32,
        /// Current version of the plan.
        current: u32,
    },
    /// A tool, a sub-plan or the policy is not the one the run was approved with.
    #[error(
        "a tool, a sub-plan or the policy changed since the run started: approved {approved}, now {current}{difference}"
    )]
    ToolsChanged {
        /// The digest that was approved.
        approved: Digest,
        /// The digest that would run.
        current: Digest,
        /// The changes, in words.
        difference: Difference,
    },
    /// The approval covers something else than what would run.
    #[error(
        "the approval covers {approved}, but {current} would run: the plan, its variables, a tool or the policy changed{difference}"
    )]
    Changed {
        /// The digest that was approved.
        approved: Digest,
        /// The digest that would run.
        current: Digest,
        /// The changes, in words.
        difference: Difference,
    },
    /// A rule of the policy forbids a step.
    #[error(transparent)]
    Denied(#[from] PolicyDenial),
    /// A choice about late-bound arguments does not fit the plan, in words.
    #[error("{0}")]
    BadChoice(String),
    /// A large value could not be read or stored.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// No run of the plan is unfinished.
    #[error("plan `{0}` has no run that could be resumed")]
    NothingToResume(PlanId),
    /// Another run of the plan has not ended.
    #[error("plan `{plan}` is already executing as {run}")]
    AlreadyExecuting {
        /// The plan.
        plan: PlanId,
        /// The run that has not ended.
        run: RunId,
    },
    /// The run has ended.
    #[error("run {run} has already ended ({status})")]
    Ended {
        /// The run.
        run: RunId,
        /// The status it ended with.
        status: RunStatus,
    },
    /// An undo of a run of this plan has not ended.
    #[error("{run} of plan `{plan}` is being undone")]
    BeingUndone {
        /// The plan.
        plan: PlanId,
        /// The run that is being undone.
        run: RunId,
    },
    /// The run belongs to a step of another run, which resumes it.
    #[error("{run} belongs to step `{}` of {}: resume that run instead", .parent.step, .parent.run)]
    ChildRun {
        /// The child run.
        run: RunId,
        /// The step it works for.
        parent: Parent,
    },
    /// No step has this id.
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    /// The engine is stopping and starts nothing.
    #[error("the service is shutting down and starts no new runs")]
    Stopping,
    /// Another process owns the run.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The start could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// What changed about which tool; empty when no tool did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference(pub String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.0)
        }
    }
}

impl From<ReviewError> for StartRunError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Load(error) => Self::Load(error),
            ReviewError::Refused(refusal) => Self::Refused(refusal),
            ReviewError::Invalid(findings) => Self::Invalid(findings),
            ReviewError::Edit(error) => Self::BadChoice(error.to_string()),
            ReviewError::OtherPlan { .. } | ReviewError::StoredTooMuch { .. } => {
                Self::BadChoice(error.to_string())
            }
            ReviewError::MissingTools(missing) => Self::MissingTools(missing),
            ReviewError::Denied(denied) => Self::Denied(denied),
            ReviewError::BadChoice(choice) => Self::BadChoice(choice),
            ReviewError::Artifact(error) => Self::Artifact(error),
            ReviewError::Append(error) => Self::Append(error),
        }
    }
}

/// Refuses an order that wants a run narrower than it was agreed to: the consent is what counts, and
/// it would be wider than the giver of the order believes.
pub(crate) fn check_narrow_enough(
    plan: &PlanId,
    consent: &Consent,
    options: &RunOptions,
) -> Result<(), StartRunError> {
    let given = options.approval.iter().map(|given| &given.late);
    for chosen in given.chain([&options.late]) {
        if let Some((step, choice)) = consent.find_choice_not_agreed(chosen) {
            return Err(ReviewRefusal::ApprovedWider {
                plan: plan.clone(),
                step: step.clone(),
                choice: choice.to_string(),
            }
            .into());
        }
    }
    Ok(())
}

/// How a plan itself wants its runs to be looked at: when a step failed for good.
fn wished(document: &Document) -> Option<Reflection> {
    let limits = &document.limits;
    (limits.on_failure == Some(OnFailure::Reflect)).then(|| Reflection {
        max_cycles: limits
            .max_cycles
            .unwrap_or(Reflection::DEFAULT_MAX_CYCLES)
            .min(Reflection::MAX_CYCLES),
        max_replans: limits.max_replans.unwrap_or(0).min(Reflection::MAX_CYCLES),
        failures_only: true,
        ..Reflection::default()
    })
}

/// What is written in the commit that opens a run.
#[derive(Debug, Default)]
pub(crate) struct OpeningCommit {
    /// Appends to other streams.
    pub(crate) with: Vec<Append>,
    /// The run that decided to open it, if that run writes the commit.
    pub(crate) joint: Option<JointOpening>,
    /// The run is one call that reads, and policy lets it.
    pub(crate) reads: bool,
}

impl From<Vec<Append>> for OpeningCommit {
    fn from(with: Vec<Append>) -> Self {
        Self {
            with,
            ..Self::default()
        }
    }
}

impl Runs {
    /// Begins a run of a plan's current version and spends its approval.
    pub async fn start(
        &self,
        id: &PlanId,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let (review, head) = load_review(&*self.context.ports.store, id).await?;
        self.check_startable(&review).await?;
        let candidate = self.check_runnable(&review, &options.variables).await?;
        self.open(review, head, candidate, options, None).await
    }

    /// Proposes, approves and starts a document in one call, for programs that are their user's own
    /// hand. The approval is recorded as `options.by`'s, given by a program; agents are refused
    /// here as everywhere.
    pub async fn run_document(
        &self,
        document: Document,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let (review, _) = self.plans().propose(document, &options.by).await?;
        let candidate = self.plans().candidate(&review, &options.variables).await?;
        let shown = Shown::Digest(candidate.digest);
        let id = review.id().clone();
        self.plans()
            .approve(
                &id,
                &options.variables,
                shown,
                &options.by,
                Assurance::Program,
            )
            .await?;
        self.start(&id, options).await
    }

    /// Begins a run that takes over the results of another one, except those of `from` and all that
    /// follow from them. Without any it goes on where the other one ended.
    pub async fn fork(
        &self,
        source: &RunId,
        from: &[StepId],
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let plan = crate::journal::load::plan_of_run(&*self.context.ports.store, source).await?;
        let (review, head) = load_review(&*self.context.ports.store, &plan).await?;
        self.check_startable(&review).await?;
        let (source_run, _) = load_run(
            &*self.context.ports.store,
            source,
            &review,
            &self.context.settings.bounds,
        )
        .await?;
        let candidate = self.check_runnable(&review, &options.variables).await?;
        let first: Vec<StepIx> = from
            .iter()
            .map(|step| {
                let found = candidate.plan.find(step.as_str());
                found.ok_or_else(|| StartRunError::UnknownStep(step.to_string()))
            })
            .collect::<Result<_, _>>()?;
        let taken_over = match first.as_slice() {
            // Also what was skipped, so that nothing that was done after it is done again.
            [] => carry_over(&source_run, &candidate.plan),
            first => reusable_results(&source_run, &candidate.plan, first)
                .into_iter()
                .map(|ReusedResult { step, value }| {
                    let step = candidate.plan.step_id(step).clone();
                    RunEvent::ResultReused { step, value }
                })
                .collect(),
        };
        let origin = Origin {
            fork: Fork {
                run: source.clone(),
                from: from.to_vec(),
            },
            taken_over,
            reflection: None,
            agreed: BTreeSet::new(),
            late: BTreeMap::new(),
        };
        self.open(review, head, candidate, options, Some(origin))
            .await
    }

    /// What would run, or every reason why it cannot.
    pub async fn check_runnable(
        &self,
        review: &Review,
        variables: &Map<String, Value>,
    ) -> Result<Candidate, StartRunError> {
        let candidate = self.plans().candidate(review, variables).await?;
        self.plans().check_sound(&candidate)?;
        let unsupported: Vec<String> = candidate
            .plan
            .unsupported_features()
            .into_iter()
            .map(|(ix, what)| format!("`{what}` (step `{}`)", candidate.plan.step_id(ix)))
            .collect();
        if !unsupported.is_empty() {
            return Err(StartRunError::Unsupported(unsupported));
        }
        if let Some(missing) = self.plans().find_missing_executor(&candidate.plan) {
            return Err(missing.into());
        }
        Ok(candidate)
    }

    /// Refuses to start a run of a plan that is executing or being taken back. Asked before a
    /// person is: no one approves what cannot start.
    pub async fn check_startable(&self, review: &Review) -> Result<(), StartRunError> {
        let Some(opened) = review.runs().last() else {
            return Ok(());
        };
        if self.plans().status(review).await?.is_executing() {
            return Err(StartRunError::AlreadyExecuting {
                plan: review.id().clone(),
                run: opened.run.clone(),
            });
        }
        let runs = self
            .context
            .ports
            .store
            .runs(review.id())
            .await
            .map_err(LoadError::from)?;
        let undoing = runs.into_iter().find(|info| info.status.label == UNDOING);
        match undoing.map(|info| info.stream) {
            Some(StreamName::Run(run)) => Err(StartRunError::BeingUndone {
                plan: review.id().clone(),
                run,
            }),
            Some(StreamName::Plan(_)) | None => Ok(()),
        }
    }

    pub(crate) async fn open(
        &self,
        review: Review,
        head: Head,
        candidate: Candidate,
        options: RunOptions,
        origin: Option<Origin>,
    ) -> Result<RunHandle, StartRunError> {
        self.plans().permit(&options.by, Permission::Run)?;
        let judged = self.plans().judge(&candidate.plan);
        if let Some(denied) = judged.denial() {
            return Err(denied.into());
        }
        judged
            .check_choices(&candidate.plan, &options.late)
            .map_err(StartRunError::BadChoice)?;
        let (review, head) = self.plans().without_lost_approvals(review, head).await?;
        let run_id = RunId::mint(self.context.ports.ids.entropy());
        let given = match &options.approval {
            Some(given) => {
                let agreed = origin.as_ref().map(|origin| &origin.agreed);
                let plans = self.plans();
                let approval = plans.build_approval((&review, &candidate), &judged, given, agreed);
                Some(approval.await?)
            }
            None => None,
        };
        let Candidate { plan, digest, .. } = candidate;
        let version = review.current().number;
        let previous = review.runs().last().map(|opened| opened.run.clone());
        // One instant for all that is decided here: what is valid when it is checked is valid when
        // it is spent.
        let now = not_before(&review, self.context.ports.clock.now());
        let mut review = review;
        let mut journal = self.plans().plan_writer(plan.id(), head);
        if let Some(given) = &given {
            journal
                .write(&mut review, given, Cause::Command, now)
                .map_err(write_error(plan.id()))?;
        }
        let command = ReviewCommand::OpenRun {
            run: run_id.clone(),
            digest,
        };
        let events = match review.decide(&command, now) {
            Ok(events) => events,
            Err(refusal) => {
                // One of several who have to agree has agreed all the same.
                if let (ReviewRefusal::NotEnough { .. }, Some(_)) = (&refusal, given) {
                    let (approved, _) = journal.take_append(&review, LeaseRule::None);
                    self.context.ports.store.append(vec![approved]).await?;
                }
                return Err(self.explained(&review, refusal).await);
            }
        };
        // Looked up before the entry that spends them is applied.
        let spent = review.usable_approvals(&digest, now).unwrap_or_default();
        let mut consent = Consent::of(&spent, review.current(), &self.context.settings.policy);
        if let Some(origin) = origin.as_ref().filter(|_| !consent.is_a_persons()) {
            consent.agreed.clone_from(&origin.agreed);
            consent.late.extend(origin.late.clone());
        }
        check_narrow_enough(plan.id(), &consent, &options)?;
        journal
            .record(&mut review, events, Cause::Command, now)
            .map_err(|corrupt| damaged_plan(plan.id(), &corrupt))?;
        let (plan_append, _) = journal.take_append(&review, LeaseRule::None);

        let (fork, taken_over, reflection) = match origin {
            Some(Origin {
                fork,
                taken_over,
                reflection,
                ..
            }) => (Some(fork), taken_over, reflection),
            None => (None, Vec::new(), None),
        };
        let reflection = reflection
            .or_else(|| options.reflection.clone())
            .or_else(|| wished(plan.document()));
        let started = RunEvent::RunStarted {
            plan: plan.id().clone(),
            version,
            digest,
            variables: options.variables.clone(),
            max_concurrency: options
                .max_concurrency
                .unwrap_or_else(|| plan.document().limits.max_concurrency()),
            guards: options.guards,
            by: options.by.clone(),
            forked_from: fork.map(Box::new),
            consent: Some(Box::new(consent)),
            undoes: None,
            parent: None,
            document: None,
            trace: options
                .trace
                .or_else(|| review.current().trace)
                .map(Box::new),
            reflection: reflection.map(Box::new),
            call_timeout_ms: Some(self.context.call_timeout_ms()),
            stepwise: options.stepwise.is_some(),
        };
        let priority = self.priority(&plan, previous.as_ref()).await;
        let mut taken_over = taken_over;
        taken_over.extend(options.queued.map(|slots| RunEvent::RunQueued { slots }));
        let first = self.first_entries(&run_id, &plan, priority, started, taken_over);
        // Boxed: a run in its first moment is large, and many futures hold this one.
        let with = OpeningCommit::from(vec![plan_append]);
        Box::pin(self.begin(first, with, None, options)).await
    }

    /// Opens a run that no approval in the plan's own journal is spent for. `with` is written in
    /// the same commit.
    pub(crate) async fn open_run(
        &self,
        id: &RunId,
        plan: &Arc<Plan>,
        started: RunEvent,
        with: OpeningCommit,
        original: Option<OriginalJournal>,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let priority = self.priority(plan, None).await;
        let first = self.first_entries(id, plan, priority, started, Vec::new());
        Box::pin(self.begin(first, with, original, options)).await
    }

    /// Executes a new run, and returns once its first entries are durable, together with what
    /// belongs to them and with what can start at once.
    async fn begin(
        &self,
        (run, mut journal): (Run, JournalWriter<RunEvent>),
        commit: OpeningCommit,
        original: Option<OriginalJournal>,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let OpeningCommit {
            mut with,
            joint,
            reads,
        } = commit;
        let asked_at = self.context.ports.clock.uptime();
        let ttl = self.context.settings.lease_ttl;
        let lease = Lease {
            run: run.id().clone(),
            owner: self.context.settings.owner.clone(),
            epoch: 1,
            expires_at: self.context.ports.clock.now().plus(ttl),
        };
        let rule = LeaseRule::Open {
            owner: lease.owner.clone(),
            ttl,
        };
        if options.queued.is_some() {
            let (opened, _) = journal.take_append(&run, rule);
            with.push(opened);
            let store = &self.context.ports.store;
            store.append(with).await?;
            store.release(&lease).await.map_err(LoadError::from)?;
            return Ok(RunHandle::of_queued(run));
        }
        // The loop is a task of its own, and knows nothing of the request this one works on.
        if let Some(claim) = current_claim() {
            journal.carry_out(claim);
        }
        let (told, opened) = oneshot::channel();
        let opening = Opening {
            rule,
            with,
            told,
            joint,
            reads,
            entries: journal.entries().len(),
        };
        let tenure = Tenure::new(lease, ttl, asked_at);
        let first = First::Open(Box::new(opening));
        let mut handle = self.execute(run, journal, tenure, options, first, original);
        match opened.await {
            Ok(opened) => opened.map(|()| handle).map_err(StartRunError::from),
            // It ended before it came to that.
            Err(_) => {
                let reason = match handle.wait().await {
                    Ok(run) => format!("{} was not opened", run.id()),
                    Err(error) => error.to_string(),
                };
                Err(AppendError::from(StoreError::Failed(reason)).into())
            }
        }
    }

    /// Returns why there is an approval of this version that does not let it run, if there is one.
    pub async fn void_approval(&self, review: &Review, digest: Digest) -> Option<StartRunError> {
        let run = RunId::mint(0);
        let refusal = review
            .decide(
                &ReviewCommand::OpenRun { run, digest },
                self.context.ports.clock.now(),
            )
            .err()?;
        let void = matches!(
            refusal,
            ReviewRefusal::Changed { .. }
                | ReviewRefusal::Expired { .. }
                | ReviewRefusal::Revoked { .. }
                | ReviewRefusal::NotEnough { .. }
        );
        if void {
            Some(self.explained(review, refusal).await)
        } else {
            None
        }
    }

    /// A refusal with what changed since the approval, where that is the reason.
    async fn explained(&self, review: &Review, refusal: ReviewRefusal) -> StartRunError {
        let ReviewRefusal::Changed { approved, current } = refusal else {
            return refusal.into();
        };
        let covering = review
            .approvals()
            .iter()
            .rev()
            .find(|approval| approval.digest == approved);
        let difference = match covering {
            Some(approval) => self.plans().changed_tools(&approval.terms.pins).await,
            None => String::new(),
        };
        StartRunError::Changed {
            approved,
            current,
            difference: Difference(difference),
        }
    }

    /// The order in which ready steps start, from the times of the plan's previous run, and where
    /// that says nothing of a tool, from the latest runs of other plans.
    async fn priority(&self, plan: &Plan, previous: Option<&RunId>) -> Arc<[u64]> {
        let store = &*self.context.ports.store;
        let mut times = match previous {
            Some(run) => durations::tool_times(store, run).await,
            None => BTreeMap::new(),
        };
        let tools = self.tools_by_written_name(plan);
        // A plan whose steps can all start at once has no order to choose.
        let limit = plan.document().limits.max_concurrency();
        if plan.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
            let unknown = tools
                .values()
                .filter(|tool| !times.contains_key(*tool))
                .cloned()
                .collect();
            let others = durations::times_in_other_plans(&self.context, plan.id(), unknown);
            times.extend(others.await);
        }
        // Journals have the full names of tools, plans may have written others.
        for (written, full) in tools {
            if let Some(&time) = times.get(&full) {
                times.insert(written, time);
            }
        }
        priorities(plan, estimates_by_tool(plan, &times))
    }

    /// The full names of the tools that the steps call, by the names they are written with.
    fn tools_by_written_name(&self, plan: &Plan) -> BTreeMap<String, String> {
        let catalog = self.context.catalog();
        let steps = plan.document().steps.iter();
        let written = steps.filter_map(|step| step.tool.as_deref());
        let known = written.collect::<BTreeSet<_>>().into_iter();
        known
            .filter_map(|name| {
                let tool = catalog.resolve(name).ok()?;
                Some((name.to_owned(), tool.name.to_string()))
            })
            .collect()
    }

    pub(crate) fn first_entries(
        &self,
        id: &RunId,
        plan: &Arc<Plan>,
        priority: Arc<[u64]>,
        started: RunEvent,
        taken_over: Vec<RunEvent>,
    ) -> (Run, JournalWriter<RunEvent>) {
        let stream = StreamName::Run(id.clone());
        let mut journal = JournalWriter::new(&self.context.redaction, stream, Head::EMPTY, 1);
        let now = self.context.ports.clock.now();
        let mut run = journal
            .open(started, now, |entry| {
                Run::open(id.clone(), Arc::clone(plan), priority, entry)
            })
            .expect("the first entry starts the run");
        journal
            .record(&mut run, taken_over, Cause::Command, now)
            .expect("reused results come in dependency order, and before the wait for a slot");
        (run, journal)
    }

    /// Writes what follows in the journal of a run that was taken over.
    pub(crate) fn continue_journal(
        &self,
        run: &Run,
        head: Head,
        tenure: &Tenure,
    ) -> JournalWriter<RunEvent> {
        let stream = StreamName::Run(run.id().clone());
        let epoch = tenure.lease().epoch;
        JournalWriter::new(&self.context.redaction, stream, head, epoch).knowing_status_of(run)
    }

    pub(crate) fn execute(
        &self,
        run: Run,
        journal: JournalWriter<RunEvent>,
        tenure: Tenure,
        options: RunOptions,
        first: First,
        original: Option<OriginalJournal>,
    ) -> RunHandle {
        let (sender, inbox) = mpsc::channel(64);
        let run_id = run.id().clone();
        self.context.active.insert(run_id.clone(), sender.clone());
        self.start_postman();
        let span = match &first {
            First::Attend(attended) => attended.run_span.clone(),
            _ => telemetry::run_span(&run),
        };
        let observers = self.context.active.watching(options.observers);
        let run_loop = RunLoop::new(Setup {
            runs: self.clone(),
            run,
            journal,
            tenure,
            linger: options.linger,
            claims: options.stepwise,
            observers: observers.clone(),
            inbox,
            original,
            holds_questions: self.context.active.holds_questions.load(Ordering::Relaxed),
        });
        let runs = self.clone();
        let id = run_id.clone();
        let task = tokio::spawn(async move {
            let ended = Box::pin(run_loop.run(first).instrument(span.clone())).await;
            runs.context.active.remove(&id);
            match &ended {
                Ok(Ended { run }) => telemetry::run_left(&span, run),
                // The caller is told why, and there is no such run.
                Err(RunError::NotOpened) => {}
                Err(error) => {
                    tracing::error!(parent: &span, %error, "the run could not be executed any more");
                }
            }
            observers.left(&id);
            drop(span);
            if let Ok(Ended { run }) = &ended
                && run.state().is_terminal()
            {
                runs.cancel_children(run).await;
            }
            ended
        });
        RunHandle {
            run: run_id,
            inbox: sender,
            task,
        }
    }
}
