//! Agent steps: an executor works on an instruction with the plan's tools, and everything it wants
//! goes through the journal of the run before it happens.

mod client;
mod external;
pub(crate) mod messages;
pub(crate) mod plan_tool;
mod tool_calls;
mod tool_offer;
mod worker;

pub(crate) use client::serve_client;
pub(crate) use external::delegate;
pub(crate) use messages::Assignment;
pub(crate) use tool_calls::ToolCalls;
pub(crate) use worker::{Worker, model_failed};

use crate::context::Request;
use crate::port::TextSink;
use crate::run::child::ChildCommand;
use planwright_core::id::{AttemptNo, PlanId, StepId};
use planwright_core::plan::{Step, StepIx};
use planwright_core::policy::LateChoice;
use planwright_core::principal::Principal;
use planwright_core::run::{AgentTurn, Answered, CallFate, Consent, Parent, PauseOrder};
use tokio::sync::{mpsc, watch};

/// One attempt at an agent step.
#[derive(Debug)]
pub(crate) struct AgentOrder {
    pub(crate) plan: PlanId,
    pub(crate) version: u32,
    pub(crate) ix: StepIx,
    pub(crate) step: StepId,
    pub(crate) definition: Step,
    pub(crate) attempt: AttemptNo,
    /// Where its calls belong.
    pub(crate) place: Parent,
    pub(crate) assignment: Assignment,
    /// The names of the tools in scope.
    pub(crate) tools: Vec<String>,
    pub(crate) model: Option<String>,
    /// The turns of earlier attempts: words and wanted calls.
    pub(crate) turns: Vec<AgentTurn>,
    /// The answers of people to a step that converses.
    pub(crate) answered: Vec<Answered>,
    pub(crate) by: Principal,
    /// The last order by which the run went on.
    pub(crate) resumed: Option<PauseOrder>,
    pub(crate) guards: bool,
    pub(crate) linger: bool,
    pub(crate) consent: Option<Box<Consent>>,
    /// The choices of the approvers about the calls of this step.
    pub(crate) late: Vec<LateChoice>,
    /// The run's own inbox: what an executor wants is a command to the run.
    pub(crate) inbox: mpsc::Sender<Request>,
    pub(crate) said: TextSink,
}

impl AgentOrder {
    /// Returns whether the plan lets the executor make calls at all.
    pub(crate) fn may_call(&self) -> bool {
        let agent = self.definition.agent.as_deref();
        agent.is_some_and(|agent| agent.max_calls() > 0)
    }

    /// Returns whether a call was made in an earlier attempt.
    pub(crate) fn has_called(&self) -> bool {
        let mut calls = self.turns.iter().flat_map(|turn| &turn.calls);
        calls.any(|call| matches!(call.fate, CallFate::Run(_)))
    }
}

/// Ends when the answer of the step is not wanted any more.
pub(crate) async fn wait_until_unwanted(mut commands: watch::Receiver<ChildCommand>) {
    loop {
        if matches!(*commands.borrow_and_update(), ChildCommand::Cancel(_))
            || commands.changed().await.is_err()
        {
            return;
        }
    }
}
