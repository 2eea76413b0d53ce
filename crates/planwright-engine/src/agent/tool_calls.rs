//! What an executor wants becomes an entry of the run first, and a run of its own then: judged,
//! pinned, guarded, approved, resumed and undone like any other call.

use super::plan_tool::PlanTool;
use super::{AgentOrder, wait_until_unwanted};
use crate::context::crash;
use crate::context::{Context, Decided, JointWriter, Request};
use crate::journal::call_digest::call_digest;
use crate::journal::stored_value::{read_value, store_value};
use crate::review::pins::since_pinned;
use crate::run::child::{ChildCommand, ChildOrder, DrivenChild, WANTED_STEP, WantedTerms};
use crate::run::handle::RunHandle;
use crate::run::runs::Runs;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::model::{ModelUse, WantedCall};
use planwright_core::plan::{DigestFrame, Document, Plan, Step, Subplan, literal};
use planwright_core::policy::CallToJudge;
use planwright_core::review::Pin;
use planwright_core::run::{
    AgentCall, AgentTurn, CallFacts, CallFate, CallReport, ClientTerms, Command, Parent, Run,
    RunEvent, RunState, StepError, StepErrorCode, StepReport, StepState, StoredValue, Wanted,
    WantedCallFacts,
};
use planwright_core::tool::{KnownTool, ToolName};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{oneshot, watch};

/// What one turn may want.
const MAX_WANTED: usize = 64;
/// Tools whose frames are kept.
const MAX_FRAMES: usize = 256;
/// The longest name that is written down.
const MAX_NAME: usize = 256;

/// What came of a wanted call.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Value(Value),
    Failed(StepError),
    Refused(StepError),
}

/// What acts for the executor of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct ToolCalls {
    pub(crate) runs: Runs,
    pub(crate) order: Arc<AgentOrder>,
    pub(crate) commands: watch::Receiver<ChildCommand>,
    pub(crate) frames: Arc<CallFrames>,
}

/// What the digests of the plans of calls cover besides the calls, by their tools as they were defined.
#[derive(Debug, Default)]
pub(crate) struct CallFrames(Mutex<BTreeMap<ToolName, (Digest, DigestFrame)>>);

impl CallFrames {
    /// The digest of a plan that makes one call of this tool.
    fn digest(&self, plan: &Plan, tool: &KnownTool, context: &Context) -> Digest {
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((defined, frame)) = frames.get(&tool.name)
            && *defined == tool.digest()
        {
            return frame.digest(plan);
        }
        let frame = DigestFrame::of(plan, &context.catalog(), &context.settings.policy_version);
        let digest = frame.digest(plan);
        if frames.len() >= MAX_FRAMES {
            frames.clear();
        }
        frames.insert(tool.name.clone(), (tool.digest(), frame));
        digest
    }
}

impl ToolCalls {
    /// Hands what was said and wanted to the run, and returns what it decided once that is durable.
    /// No turn: the step is over, regardless of what its executor wants.
    pub(crate) async fn take_turn(
        &self,
        text: &str,
        wanted: Vec<WantedCall>,
        used: Option<ModelUse>,
    ) -> Result<AgentTurn, CallReport> {
        if wanted.len() > MAX_WANTED {
            let message = format!(
                "{} calls were wanted at once, at most {MAX_WANTED} can be",
                wanted.len()
            );
            return Err(CallReport::Failed(StepError::new(
                StepErrorCode::TooManyCalls,
                message,
            )));
        }
        let text = match text.is_empty() {
            true => None,
            false => Some(self.store_result(Value::String(text.to_owned())).await?),
        };
        let mut calls = Vec::with_capacity(wanted.len());
        for call in wanted {
            calls.push(self.considered(call).await?);
        }
        let observe = self.runs.context.settings.agents.observe_scope;
        self.command_turn(Command::TakeTurn {
            step: self.order.ix,
            attempt: self.order.attempt,
            text,
            calls,
            used,
            observe,
            client: None,
        })
        .await
    }

    /// Hands the call that a client of the gateway wants to the run. Its run is opened by what is made
    /// of the turn, in the commit in which the turn is written: nothing else may follow from it before.
    /// The run of a call that only reads, and that nothing is held against, is opened after that.
    pub(crate) async fn take_client_turn(
        &self,
        wanted: Wanted,
        terms: ClientTerms,
        writer: JointWriter,
        reads: bool,
    ) -> Result<AgentTurn, CallReport> {
        let command = Command::TakeTurn {
            step: self.order.ix,
            attempt: self.order.attempt,
            text: None,
            calls: vec![wanted],
            used: None,
            observe: false,
            client: Some(terms),
        };
        let (reply, told) = oneshot::channel();
        let request = Request::joined(command, reply, writer, reads);
        self.request_turn(request, told).await
    }

    async fn command_turn(&self, command: Command) -> Result<AgentTurn, CallReport> {
        let (reply, told) = oneshot::channel();
        let request = Request::reporting(command, reply);
        let turn = self.request_turn(request, told).await;
        crash::point("agent: turn taken");
        turn
    }

    async fn request_turn(
        &self,
        request: Request,
        told: oneshot::Receiver<Decided>,
    ) -> Result<AgentTurn, CallReport> {
        let sent = async {
            self.order.inbox.send(request).await.ok()?;
            told.await.ok()?.ok()
        };
        let events = tokio::select! {
            biased;
            events = sent => events.ok_or(CallReport::NotMade)?,
            () = wait_until_unwanted(self.commands.clone()) => return Err(CallReport::NotMade),
        };
        self.decided(events)
    }

    fn decided(&self, events: Vec<RunEvent>) -> Result<AgentTurn, CallReport> {
        let mut decided = None;
        for event in events {
            match event {
                RunEvent::AgentTurn {
                    attempt,
                    text,
                    calls,
                    ..
                } => {
                    decided = Some(AgentTurn {
                        attempt,
                        text,
                        calls,
                    });
                }
                // The step is over already; any answer given now is void.
                RunEvent::AttemptFailed { .. } => return Err(CallReport::NotMade),
                _ => {}
            }
        }
        let turn = decided.ok_or(CallReport::NotMade)?;
        for call in &turn.calls {
            if let CallFate::Refused(error) = &call.fate {
                let run = &self.order.place.run;
                let step = &self.order.step;
                tracing::warn!(%run, %step, tool = %call.tool, code = %error.code, "a wanted call was refused");
            } else if call.outside {
                let run = &self.order.place.run;
                let step = &self.order.step;
                tracing::warn!(%run, %step, tool = %call.tool, "a wanted call is outside the plan's scope");
            }
        }
        Ok(turn)
    }

    /// A wanted call with everything that decides about it.
    pub(crate) async fn considered(&self, call: WantedCall) -> Result<Wanted, CallReport> {
        let WantedCall { id, name, mut args } = call;
        if let (Some(_), Value::Object(args)) = (PlanTool::from_name(&name), &mut args) {
            PlanTool::rename_arguments(args);
        }
        let id = shortened(id);
        let name = shortened(name);
        let known = self.known(&name, &args).await;
        let args = if StoredValue::can_keep(&args) {
            args
        } else {
            Value::Null
        };
        let args = self.store_result(args).await?;
        Ok(Wanted {
            id,
            tool: name,
            args,
            known,
        })
    }

    async fn known(&self, name: &str, args: &Value) -> Result<WantedCallFacts, StepError> {
        let catalog = self.runs.context.catalog();
        let resolved = catalog.resolve(name);
        let tool = resolved
            .map_err(|error| StepError::new(StepErrorCode::ToolUnavailable, error.to_string()))?;
        let invalid = |problem: String| Err(StepError::new(StepErrorCode::InvalidArgs, problem));
        let Value::Object(map) = args else {
            return invalid(format!("`{}` takes an object of arguments", tool.name));
        };
        if !StoredValue::can_keep(args) {
            return invalid(format!(
                "the arguments nest deeper than {} levels",
                StoredValue::MAX_DEPTH
            ));
        }
        let bytes = args.to_string().len();
        let limit = self.runs.context.settings.bounds.max_document_bytes / 4;
        if bytes > limit {
            return invalid(format!(
                "the arguments have {bytes} bytes, at most {limit} can be sent"
            ));
        }
        let call = call_digest(&tool.name, args);
        let facts = Box::new(self.facts(tool, map).await);
        Ok(WantedCallFacts {
            tool: tool.name.clone(),
            read_only: tool.is_read_only(),
            call,
            guarded: self.runs.context.settings.policy.guards(tool),
            facts,
        })
    }

    async fn facts(&self, tool: &KnownTool, args: &Map<String, Value>) -> CallFacts {
        let step = self.call_step(&tool.name, args.clone());
        let args = Arc::new(Value::Object(args.clone()));
        let subject = CallToJudge {
            tool: Some(tool),
            args: &args,
            unknown: &BTreeSet::new(),
            step: &step,
            step_id: self.order.step.as_str(),
            plan: self.order.plan.as_str(),
            chosen_by_model: true,
        };
        let context = &self.runs.context;
        let mut facts = CallFacts::new(
            &context.settings.policy,
            tool,
            Arc::clone(&args),
            false,
            &subject,
        );
        let consent = self.order.consent.as_deref();
        if let Some(pin) = consent.and_then(|consent| consent.pins.get(&tool.name.to_string()))
            && pin.digest != tool.digest()
        {
            facts.changed = Some(since_pinned(&*context.ports.artifacts, pin, tool).await);
        }
        facts
    }

    /// Makes a call that was decided on, or finds what came of it.
    pub(crate) async fn make(
        &self,
        call: &AgentCall,
        linger: bool,
    ) -> Result<CallOutcome, CallReport> {
        let run = match &call.fate {
            CallFate::Refused(error) => return Ok(CallOutcome::Refused(error.clone())),
            CallFate::Run(run) => run,
        };
        let order = match self.child_order(call, run, linger).await {
            Ok(order) => order,
            Err(error) => return Ok(CallOutcome::Failed(error)),
        };
        crash::point("agent: before call");
        let driven = self.runs.drive_child(order, self.commands.clone()).await;
        self.outcome_of_child(driven).await
    }

    /// Follows a call whose run was begun, to its end or until it waits.
    pub(crate) async fn follow(&self, run: RunHandle) -> Result<CallOutcome, CallReport> {
        let driven = self.runs.attend_child(run, self.commands.clone()).await;
        self.outcome_of_child(driven).await
    }

    async fn outcome_of_child(&self, driven: DrivenChild) -> Result<CallOutcome, CallReport> {
        match driven {
            Ok((run, on_request)) => {
                crash::point("agent: call ended");
                self.outcome(&run, on_request).await
            }
            Err(CallReport::Failed(error)) => Ok(CallOutcome::Failed(error)),
            Err(answer) => Err(answer),
        }
    }

    pub(crate) async fn child_order(
        &self,
        call: &AgentCall,
        run: &RunId,
        linger: bool,
    ) -> Result<ChildOrder, StepError> {
        let order = &self.order;
        let parent = Parent {
            call: Some(call.number),
            outside: call.outside,
            ..order.place.clone()
        };
        let args = self.value(&call.args).await?;
        let (Some(tool), Value::Object(args)) = (&call.name, args) else {
            return Err(StepError::new(
                StepErrorCode::InvalidArgs,
                "the call cannot be made as it was wanted",
            ));
        };
        if parent.child() != *run {
            return Err(StepError::new(
                StepErrorCode::PlanUnavailable,
                format!("{run} is the run of something else"),
            ));
        }
        let document = Document {
            id: Some(order.plan.clone()),
            title: Some(format!("A call that step {} wants", order.step)),
            steps: vec![self.call_step(tool, args)],
            ..Document::default()
        };
        let plan =
            Plan::compile(document, &self.runs.context.settings.bounds).map_err(|findings| {
                let why = findings
                    .first()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                StepError::new(
                    StepErrorCode::InvalidArgs,
                    format!("the call cannot be made: {why}"),
                )
            })?;
        let pin = self.pin(tool);
        let context = &self.runs.context;
        let catalog = context.catalog();
        let digest = match catalog.resolve(&tool.to_string()) {
            Ok(known) if known.name == *tool => self.frames.digest(&plan, known, context),
            _ => plan.digest(&catalog, &context.settings.policy_version),
        };
        Ok(ChildOrder {
            parent,
            subplan: Subplan {
                version: order.version,
                plan: Arc::new(plan),
                needs_person: None,
            },
            variables: Map::new(),
            by: order.by.clone(),
            resumed: order.resumed.clone(),
            guards: order.guards,
            linger,
            consent: order.consent.clone(),
            wanted: Some(WantedTerms {
                late: order.late.clone(),
                pin,
                digest,
            }),
        })
    }

    /// The tool as it was pinned with the plan, or as it is now.
    fn pin(&self, tool: &ToolName) -> Option<(String, Pin)> {
        let name = tool.to_string();
        let pins = self.order.consent.as_deref().map(|consent| &consent.pins)?;
        let pin = match pins.get(&name) {
            Some(pin) => pin.clone(),
            None => Pin {
                digest: self.runs.context.catalog().resolve(&name).ok()?.digest(),
                definition: None,
            },
        };
        Some((name, pin))
    }

    /// The one step of the run that makes the call. What a model wrote is literal: nothing in it is
    /// a reference.
    fn call_step(&self, tool: &ToolName, args: Map<String, Value>) -> Step {
        let definition = &self.order.definition;
        let args = match literal(Value::Object(args)) {
            Value::Object(args) => args,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        Step {
            id: Some(WANTED_STEP.parse().expect("letters are an id")),
            tool: Some(tool.to_string()),
            args,
            capability: definition.capability.clone(),
            labels: definition.labels.clone(),
            ..Step::default()
        }
    }

    async fn outcome(&self, run: &Run, on_request: bool) -> Result<CallOutcome, CallReport> {
        if !run.state().is_terminal() {
            return Err(CallReport::Parked {
                run: run.id().clone(),
            });
        }
        if *run.state() == RunState::Cancelled && on_request {
            return Err(CallReport::NotMade);
        }
        let Some(ix) = run.plan().find(WANTED_STEP) else {
            return Ok(CallOutcome::Failed(StepError::new(
                StepErrorCode::PlanUnavailable,
                "the call has no step",
            )));
        };
        if let StepState::Completed { value, .. } = run.step(ix) {
            return Ok(match self.value(value).await {
                Ok(value) => CallOutcome::Value(value),
                Err(error) => CallOutcome::Failed(error),
            });
        }
        let report = StepReport::new(run, ix, run.updated_at());
        let unexplained = || {
            StepError::new(
                report.status.as_str().into(),
                format!("the call is {}", report.status),
            )
        };
        let error = report.error.clone().unwrap_or_else(unexplained);
        Ok(match error.code {
            StepErrorCode::Denied => CallOutcome::Refused(StepError::new(
                StepErrorCode::Denied,
                format!("a person said no: {}", error.message),
            )),
            _ => CallOutcome::Failed(error),
        })
    }

    pub(crate) async fn value(&self, stored: &StoredValue) -> Result<Value, StepError> {
        let read = read_value(&*self.runs.context.ports.artifacts, stored).await;
        read.map_err(|error| StepError::new(StepErrorCode::ArtifactDamaged, error.to_string()))
    }

    pub(crate) async fn store_result(&self, value: Value) -> Result<StoredValue, CallReport> {
        let mut value = value;
        self.runs.context.redaction.redactor().value(&mut value);
        let stored = store_value(&*self.runs.context.ports.artifacts, value).await;
        let (stored, _) = stored.map_err(|error| {
            CallReport::Failed(StepError::new(
                StepErrorCode::ValueNotStored,
                error.to_string(),
            ))
        })?;
        Ok(stored)
    }
}

fn shortened(text: String) -> String {
    if text.len() <= MAX_NAME {
        text
    } else {
        text.chars().take(MAX_NAME / 4).collect()
    }
}
