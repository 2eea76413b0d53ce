//! The runs of sub-plans. A child run has a journal of its own and an id that follows from its
//! place in the parent: a process that makes the step again finds the run it began and goes on with
//! it, instead of beginning another.

use crate::context::{JointOpening, Tenure};
use crate::dispatch::First;
use crate::journal::stored_value::{read_value, store_value};
use crate::port::{AcquireError, ArtifactError, BoxFuture};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::read_outputs;
use crate::run::remote_command::RunCommand;
use crate::run::runs::Runs;
use crate::run::start::{OpeningCommit, StartRunError};
use crate::run::undo::load_any_run;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, StreamName};
use planwright_core::plan::{Plan, Subplan};
use planwright_core::policy::LateChoice;
use planwright_core::principal::Principal;
use planwright_core::review::Pin;
use planwright_core::run::{
    CallReport, Consent, Parent, PauseOrder, Run, RunEvent, RunState, StepError, StepErrorCode,
    StepReport, StepState, StoredValue,
};
use planwright_core::status::RunStatus;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The one step of a run that makes a call an executor wanted.
pub(crate) const WANTED_STEP: &str = "call";

/// The time to wait before asking again for a child run that another owner holds.
const HELD_PAUSE: Duration = Duration::from_millis(100);

/// What a child run is started with.
#[derive(Debug)]
pub(crate) struct ChildOrder {
    pub(crate) parent: Parent,
    pub(crate) subplan: Subplan,
    /// Checked against the inputs of the sub-plan.
    pub(crate) variables: Map<String, Value>,
    pub(crate) by: Principal,
    /// The last order by which the parent went on.
    pub(crate) resumed: Option<PauseOrder>,
    pub(crate) guards: bool,
    pub(crate) linger: bool,
    /// What was agreed to for the parent; absent in runs from before it was written down.
    pub(crate) consent: Option<Box<Consent>>,
    /// The run is one call that an executor wanted, and no run of another plan.
    pub(crate) wanted: Option<WantedTerms>,
}

/// What holds for a call that an executor wanted.
#[derive(Debug)]
pub(crate) struct WantedTerms {
    /// What the approvers said about the calls of its step.
    pub(crate) late: Vec<LateChoice>,
    /// The tool as it was pinned with the plan; as it is now, if it was not.
    pub(crate) pin: Option<(String, Pin)>,
    /// The digest of its plan, with the tools as they are now.
    pub(crate) digest: Digest,
}

/// What the parent wants of its child. When the parent lets go of it, the child is left where it
/// is.
#[derive(Debug, Clone)]
pub(crate) enum ChildCommand {
    Continue,
    Pause(Principal),
    Cancel(Principal),
}

/// What came of a child run, and its value if that is too large for the journal.
pub(crate) type ChildAnswer = (CallReport, Option<Arc<Value>>);

/// A child run that ended or waits, and whether the parent wanted it cancelled; or why there is
/// none.
pub(crate) type DrivenChild = Result<(Box<Run>, bool), CallReport>;

impl Runs {
    /// Executes a child run until it ends or only a person can move it on, and says what its step
    /// came to.
    pub(crate) fn run_child(
        &self,
        order: ChildOrder,
        commands: watch::Receiver<ChildCommand>,
    ) -> BoxFuture<'static, ChildAnswer> {
        let runs = self.clone();
        let attended = self.drive_child(order, commands);
        Box::pin(async move {
            match attended.await {
                Ok((run, on_request)) => runs.answer_of(&run, on_request).await,
                Err(answer) => (answer, None),
            }
        })
    }

    /// Executes a child run until it ends or only a person can move it on. Boxed, because a child
    /// has children.
    pub(crate) fn drive_child(
        &self,
        order: ChildOrder,
        commands: watch::Receiver<ChildCommand>,
    ) -> BoxFuture<'static, DrivenChild> {
        let runs = self.clone();
        Box::pin(async move {
            let id = order.parent.child();
            let handle = tokio::select! {
                biased;
                begun = runs.begin_child(&id, &order) => match begun {
                    Ok(Begun::Executing(handle)) => handle,
                    Ok(Begun::Ended(run)) => return Ok((run, false)),
                    Err(answer) => return Err(answer),
                },
                () = let_go(commands.clone()) => return Err(CallReport::NotMade),
            };
            runs.attend_child(handle, commands).await
        })
    }

    /// Begins the child run in the commit in which its parent decides to.
    pub(crate) async fn open_joint_child(
        &self,
        order: &ChildOrder,
        joint: JointOpening,
    ) -> Result<RunHandle, CallReport> {
        let commit = OpeningCommit {
            joint: Some(joint),
            ..OpeningCommit::default()
        };
        self.open_child(&order.parent.child(), order, commit).await
    }

    /// Begins the run of a call that only reads, after its parent wrote that it decided to.
    pub(crate) async fn open_reading_child(
        &self,
        order: &ChildOrder,
    ) -> Result<RunHandle, CallReport> {
        let commit = OpeningCommit {
            reads: true,
            ..OpeningCommit::default()
        };
        self.open_child(&order.parent.child(), order, commit).await
    }

    /// Watches a child run that is executed until it ends or only a person can move it on.
    pub(crate) fn attend_child(
        &self,
        mut handle: RunHandle,
        mut commands: watch::Receiver<ChildCommand>,
    ) -> BoxFuture<'static, DrivenChild> {
        let runs = self.clone();
        Box::pin(async move {
            let id = handle.run_id().clone();
            let forwarded = runs.forward_commands(&id, &mut commands);
            let waited = tokio::select! {
                biased;
                ended = handle.wait() => Some(ended),
                () = forwarded => None,
            };
            match waited {
                Some(Ok(run)) => {
                    let on_request = matches!(*commands.borrow(), ChildCommand::Cancel(_));
                    Ok((Box::new(run), on_request))
                }
                Some(Err(error)) => Err(CallReport::Lost {
                    reason: format!("{id} stopped: {error}"),
                }),
                None => {
                    handle.abort();
                    Err(CallReport::Lost {
                        reason: format!("{id} was let go of"),
                    })
                }
            }
        })
    }

    /// Passes on what the parent wants, until it wants nothing any more.
    async fn forward_commands(&self, id: &RunId, commands: &mut watch::Receiver<ChildCommand>) {
        loop {
            let command = commands.borrow_and_update().clone();
            let command = match command {
                ChildCommand::Continue => None,
                ChildCommand::Pause(by) => Some(RunCommand::Pause { by }),
                ChildCommand::Cancel(by) => Some(RunCommand::Cancel { by }),
            };
            if let Some(command) = command
                && let Err(refusal) = Box::pin(self.command(id, command)).await
            {
                tracing::debug!(run = %id, %refusal, "the child refused the command");
            }
            if commands.changed().await.is_err() {
                return;
            }
        }
    }

    /// Begins the child run, or goes on with the one that was begun.
    async fn begin_child(&self, id: &RunId, order: &ChildOrder) -> Result<Begun, CallReport> {
        let stream = StreamName::Run(id.clone());
        let lost = |error: &dyn std::error::Error| CallReport::Lost {
            reason: error.to_string(),
        };
        let head = self
            .context
            .ports
            .store
            .head(&stream)
            .await
            .map_err(|error| lost(&error))?;
        if head == Head::EMPTY {
            let opened = self.open_child(id, order, OpeningCommit::default());
            return opened.await.map(Begun::Executing);
        }
        let (run, _) = load_any_run(&self.context, id)
            .await
            .map_err(|error| lost(&error))?;
        if run.start().parent.as_ref() != Some(&order.parent) {
            let message = format!("{id} is the run of something else");
            return Err(CallReport::Failed(StepError::new(
                StepErrorCode::PlanUnavailable,
                message,
            )));
        }
        if run.state().is_terminal() {
            return Ok(Begun::Ended(Box::new(run)));
        }
        let tenure = self.acquire_child(id).await?;
        // Only what is read under the lease is current.
        let (mut run, head) = load_any_run(&self.context, id)
            .await
            .map_err(|error| lost(&error))?;
        if run.state().is_terminal() {
            self.context
                .ports
                .store
                .release(tenure.lease())
                .await
                .map_err(|error| lost(&error))?;
            return Ok(Begun::Ended(Box::new(run)));
        }
        run.set_subplans(order.subplan.plan.subplans().clone());
        let first = First::resuming_child(&run, &order.by, order.resumed.as_ref());
        let journal = self.continue_journal(&run, head, &tenure);
        Ok(Begun::Executing(self.execute(
            run,
            journal,
            tenure,
            options(order),
            first,
            None,
        )))
    }

    /// Takes the child over. Another process may be writing a command to it at this moment, or its
    /// last owner may have to be given up first.
    async fn acquire_child(&self, id: &RunId) -> Result<Tenure, CallReport> {
        let patience = self.context.settings.lease_ttl * 2;
        let since = tokio::time::Instant::now();
        loop {
            match self.acquire(id).await {
                Ok(tenure) => return Ok(tenure),
                Err(AcquireError::Held { .. }) if since.elapsed() < patience => {
                    tokio::time::sleep(HELD_PAUSE).await;
                }
                Err(error) => {
                    return Err(CallReport::Lost {
                        reason: error.to_string(),
                    });
                }
            }
        }
    }

    /// The plan of a child with its inputs.
    fn plan_of_child(&self, order: &ChildOrder) -> Result<Arc<Plan>, CallReport> {
        let compiled = &order.subplan.plan;
        // A call that an executor wanted takes no inputs, and was compiled for this.
        if order.wanted.is_some() && order.variables.is_empty() {
            return Ok(Arc::clone(compiled));
        }
        let unavailable = |message: String| {
            CallReport::Failed(StepError::new(StepErrorCode::PlanUnavailable, message))
        };
        let document = compiled.document().with_variables(&order.variables);
        let mut plan =
            Plan::compile(document, &self.context.settings.bounds).map_err(|findings| {
                unavailable(
                    findings
                        .first()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                )
            })?;
        plan.set_subplans(compiled.subplans().clone());
        Ok(Arc::new(plan))
    }

    async fn open_child(
        &self,
        id: &RunId,
        order: &ChildOrder,
        commit: OpeningCommit,
    ) -> Result<RunHandle, CallReport> {
        let plan = self.plan_of_child(order)?;
        let started = self.start_of_child(&plan, order);
        let opened = self
            .open_run(id, &plan, started, commit, None, options(order))
            .await;
        opened.map_err(|error: StartRunError| CallReport::Lost {
            reason: error.to_string(),
        })
    }

    fn digest_of_child(&self, plan: &Plan, order: &ChildOrder) -> Digest {
        let known = order.wanted.as_ref().map(|wanted| wanted.digest);
        known.unwrap_or_else(|| {
            let policy_version = &self.context.settings.policy_version;
            plan.digest(&self.context.catalog(), policy_version)
        })
    }

    /// The first entry of a child run.
    pub(crate) fn start_of_child(&self, plan: &Arc<Plan>, order: &ChildOrder) -> RunEvent {
        let consent = order.consent.as_deref().map(|consent| {
            if let Some(wanted) = &order.wanted {
                return Box::new(wanted.consent(consent));
            }
            let late = self
                .plans()
                .judge(plan)
                .late_choices(&BTreeMap::new(), &self.context.settings.policy.late_bound);
            Box::new(consent.for_child(late))
        });
        RunEvent::RunStarted {
            plan: plan.id().clone(),
            version: order.subplan.version,
            digest: self.digest_of_child(plan, order),
            variables: order.variables.clone(),
            max_concurrency: plan.document().limits.max_concurrency(),
            guards: order.guards,
            by: order.by.clone(),
            forked_from: None,
            consent,
            undoes: None,
            parent: Some(Box::new(order.parent.clone())),
            document: order.wanted.is_some().then(|| Arc::clone(plan.document())),
            trace: None,
            reflection: None,
            call_timeout_ms: Some(self.context.call_timeout_ms()),
            stepwise: false,
        }
    }

    /// What the step that ran this child came to. `on_request` says that the parent wanted it
    /// cancelled.
    async fn answer_of(&self, run: &Run, on_request: bool) -> ChildAnswer {
        let failed = |message: String| {
            (
                CallReport::Failed(StepError::new(StepErrorCode::PlanFailed, message)),
                None,
            )
        };
        let id = run.id();
        let plan = run.plan().id();
        match run.state() {
            RunState::Completed if run.status() == RunStatus::CompletedWithFailures => {
                failed(format!("plan `{plan}` completed with failed steps ({id})"))
            }
            RunState::Completed => match self.results(run).await {
                Ok(answer) => answer,
                Err(error) => (CallReport::Failed(error), None),
            },
            RunState::Failed { failed: step } => {
                let report = StepReport::new(run, *step, run.updated_at());
                let why = report.error.map_or_else(
                    || report.status.to_string(),
                    |error| format!("{}: {}", error.code, error.message),
                );
                failed(format!(
                    "plan `{plan}` failed ({id}) in step `{}`: {why}",
                    report.id
                ))
            }
            RunState::Adjusted { version } => failed(format!(
                "the plan `{plan}` was adjusted to version {version} while it ran ({id})"
            )),
            RunState::GivenUp => failed(format!("the run of plan `{plan}` was given up ({id})")),
            RunState::Cancelled if on_request => (CallReport::NotMade, None),
            RunState::Cancelled => failed(format!("the run of plan `{plan}` was cancelled ({id})")),
            RunState::Running
            | RunState::Paused
            | RunState::Stalled { .. }
            | RunState::Stopping { .. }
            | RunState::Cancelling => (CallReport::Parked { run: id.clone() }, None),
        }
    }

    /// What the plan of a child comes to: its outputs, or the values of all its steps.
    async fn results(&self, run: &Run) -> Result<ChildAnswer, StepError> {
        let limit = self.context.settings.bounds.max_resolved_bytes;
        let outputs = read_outputs(run, &*self.context.ports.artifacts, limit).await;
        let damaged = |error: ArtifactError| {
            StepError::new(StepErrorCode::ArtifactDamaged, error.to_string())
        };
        let values = match outputs.map_err(damaged)? {
            Some(outputs) => match outputs.problems.into_iter().next() {
                None => outputs.values,
                Some(problem) => {
                    let message = format!("plan `{}`: {problem}", run.plan().id());
                    return Err(StepError::new(StepErrorCode::UnresolvedReference, message));
                }
            },
            None => self.step_values(run, limit as u64).await?,
        };
        let value = Value::Object(values);
        if !StoredValue::can_keep(&value) {
            return Err(StepError::new(
                StepErrorCode::ValueTooDeep,
                "the values of the sub-plan nest too deep",
            ));
        }
        // The child has its values safe, so a failure to store them again costs nothing.
        match store_value(&*self.context.ports.artifacts, value).await {
            Ok((stored @ StoredValue::Artifact(_), value)) => {
                Ok((CallReport::Succeeded(stored), Some(value)))
            }
            Ok((stored @ StoredValue::Inline(_), _)) => Ok((CallReport::Succeeded(stored), None)),
            Err(error) => Ok((
                CallReport::Lost {
                    reason: format!("the result could not be stored: {error}"),
                },
                None,
            )),
        }
    }

    /// The values of a child's steps, by result name, else by step id.
    async fn step_values(&self, run: &Run, limit: u64) -> Result<Map<String, Value>, StepError> {
        let plan = run.plan();
        let mut bytes = 0;
        let mut results = Map::new();
        for &ix in plan.graph().order() {
            let Some(value) = run.step(ix).value() else {
                continue;
            };
            if let StoredValue::Artifact(artifact) = value {
                bytes += artifact.bytes;
            }
            if bytes > limit {
                let message = format!(
                    "the values of plan `{}` are larger than {limit} bytes",
                    plan.id()
                );
                return Err(StepError::new(StepErrorCode::ValueTooLarge, message));
            }
            let read = read_value(&*self.context.ports.artifacts, value).await;
            let value = read.map_err(|error| {
                StepError::new(StepErrorCode::ArtifactDamaged, error.to_string())
            })?;
            let name = plan
                .step(ix)
                .result
                .clone()
                .unwrap_or_else(|| plan.step_id(ix).to_string());
            results.insert(name, value);
        }
        Ok(results)
    }

    /// Cancels the child runs of a run that ended before them: no process will go on with those.
    pub(crate) fn cancel_children<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for ix in run.indices() {
                let (StepState::Cancelled { tally, .. } | StepState::Failed { tally, .. }) =
                    run.step(ix)
                else {
                    continue;
                };
                if tally.attempts == 0 {
                    continue;
                }
                let own = run
                    .definition(ix)
                    .plan
                    .is_some()
                    .then(|| run.child_runs(ix).place().child());
                for child in own
                    .into_iter()
                    .chain(run.child_runs(ix).agent_calls().cloned())
                {
                    self.cancel_child(run, &child).await;
                }
            }
        })
    }

    async fn cancel_child(&self, run: &Run, child: &RunId) {
        if let Ok(Some(info)) = self
            .context
            .ports
            .store
            .info(&StreamName::Run(child.clone()))
            .await
            && info
                .status
                .status
                .run_status()
                .is_none_or(|status| !status.is_terminal())
        {
            let by = run.start().by.clone();
            if let Err(refusal) = self.command(child, RunCommand::Cancel { by }).await {
                tracing::warn!(run = %child, %refusal, "a child run could not be cancelled");
            }
        }
    }
}

impl WantedTerms {
    /// The consent of the plan's approvers, as it is about this one call: a plan may have been approved with
    /// hundreds of tools, which every call would write down again.
    fn consent(&self, given: &Consent) -> Consent {
        let late = BTreeMap::from_iter([(WANTED_STEP.to_owned(), self.late.clone())]);
        given.for_call(late, BTreeMap::from_iter(self.pin.clone()))
    }
}

/// Ends when the parent is gone.
async fn let_go(mut commands: watch::Receiver<ChildCommand>) {
    while commands.changed().await.is_ok() {}
}

enum Begun {
    Executing(RunHandle),
    Ended(Box<Run>),
}

pub(crate) fn options(order: &ChildOrder) -> RunOptions {
    let mut options = RunOptions::new(order.by.clone());
    options.guards = order.guards;
    options.linger = order.linger;
    options
}
