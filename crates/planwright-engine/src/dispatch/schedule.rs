//! Which ready steps start now, and with exactly which arguments.

use super::offered::make_offer;
use super::offered_call::OfferedCall;
use super::run_loop::{RunError, RunLoop};
use crate::context::{ClientEars, Demand, Permit};
use crate::journal::call_digest::call_digest;
use crate::journal::secret_values::SecretValues;
use crate::port::{ArtifactFile, Call, StepOffer};
use planwright_core::digest::Digest;
use planwright_core::journal::Cause;
use planwright_core::plan::{Expectation, StepIx};
use planwright_core::run::{
    CallFacts, Command, RunEvent, StepError, StepErrorCode, idempotency_key,
};
use planwright_core::tool::{EffectClass, KnownTool, ResolveToolError};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A call that is made as soon as its start is durable.
pub(super) struct Prepared {
    pub(super) step: StepIx,
    pub(super) call: Call,
    pub(super) permit: Permit,
    pub(super) expectation: Option<Expectation>,
    /// The worker that makes it is found by this.
    pub(super) offer: Option<Box<StepOffer>>,
}

/// A call as it was weighed: what is asked about it is decided on exactly this.
struct Considered {
    call: Digest,
    facts: CallFacts,
    /// The arguments with their secrets, if they have any.
    sealed: Option<Map<String, Value>>,
    /// The files of artifacts that they name.
    files: Vec<ArtifactFile>,
    expectation: Option<Expectation>,
    /// The capability of the worker that is to make it, and the call as the worker gets it.
    offered: Option<(String, OfferedCall)>,
}

enum Started {
    Yes,
    /// Other calls have to end first.
    NotAdmitted,
    /// The client that makes the calls of the run has not claimed it.
    NotClaimed,
}

/// How many ready steps are passed over for want of a permit before the rest has to wait for the
/// next turn.
const MAX_PASSED_OVER: usize = 1024;

impl RunLoop {
    /// Starts what the run's own limit and the limits over all runs allow, most urgent first.
    pub(super) async fn schedule(&mut self) -> Result<(), RunError> {
        self.freed.borrow_and_update();
        self.starved = false;
        if let Some(claims) = &self.claims {
            claims.begin_turn();
        }
        self.start_steps().await?;
        if let Some(claims) = &self.claims {
            claims.end_turn(self.starved);
        }
        Ok(())
    }

    async fn start_steps(&mut self) -> Result<(), RunError> {
        let mut passed_over = 0;
        loop {
            self.settle_flow().await?;
            let now = self.now();
            let free = self.run.schedule().free_slots();
            let candidates: Vec<StepIx> = self
                .run
                .schedule()
                .startable(now)
                .skip(passed_over)
                .take(free)
                .collect();
            if candidates.is_empty() || passed_over >= MAX_PASSED_OVER {
                return Ok(());
            }
            for step in candidates {
                match self.try_start(step).await? {
                    Started::Yes => {}
                    Started::NotAdmitted => {
                        passed_over += 1;
                        self.starved = true;
                    }
                    Started::NotClaimed => passed_over += 1,
                }
            }
        }
    }

    async fn try_start(&mut self, step: StepIx) -> Result<Started, RunError> {
        if !self.condition_holds(step).await? {
            return Ok(Started::Yes);
        }
        if self.run.definition(step).asks_person() && !self.run.loops(step) {
            self.ask_input(step).await?;
            return Ok(Started::Yes);
        }
        let plan = Arc::clone(self.run.plan());
        let written = plan.step(self.run.plan_step(step));
        // Asked for every time: a server may change its tools while the run goes on.
        let catalog = self.context.ports.tools.catalog();
        let resolved = catalog.resolve(written.action_label()).map(Arc::clone);
        let calls_nothing = self.run.definition(step).asks_person()
            || written.plan.is_some()
            || self.run.definition(step).is_for_model();
        if self.run.loops(step) && (calls_nothing || resolved.is_ok()) {
            self.open_loop(step).await?;
            return Ok(Started::Yes);
        }
        // A client claims calls. What is none waits until the run goes on without it.
        if self.claims.is_some() && calls_nothing {
            return Ok(Started::NotClaimed);
        }
        if written.plan.is_some() {
            self.start_child(step).await?;
            return Ok(Started::Yes);
        }
        if written.agent.is_some() {
            self.start_agent(step).await?;
            return Ok(Started::Yes);
        }
        let Some(presence) = self.enter_call(step)? else {
            return Ok(Started::NotAdmitted);
        };
        let started = if written.think.is_some() {
            self.start_thought(step).await?;
            Started::Yes
        } else {
            self.try_call(step, resolved).await?
        };
        self.keep_presence(step, presence);
        Ok(started)
    }

    async fn try_call(
        &mut self,
        step: StepIx,
        resolved: Result<Arc<KnownTool>, ResolveToolError>,
    ) -> Result<Started, RunError> {
        let plan = Arc::clone(self.run.plan());
        let written = plan.step(self.run.plan_step(step));
        let tool = match resolved {
            Ok(tool) => tool,
            Err(error) if written.optional => {
                self.execute(
                    &Command::Skip {
                        step,
                        reason: error.to_string(),
                    },
                    Cause::Schedule,
                )?;
                return Ok(Started::Yes);
            }
            Err(error) => {
                return self.fail(
                    step,
                    StepError::new(StepErrorCode::ToolUnavailable, error.to_string()),
                );
            }
        };
        let capability = match self.worker_capability(step) {
            Ok(capability) => capability,
            Err(error) => return self.fail(step, error),
        };
        let demand = match &capability {
            // The worker has limits of its own for its servers.
            Some(_) => Demand::NONE,
            None => Demand::of(&*self.context.ports.tools, &tool.name.server),
        };
        let Some(permit) = self.context.limiter.try_admit(&tool, demand) else {
            return Ok(Started::NotAdmitted);
        };
        let args = match self.arguments(step, &tool).await {
            Ok(args) => args,
            Err(error) => return self.fail(step, error),
        };
        if let Some(claims) = &self.claims
            && !claims.take(self.run.step_id(step), &tool, &args)
        {
            return Ok(Started::NotClaimed);
        }
        let own = self.run.plan_step(step);
        if let Err(error) = plan.check_constraints(own, &args, &[], &self.values(step)) {
            return self.fail(
                step,
                StepError::new(StepErrorCode::ConstraintViolated, error.to_string()),
            );
        }
        let expectation = plan.expectation(own, &args, &self.values(step));
        let args = Arc::new(Value::Object(args));
        let call = call_digest(&tool.name, &args);
        let facts = match self.facts(step, &tool, &args, call).await {
            Ok(facts) => facts,
            Err(error) => return self.fail(step, error),
        };
        let mut what = Considered {
            call,
            facts,
            sealed: None,
            files: Vec::new(),
            expectation,
            offered: None,
        };
        let completed = match capability {
            Some(capability) => self
                .offered_call(step, &tool)
                .map(|call| what.offered = Some((capability, call))),
            None => self.complete(step, &tool, &args, &mut what).await,
        };
        if let Err(error) = completed {
            return self.fail(step, error);
        }
        self.start(step, &tool, what, permit)?;
        Ok(Started::Yes)
    }

    /// Adds what is only in memory: secrets, and files of artifacts.
    async fn complete(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
        args: &Value,
        what: &mut Considered,
    ) -> Result<(), StepError> {
        what.sealed = self.sealed_arguments(step, tool).await?;
        if self.takes_artifacts(step) {
            let sealed = what.sealed.take();
            let (args, files) = self.with_artifacts(step, tool, args, sealed).await?;
            what.sealed = Some(args);
            what.files = files;
        }
        Ok(())
    }

    /// What the client of the call wants to hear, if it has one.
    fn ears(&self, step: StepIx) -> ClientEars {
        let claimed = self.claims.as_ref();
        let claimed = claimed.and_then(|claims| claims.ears(self.run.step_id(step)));
        let listening = || self.context.clients.ears(self.run.id());
        claimed.or_else(listening).unwrap_or_default()
    }

    fn fail(&mut self, step: StepIx, error: StepError) -> Result<Started, RunError> {
        self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
        Ok(Started::Yes)
    }

    /// The arguments exactly as they are sent, with references in place of secrets, or why they
    /// cannot be.
    async fn arguments(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
    ) -> Result<Map<String, Value>, StepError> {
        self.load(step).await?;
        let names = self.run.plan().secrets(self.run.plan_step(step));
        let args = self.resolved(step, tool, &SecretValues::placeholders(&names))?;
        // With secrets or artifacts in them they are checked as they are sent.
        if names.is_empty() && !self.takes_artifacts(step) {
            check_args(tool, args, ErrorDetail::WithValues)
        } else {
            Ok(args)
        }
    }

    /// The arguments with their secrets, if they have any.
    async fn sealed_arguments(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
    ) -> Result<Option<Map<String, Value>>, StepError> {
        let names = self.run.plan().secrets(self.run.plan_step(step));
        if names.is_empty() {
            return Ok(None);
        }
        let context = Arc::clone(&self.context);
        let shown = self.resolved(step, tool, &SecretValues::placeholders(&names))?;
        let shown = Value::Object(shown);
        let secrets = context.unseal(&names, &tool.name, &shown).await?;
        let args = self.resolved(step, tool, &secrets)?;
        if self.takes_artifacts(step) {
            return Ok(Some(args));
        }
        check_args(tool, args, ErrorDetail::Redacted).map(Some)
    }

    /// The arguments with their artifacts, checked as they are sent.
    async fn with_artifacts(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
        shown: &Value,
        sealed: Option<Map<String, Value>>,
    ) -> Result<(Map<String, Value>, Vec<ArtifactFile>), StepError> {
        let args = sealed.or_else(|| shown.as_object().cloned());
        let (args, files) = self
            .place_artifacts(step, tool, args.unwrap_or_default())
            .await?;
        let args = check_args(tool, args, ErrorDetail::Redacted)?;
        Ok((args, files))
    }

    pub(super) fn resolved(
        &self,
        step: StepIx,
        tool: &KnownTool,
        secrets: &SecretValues,
    ) -> Result<Map<String, Value>, StepError> {
        let values = self.values(step).with_secrets(secrets);
        let mut args = self
            .run
            .plan()
            .resolve_args(self.run.plan_step(step), &values)
            .map_err(|error| {
                StepError::new(StepErrorCode::UnresolvedReference, error.to_string())
            })?;
        if let (EffectClass::Keyed, Some(argument)) = (tool.class, &tool.key_argument)
            && !args.contains_key(argument)
        {
            args.insert(argument.clone(), Value::String(self.key(step)));
        }
        Ok(args)
    }

    pub(super) fn key(&self, step: StepIx) -> String {
        idempotency_key(
            self.run.id(),
            &self.run.start().digest,
            self.run.step_id(step),
        )
    }

    /// Journals the start. The call itself is made once that is durable, and only if consent covers
    /// it and the guards agreed.
    fn start(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
        what: Considered,
        permit: Permit,
    ) -> Result<(), RunError> {
        let Considered {
            call,
            facts,
            sealed,
            files,
            expectation,
            offered,
        } = what;
        let args = Arc::clone(&facts.args);
        let name = tool.name.clone();
        let class = tool.class;
        let facts = Some(Box::new(facts));
        let command = Command::Start {
            step,
            tool: name,
            class,
            call,
            facts,
        };
        let attempt = match self.execute(&command, Cause::Schedule)? {
            Some(RunEvent::AttemptStarted { attempt, .. }) => *attempt,
            _ => return Ok(()),
        };
        drop(command);
        let Value::Object(args) = Arc::unwrap_or_clone(args) else {
            return Ok(());
        };
        let ears = self.ears(step);
        let progress = self.observers.sink(self.run.id(), self.run.step_id(step));
        let call = Call {
            tool: tool.name.clone(),
            args: sealed.unwrap_or(args),
            definition: Some(tool.digest()),
            plan: self.run.plan().id().clone(),
            run: self.run.id().clone(),
            top_run: self.family.top().clone(),
            acts_for: self.run.start().acts_for().cloned(),
            step: self.run.step_id(step).clone(),
            attempt,
            idempotency_key: self.key(step),
            cancelled: CancellationToken::new(),
            answered: self.run.answered(step).to_vec(),
            progress: progress.and(ears.progress),
            trace: None,
            answer: ears.answer,
            client: ears.client,
            // What can be called again waits for its answer without holding anything.
            person: (offered.is_none() && self.holds_questions && class == EffectClass::Unsafe)
                .then(|| self.questions.line(step, attempt).of_own_call()),
            files,
        };
        self.met.remove(&step);
        let offer = offered.map(|(capability, offered)| {
            Box::new(make_offer(
                &call,
                (capability, class, tool.digest()),
                &offered,
            ))
        });
        self.batch.calls.push(Prepared {
            step,
            call,
            permit,
            expectation,
            offer,
        });
        Ok(())
    }
}

/// Whether a message may repeat the values it is about. Some are secrets.
pub(crate) enum ErrorDetail {
    WithValues,
    Redacted,
}

pub(crate) fn check_args(
    tool: &KnownTool,
    args: Map<String, Value>,
    detail: ErrorDetail,
) -> Result<Map<String, Value>, StepError> {
    // A schema that cannot be used is no reason not to call: validation has warned, and the server
    // checks what it is sent.
    let Ok(validator) = tool.input_validator() else {
        return Ok(args);
    };
    let args = Value::Object(args);
    let validator = validator.for_value(&args).map_err(|problem| {
        let message = format!("`{}` does not take these arguments: {problem}", tool.name);
        StepError::new(StepErrorCode::InvalidArgs, message)
    })?;
    if let Err(error) = validator.validate(&args) {
        let place = error.instance_path();
        let problem = match detail {
            ErrorDetail::WithValues => error.to_string(),
            ErrorDetail::Redacted => error.masked().to_string(),
        };
        let message = format!(
            "`{}` does not take these arguments: at {place}: {problem}",
            tool.name
        );
        return Err(StepError::new(StepErrorCode::InvalidArgs, message));
    }
    let Value::Object(args) = args else {
        return Ok(Map::new());
    };
    Ok(args)
}
