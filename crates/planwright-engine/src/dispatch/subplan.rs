//! Steps that run another plan: started like a call, and watched like one.

use super::call::Finished;
use super::run_loop::{RunError, RunLoop};
use crate::context::crash;
use crate::journal::call_digest::call_digest;
use crate::review::pins::child_tool;
use crate::run::child::{ChildAnswer, ChildCommand, ChildOrder};
use planwright_core::digest::Digest;
use planwright_core::id::AttemptNo;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::{Expectation, StepIx};
use planwright_core::policy::late_arguments;
use planwright_core::principal::Principal;
use planwright_core::run::{
    CallFacts, CallReport, Command, RunEvent, StepError, StepErrorCode, StoredValue,
};
use planwright_core::tool::EffectClass;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::watch;

/// A child run that is executed as soon as the start of its step is durable.
pub(super) struct PreparedChild {
    step: StepIx,
    attempt: AttemptNo,
    order: ChildOrder,
    expectation: Option<Expectation>,
}

/// A child run in flight. Dropping it lets go of the child.
pub(super) struct Child {
    pub(super) attempt: AttemptNo,
    pub(super) command: watch::Sender<ChildCommand>,
}

impl RunLoop {
    /// Journals the start of a step that runs a sub-plan. It takes no permit: the child's own calls
    /// do.
    pub(super) async fn start_child(&mut self, step: StepIx) -> Result<(), RunError> {
        let order = match self.child_order(step).await {
            Ok(order) => order,
            Err(error) => {
                self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
                return Ok(());
            }
        };
        let plan = Arc::clone(self.run.plan());
        let own = self.run.plan_step(step);
        if let Err(error) = plan.check_constraints(own, &order.variables, &[], &self.values(step)) {
            let error = StepError::new(StepErrorCode::ConstraintViolated, error.to_string());
            self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
            return Ok(());
        }
        let expectation = plan.expectation(own, &order.variables, &self.values(step));
        let tool = child_tool(order.subplan.plan.id());
        let args = Arc::new(Value::Object(order.variables.clone()));
        let call = call_digest(&tool, &args);
        let facts = match self.child_facts(step, &order, args, call).await {
            Ok(facts) => Some(Box::new(facts)),
            Err(error) => {
                self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
                return Ok(());
            }
        };
        // Keyed: the id of the child run is the key under which a repeated call finds what was
        // begun.
        let command = Command::Start {
            step,
            tool,
            class: EffectClass::Keyed,
            call,
            facts,
        };
        if let Some(RunEvent::AttemptStarted { attempt, .. }) =
            self.execute(&command, Cause::Schedule)?
        {
            let attempt = *attempt;
            self.met.remove(&step);
            self.batch.children.push(PreparedChild {
                step,
                attempt,
                order,
                expectation,
            });
        }
        Ok(())
    }

    /// Judges the plan that the step runs, as it is now.
    async fn child_facts(
        &mut self,
        step: StepIx,
        order: &ChildOrder,
        args: Arc<Value>,
        call: Digest,
    ) -> Result<CallFacts, StepError> {
        let plan = self.run.plan();
        let own = self.run.plan_step(step);
        let catalog = self.context.ports.tools.catalog();
        let digest = order
            .subplan
            .plan
            .digest(&catalog, &self.context.settings.policy_version);
        let judgement = self
            .context
            .settings
            .policy
            .judge_subplan_step(plan, own, &catalog);
        let late = !late_arguments(plan, own).is_empty();
        let mut facts = CallFacts::of_child(digest, Arc::clone(&args), late, judgement);
        if self.run.asks_about(step, call, &facts) {
            facts.shown = Some(self.store_shown(&args).await?);
        }
        Ok(facts)
    }

    async fn child_order(&mut self, step: StepIx) -> Result<ChildOrder, StepError> {
        let plan = Arc::clone(self.run.plan());
        let Some(subplan) = plan.subplan_of(self.run.plan_step(step)) else {
            return Err(StepError::new(
                StepErrorCode::PlanUnavailable,
                "the plan that this step runs is not there",
            ));
        };
        let inputs = self.inputs(step).await?;
        let variables = subplan
            .plan
            .document()
            .variables_for(&inputs)
            .map_err(|findings| {
                let said: Vec<String> = findings
                    .iter()
                    .map(|f| format!("{}: {}", f.pointer, f.message))
                    .collect();
                let message = format!(
                    "`{}` does not take these inputs: {}",
                    subplan.plan.id(),
                    said.join("; ")
                );
                StepError::new(StepErrorCode::InvalidInputs, message)
            })?;
        Ok(ChildOrder {
            parent: self.run.child_runs(step).place(),
            subplan: subplan.clone(),
            variables,
            by: self.run.start().by.clone(),
            resumed: self.last_resumed().cloned(),
            guards: self.run.start().guards,
            linger: self.linger,
            consent: self.run.start().consent.clone(),
            wanted: None,
        })
    }

    async fn inputs(&mut self, step: StepIx) -> Result<Map<String, Value>, StepError> {
        self.load(step).await?;
        // Secrets are not given to other plans.
        let resolved = self
            .run
            .plan()
            .resolve_inputs(self.run.plan_step(step), &self.values(step));
        resolved
            .map_err(|error| StepError::new(StepErrorCode::UnresolvedReference, error.to_string()))
    }

    pub(super) fn dispatch_child(&mut self, prepared: PreparedChild) {
        let PreparedChild {
            step,
            attempt,
            order,
            expectation,
        } = prepared;
        crash::point("run: before child");
        let (command, commands) = watch::channel(ChildCommand::Continue);
        self.children.insert(step, Child { attempt, command });
        let running = self.runs.run_child(order, commands);
        self.calls.push(Box::pin(async move {
            let (answer, large) = check_expectation(expectation.as_ref(), running.await);
            crash::point("child: answered");
            Finished {
                step,
                attempt,
                answer,
                large,
                used: Vec::new(),
            }
        }));
    }

    /// Passes on to the children what was decided about the run, and ends those whose answer is not
    /// wanted any more.
    pub(super) fn tell_children(&mut self, entries: &[Entry<RunEvent>]) {
        if self.children.is_empty() {
            return;
        }
        for entry in entries {
            match &entry.event {
                RunEvent::RunPaused { by } => {
                    self.command_children(&ChildCommand::Pause(by.clone()));
                }
                RunEvent::CancelRequested { by } => {
                    self.command_children(&ChildCommand::Cancel(by.clone()));
                }
                // It took too long.
                RunEvent::AttemptFailed { step, .. } | RunEvent::OutcomeLost { step, .. } => {
                    let by: Principal = self.run.start().by.clone();
                    if let Some(child) = self
                        .run
                        .find(step.as_str())
                        .and_then(|ix| self.children.get(&ix))
                    {
                        child.command.send_replace(ChildCommand::Cancel(by));
                    }
                }
                _ => {}
            }
        }
    }

    fn command_children(&self, command: &ChildCommand) {
        for child in self.children.values() {
            child.command.send_replace(command.clone());
        }
    }

    /// Forgets a child whose answer has come.
    pub(super) fn forget_child(&mut self, step: StepIx, attempt: AttemptNo) {
        if self
            .children
            .get(&step)
            .is_some_and(|child| child.attempt == attempt)
        {
            self.children.remove(&step);
        }
    }
}

/// Checks that the child came to what the plan expects.
pub(super) fn check_expectation(
    expectation: Option<&Expectation>,
    (answer, large): ChildAnswer,
) -> ChildAnswer {
    let value = match &answer {
        CallReport::Succeeded(StoredValue::Inline(value)) => Some(value),
        CallReport::Succeeded(StoredValue::Artifact(_)) => large.as_ref(),
        CallReport::Failed(_)
        | CallReport::Asked(_)
        | CallReport::Holds(_)
        | CallReport::AskedMidway(_)
        | CallReport::NotMade
        | CallReport::Parked { .. }
        | CallReport::Lost { .. } => None,
    };
    match expectation
        .zip(value)
        .and_then(|(expectation, value)| expectation.check(value).err())
    {
        Some(error) => (
            CallReport::Failed(StepError::new(
                StepErrorCode::ExpectFailed,
                error.to_string(),
            )),
            None,
        ),
        None => (answer, large),
    }
}
