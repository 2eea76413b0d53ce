//! Steps that an executor works on: started like a call, and watched like a child run.

use super::call::Finished;
use super::run_loop::{RunError, RunLoop};
use super::subplan::{Child, check_expectation};
use crate::agent::{AgentOrder, Assignment, ToolCalls, Worker, delegate, serve_client};
use crate::context::crash;
use crate::journal::call_digest::call_digest;
use crate::run::child::ChildCommand;
use planwright_core::id::AttemptNo;
use planwright_core::journal::Cause;
use planwright_core::plan::{Agent, Expectation, StepIx};
use planwright_core::run::{
    CallFacts, Command, RunEvent, StepError, StepErrorCode, StepState, agent_tool,
};
use planwright_core::tool::EffectClass;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::sync::watch;

/// An executor that begins as soon as the start of its step is durable.
pub(super) struct PreparedAgent {
    step: StepIx,
    order: AgentOrder,
    expectation: Option<Expectation>,
}

impl RunLoop {
    /// Journals the start of a step that an executor works on. It takes no permit: the calls it
    /// makes do.
    pub(super) async fn start_agent(&mut self, step: StepIx) -> Result<(), RunError> {
        let prepared = match self.agent_order(step).await {
            Ok(order) => self
                .considered_agent(step, &order)
                .await
                .map(|facts| (order, facts)),
            Err(error) => Err(error),
        };
        let (mut order, (facts, expectation)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
                return Ok(());
            }
        };
        // Keyed: the journal is the key under which the built-in executor finds what was begun.
        // What a program of its own did besides its calls is unknown.
        let external = order
            .definition
            .agent
            .as_deref()
            .is_some_and(|agent| agent.executor.is_some() && !agent.is_client());
        let class = if external {
            EffectClass::Unsafe
        } else {
            EffectClass::Keyed
        };
        let call = facts.definition;
        let command = Command::Start {
            step,
            tool: agent_tool(),
            class,
            call,
            facts: Some(Box::new(facts)),
        };
        if let Some(RunEvent::AttemptStarted { attempt, .. }) =
            self.execute(&command, Cause::Schedule)?
        {
            order.attempt = *attempt;
            self.met.remove(&step);
            self.batch.agents.push(PreparedAgent {
                step,
                order,
                expectation,
            });
        }
        Ok(())
    }

    /// Judges the step as it would be worked on.
    async fn considered_agent(
        &mut self,
        step: StepIx,
        order: &AgentOrder,
    ) -> Result<(CallFacts, Option<Expectation>), StepError> {
        let Value::Object(args) = json!({
            "instruction": order.assignment.instruction,
            "target": order.assignment.target,
            "tools": order.tools,
        }) else {
            return Err(StepError::new(
                StepErrorCode::InvalidArgs,
                "the instruction cannot be written down",
            ));
        };
        self.consider_call(step, &agent_tool(), args).await
    }

    /// What decides about a step that a model or an executor works on, and what it has to come to.
    pub(super) async fn consider_call(
        &mut self,
        step: StepIx,
        tool: &planwright_core::tool::ToolName,
        args: Map<String, Value>,
    ) -> Result<(CallFacts, Option<Expectation>), StepError> {
        let plan = Arc::clone(self.run.plan());
        let own = self.run.plan_step(step);
        plan.check_constraints(own, &args, &[], &self.values(step))
            .map_err(|error| {
                StepError::new(StepErrorCode::ConstraintViolated, error.to_string())
            })?;
        let expectation = plan.expectation(own, &args, &self.values(step));
        let args = Arc::new(Value::Object(args));
        let call = call_digest(tool, &args);
        let judgement = self.context.settings.policy.judge_model_step(
            &plan,
            own,
            &self.context.ports.tools.catalog(),
        );
        let mut facts = CallFacts::of_model(call, Arc::clone(&args), judgement);
        if self.run.asks_about(step, call, &facts) {
            facts.shown = Some(self.store_shown(&args).await?);
        }
        Ok((facts, expectation))
    }

    async fn agent_order(&mut self, step: StepIx) -> Result<AgentOrder, StepError> {
        self.load(step).await?;
        let run = &self.run;
        let plan = Arc::clone(self.run.plan());
        let own = self.run.plan_step(step);
        let unresolved = |error: planwright_core::plan::ResolveError| {
            StepError::new(StepErrorCode::UnresolvedReference, error.to_string())
        };
        let values = self.values(step);
        let definition = run.definition(step).clone();
        let Some(agent) = definition.agent.as_deref() else {
            return Err(StepError::new(
                StepErrorCode::NoAction,
                "the step has no instruction",
            ));
        };
        let document = plan.document();
        let assignment = Assignment {
            goal: document.goal_for_executors().map(str::to_owned),
            instruction: plan.resolve_prompt(own, &values).map_err(unresolved)?,
            target: plan.resolve_target(own, &values).map_err(unresolved)?,
            context: document.context_for_executors().cloned(),
            results: self.results_before(own),
        };
        let model = agent
            .model
            .clone()
            .or_else(|| document.executor_model.clone());
        if agent.executor.is_none() {
            self.known_model(model.as_deref(), agent.converse)?;
        }
        let inbox = self.runs.context.active.get(run.id());
        let inbox = inbox.ok_or_else(|| {
            StepError::new(StepErrorCode::Stopped, "the run is not executed any more")
        })?;
        let consent = run.start().consent.clone();
        let late = consent
            .as_deref()
            .and_then(|consent| consent.late.get(plan.step_id(own).as_str()));
        Ok(AgentOrder {
            plan: plan.id().clone(),
            version: run.start().version,
            ix: step,
            step: run.step_id(step).clone(),
            attempt: 0,
            place: run.child_runs(step).place(),
            assignment,
            tools: document
                .agent_tools()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            model,
            turns: run
                .agent_work(step)
                .map(|work| work.turns().to_vec())
                .unwrap_or_default(),
            answered: run.answered(step).to_vec(),
            by: run.start().by.clone(),
            resumed: self.last_resumed().cloned(),
            guards: run.start().guards,
            linger: self.linger,
            late: late.cloned().unwrap_or_default(),
            consent,
            inbox,
            said: self
                .observers
                .said(run.id(), run.step_id(step), &self.context.redaction),
            definition,
        })
    }

    /// What the steps before this one came to.
    fn results_before(&self, own: StepIx) -> Vec<(String, Value)> {
        use planwright_core::plan::Values as _;
        let plan = self.run.plan();
        let values = self.values(own);
        let completed = |ix: &&StepIx| matches!(self.run.step(**ix), StepState::Completed { .. });
        let before = plan.graph().dependencies(own).iter().filter(completed);
        let told =
            before.filter_map(|&ix| Some((plan.step_id(ix).to_string(), values.step(ix)?.clone())));
        told.collect()
    }

    pub(super) fn dispatch_agent(&mut self, prepared: PreparedAgent) {
        let PreparedAgent {
            step,
            order,
            expectation,
        } = prepared;
        crash::point("run: before agent");
        let attempt: AttemptNo = order.attempt;
        let (command, commands) = watch::channel(ChildCommand::Continue);
        self.children.insert(step, Child { attempt, command });
        let executor = order
            .definition
            .agent
            .as_deref()
            .and_then(|agent| agent.executor.clone());
        let progress = self.observers.sink(self.run.id(), self.run.step_id(step));
        let progress =
            crate::redaction::call_results::mask_progress(&self.context.redaction, progress);
        let calls = ToolCalls {
            runs: self.runs.clone(),
            order: Arc::new(order),
            commands,
            frames: Arc::default(),
        };
        self.calls.push(Box::pin(async move {
            let (answered, used) = match executor {
                Some(executor) if executor == Agent::CLIENT => {
                    (serve_client(calls).await, Vec::new())
                }
                Some(executor) => (delegate(calls, executor, progress).await, Vec::new()),
                None => Worker::new(calls).work().await,
            };
            let (answer, large) = check_expectation(expectation.as_ref(), answered);
            crash::point("agent: answered");
            Finished {
                step,
                attempt,
                answer,
                large,
                used,
            }
        }));
    }
}
