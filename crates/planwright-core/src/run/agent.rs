//! The wishes of an agent step, turn by turn.

use super::{CallFacts, Corrupt, Run, RunEvent, StepError, StepState, StoredValue};
use crate::digest::Digest;
use crate::id::{AttemptNo, RunId, StepId};
use crate::journal::Entry;
use crate::plan::StepIx;
use crate::policy::Mode;
use crate::tool::ToolName;
use serde::{Deserialize, Serialize};

/// A call that the executor of an agent step wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCall {
    /// Counts from 0, over everything the step's executor wanted.
    pub number: u32,
    /// The model's own name for it.
    pub id: String,
    /// As the model wrote it.
    pub tool: String,
    /// As the model wrote them.
    pub args: StoredValue,
    /// The tool that this is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ToolName>,
    /// The digest of the tool's name and the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// It is outside the plan's scope, which was only noted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Why the call would not have been made, had the gateway not been told only to observe or to
    /// warn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub let_through: Option<StepError>,
    /// The run that makes the call, or why it is not made.
    #[serde(flatten)]
    pub fate: CallFate,
}

/// The decision about a wanted call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFate {
    /// A child run makes it.
    Run(RunId),
    /// It is not made; the model is told why.
    Refused(StepError),
}

/// A call as the executor of an agent step wants it, before anything is decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The id by which the executor knows the call.
    pub id: String,
    /// As it was written: it may be the name of no tool.
    pub tool: String,
    /// The arguments.
    pub args: StoredValue,
    /// The tool it names, and what decides about the call; or why it cannot be made at all.
    pub known: Result<WantedCallFacts, StepError>,
}

/// The facts that decide about a wanted call besides the plan and the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedCallFacts {
    /// The tool that is called.
    pub tool: ToolName,
    /// The tool only reads.
    pub read_only: bool,
    /// The digest of the tool and its arguments.
    pub call: Digest,
    /// The pattern by which policy guards the tool.
    pub guarded: Option<String>,
    /// The facts that decide about the call.
    pub facts: Box<CallFacts>,
}

/// The terms of the calls of a client of the gateway, besides policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTerms {
    /// The fate of a call that a person would have to agree to.
    pub mode: Mode,
    /// A person can be asked about a call while the client waits.
    pub attended: bool,
}

/// One turn of the executor of an agent step: its words, and the calls that it wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTurn {
    /// The attempt, counted from 1.
    pub attempt: AttemptNo,
    /// The words of the executor.
    pub text: Option<StoredValue>,
    /// The calls it wants made.
    pub calls: Vec<AgentCall>,
}

/// The work of an agent step so far, over all its attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentWork {
    turns: Vec<AgentTurn>,
    /// The number of times its model was asked.
    asked: u32,
    tokens: u64,
    calls: u32,
}

impl AgentWork {
    /// The turns of its executor, oldest first.
    pub fn turns(&self) -> &[AgentTurn] {
        &self.turns
    }

    /// The number of times its model was asked.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// The tokens that its model used.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns whether a call was made for it.
    pub fn made_calls(&self) -> bool {
        let mut calls = self.turns.iter().flat_map(|turn| &turn.calls);
        calls.any(|call| matches!(call.fate, CallFate::Run(_)))
    }

    /// Everything that was wanted, refused or not.
    pub fn calls(&self) -> u32 {
        self.calls
    }
}

/// The name under which a `think` step is journaled.
pub fn think_tool() -> ToolName {
    ToolName {
        server: "planwright".into(),
        tool: "think".into(),
    }
}

/// The name under which an `agent` step is journaled.
pub fn agent_tool() -> ToolName {
    ToolName {
        server: "planwright".into(),
        tool: "agent".into(),
    }
}

impl Run {
    /// Returns what the executor of an agent step said and did so far.
    pub fn agent_work(&self, ix: StepIx) -> Option<&AgentWork> {
        self.agents.get(&ix)
    }

    /// Returns whether this run is one call of an agent step.
    pub fn is_agent_call(&self) -> bool {
        self.start
            .parent
            .as_ref()
            .is_some_and(|parent| parent.call.is_some())
    }

    pub(super) fn note_turn(
        &mut self,
        entry: &Entry<RunEvent>,
        step: &StepId,
        turn: u32,
        said: AgentTurn,
    ) -> Result<(), Corrupt> {
        let ix = self.locate(entry.seq, step)?;
        let current = matches!(self.step(ix), StepState::Running { tally, .. } if tally.attempts == said.attempt);
        let next = self.agents.get(&ix).map_or(0, |work| work.turns.len()) + 1;
        if !current || self.definition(ix).agent.is_none() || next != turn as usize {
            return Err(self.impossible(entry, ix, "agent_turn"));
        }
        let work = self.agents.entry(ix).or_default();
        work.calls = work
            .calls
            .saturating_add(u32::try_from(said.calls.len()).unwrap_or(u32::MAX));
        work.turns.push(said);
        Ok(())
    }

    pub(super) fn note_model(
        &mut self,
        entry: &Entry<RunEvent>,
        step: Option<&StepId>,
        tokens: u64,
    ) -> Result<(), Corrupt> {
        if self.state.is_terminal() {
            return Err(self.cannot_follow(entry, "model_used"));
        }
        let Some(step) = step else { return Ok(()) };
        let ix = self.locate(entry.seq, step)?;
        if self.definition(ix).agent.is_some() {
            let work = self.agents.entry(ix).or_default();
            work.asked = work.asked.saturating_add(1);
            work.tokens = work.tokens.saturating_add(tokens);
        }
        Ok(())
    }
}
