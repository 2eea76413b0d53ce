//! The entries that the journal of a run can have.

use super::{
    AgentCall, Asked, AskedCall, Consent, CriterionCheck, Reflection, Reply, StepErrorCode,
    StoredValue,
};
use crate::adjust::{Adjustment, Assessment};
use crate::digest::Digest;
use crate::id::{AttemptNo, PlanId, RunId, StepId};
use crate::journal::Journaled;
use crate::json::is_default;
use crate::model::ModelUse;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::time::Timestamp;
use crate::tool::{EffectClass, ToolName};
use crate::trace::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunEvent {
    /// The run began.
    RunStarted {
        /// The plan.
        plan: PlanId,
        /// The version of the plan.
        version: u32,
        /// The digest of what was approved.
        digest: Digest,
        /// Given at run time. They win over the plan's and are part of the digest.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        variables: Map<String, Value>,
        /// The number of calls that may be in flight at once.
        max_concurrency: u32,
        /// The budget of the plan is enforced.
        guards: bool,
        /// The principal who did it.
        by: Principal,
        /// The run whose results it takes over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<Box<Fork>>,
        /// What was agreed to. Absent in runs from before it was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<Box<Consent>>,
        /// The run whose steps this one takes back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<RunId>,
        /// The step of another run that this run is the work of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Box<Parent>>,
        /// What is executed, where that is no version of the plan but was derived from a run of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        document: Option<Arc<Document>>,
        /// The trace of the order that started it, if it came with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<Box<TraceId>>,
        /// It is looked at before it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reflection: Option<Box<Reflection>>,
        /// The time limit of calls whose step names none, in milliseconds. Absent in runs from
        /// before there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_timeout_ms: Option<u64>,
        /// A client makes its calls, one by one: no process goes on with it by itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stepwise: bool,
    },
    /// A fork takes this value over from another run.
    ResultReused {
        /// The step or element.
        step: StepId,
        /// The value that came back.
        value: StoredValue,
    },
    /// Durable before the call is made.
    AttemptStarted {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The tool that is called.
        tool: ToolName,
        /// The class of its effect.
        class: EffectClass,
        /// The digest of the tool's name and the resolved arguments: exactly what is sent.
        call: Digest,
    },
    /// The call came back with a value.
    AttemptSucceeded {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The value that came back.
        value: StoredValue,
    },
    /// The call came back with an error, or took too long.
    AttemptFailed {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The error that ended it.
        error: StepError,
        /// When it is tried again; absent when it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    },
    /// The next call of the step is made while no other is in flight: the process died too often
    /// while one of it was.
    StepIsolated {
        /// The step or element.
        step: StepId,
    },
    /// Other calls are made beside the one that was made alone, or the process is told to end: the
    /// call does not answer for the end of the process any more.
    IsolationEnded {
        /// The step or element.
        step: StepId,
    },
    /// The outcome was lost, and the call may be repeated.
    AttemptInterrupted {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The reason, in words for people.
        reason: String,
    },
    /// The call was stopped on request.
    AttemptCancelled {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
    },
    /// The outcome was lost, and the call must not be repeated by itself.
    OutcomeLost {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The reason, in words for people.
        reason: String,
    },
    /// A person stated the outcome of a call.
    OutcomeResolved {
        /// The step or element.
        step: StepId,
        /// The outcome that the person states.
        resolution: Resolution,
        /// The principal who did it.
        by: Principal,
    },
    /// The run of a sub-plan waits for a person, so this step does.
    ChildParked {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The id of that run.
        run: RunId,
    },
    /// The run of a sub-plan is looked at again.
    ChildResumed {
        /// The step or element.
        step: StepId,
    },
    /// The step failed without a call: a guard, a missing value, arguments the tool would not take.
    StepFailed {
        /// The step or element.
        step: StepId,
        /// The error that ended it.
        error: StepError,
    },
    /// The step will not run, and nothing is wrong.
    StepSkipped {
        /// The step or element.
        step: StepId,
        /// The reason, in words for people.
        reason: String,
        /// The principal who left it out; absent when its tool is not there or its condition does
        /// not hold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A person is asked about the step.
    ApprovalRequested {
        /// The step or element.
        step: StepId,
        /// The concrete call that is asked about; absent when the plan asks for the step as it is
        /// written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<AskedCall>>,
        /// The step fails if no person agreed by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// A person agreed.
    ApprovalGranted {
        /// The step or element.
        step: StepId,
        /// The principal who did it.
        by: Principal,
        /// The assurance that it was them.
        assurance: Assurance,
        /// The call that was agreed to, if one was asked about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Digest>,
    },
    /// A person refused.
    ApprovalDenied {
        /// The step or element.
        step: StepId,
        /// The principal who did it.
        by: Principal,
        /// The reason, in words for people.
        reason: String,
    },
    /// The step runs once for each of these.
    LoopOpened {
        /// The step or element.
        step: StepId,
        /// The list.
        items: StoredValue,
        /// The number of elements.
        count: u32,
    },
    /// Every element had its turn.
    LoopClosed {
        /// The step or element.
        step: StepId,
        /// Their values in order; null where an element was skipped.
        value: StoredValue,
    },
    /// A person is asked for values.
    InputRequested {
        /// The step or element.
        step: StepId,
        /// The attempt whose tool asks; absent when the step itself does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptNo>,
        /// The questions.
        asked: Box<Asked>,
        /// The call goes on and waits for the answer; otherwise the attempt is over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        held: bool,
    },
    /// A person answered.
    InputGiven {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptNo>,
        /// The principal who did it.
        by: Principal,
        /// One per question.
        replies: Vec<Reply>,
    },
    /// A model was asked, and this is what it took.
    ModelUsed {
        /// The step it was for; absent when it was for the run as a whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<StepId>,
        /// The tokens and the money that it took.
        used: ModelUse,
    },
    /// The model of an agent step said something, and what it wants called was decided on.
    AgentTurn {
        /// The step or element.
        step: StepId,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// Counts from 1.
        turn: u32,
        /// The words of the executor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<StoredValue>,
        /// The calls it wants made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AgentCall>,
    },
    /// Before the run ended the reflector looked at how it went.
    RunReflected {
        /// Counts from 1, over all runs of the same work.
        cycle: u32,
        /// The state of the run as it was judged.
        assessment: Assessment,
        /// The reasons of the model.
        reasoning: String,
        /// The changes that were proposed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        adjustments: Vec<Adjustment>,
    },
    /// A principal paused the run.
    RunPaused {
        /// The principal who did it.
        by: Principal,
    },
    /// A principal resumed the run.
    RunResumed {
        /// The principal who did it.
        by: Principal,
    },
    /// No process has executed the run for too long, and nothing says that one still does.
    RunStalled {
        /// When its last owner was last heard of.
        since: Timestamp,
    },
    /// The service executes as many runs as it may: this one waits until one of them ends.
    RunQueued {
        /// The number of runs that it executes at once.
        slots: u32,
    },
    /// A person declared the run failed. What had not ended never will.
    RunGivenUp {
        /// The principal who did it.
        by: Principal,
        /// The reason, in words for people.
        reason: String,
        /// The digest of where every step ended.
        steps_digest: Digest,
    },
    /// A principal cancelled the run; its calls are being stopped.
    CancelRequested {
        /// The principal who did it.
        by: Principal,
    },
    /// Every step ended, and no failure ended the run.
    RunCompleted {
        /// The digest of where every step ended.
        steps_digest: Digest,
        /// The number of critical steps that did not succeed, where the plan says to go on without
        /// them.
        #[serde(default, skip_serializing_if = "is_default")]
        failures: u32,
    },
    /// A critical step failed.
    RunFailed {
        /// The digest of where every step ended.
        steps_digest: Digest,
    },
    /// The run ended because it was cancelled.
    RunCancelled {
        /// The digest of where every step ended.
        steps_digest: Digest,
    },
    /// The plan was adjusted: the work goes on with this version of it, in another run.
    RunAdjusted {
        /// The version of the plan.
        version: u32,
        /// Its remaining steps were planned anew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replanned: bool,
        /// The digest of where every step ended.
        steps_digest: Digest,
    },
    /// After the end: the success criteria of the plan were held against what happened.
    CriteriaChecked {
        /// The criteria with what was found out about them.
        checks: Vec<CriterionCheck>,
        /// What it took to find out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        used: Vec<ModelUse>,
    },
    /// After the end: a person ordered that the run is taken back, and agreed to exactly these
    /// calls.
    UndoOpened {
        /// The id of that run.
        run: RunId,
        /// Of the undo as it was shown.
        digest: Digest,
        /// The principal who did it.
        by: Principal,
        /// The assurance that it was them.
        assurance: Assurance,
    },
    /// After the end: the effect of this step was taken back by that run.
    StepUndone {
        /// The step or element.
        step: StepId,
        /// The id of that run.
        run: RunId,
    },
}

/// The step that a child run is the work of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The run of the step.
    pub run: RunId,
    /// The step or element.
    pub step: StepId,
    /// The element of a step that runs once per element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The call of an `agent` step, counted from 0 over everything its executor wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The call is outside the plan's scope and was only noted as such: a person is asked,
    /// regardless of what policy says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}

impl Parent {
    /// Returns the id of the child run: always the same, so that a process that takes the parent
    /// over finds it again.
    pub fn child(&self) -> RunId {
        let index = self
            .index
            .map_or_else(String::new, |index| index.to_string());
        let parts = [
            b"child".as_slice(),
            self.run.as_str().as_bytes(),
            self.step.as_str().as_bytes(),
        ];
        let digest = match self.call {
            None => Digest::of_parts(&[parts[0], parts[1], parts[2], index.as_bytes()]),
            Some(call) => {
                let call = call.to_string();
                Digest::of_parts(&[
                    parts[0],
                    parts[1],
                    parts[2],
                    index.as_bytes(),
                    call.as_bytes(),
                ])
            }
        };
        let entropy = digest
            .as_bytes()
            .iter()
            .take(8)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        RunId::mint(entropy)
    }
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    /// The run it was forked from.
    pub run: RunId,
    /// The first steps that run again.
    pub from: Vec<StepId>,
}

/// Why a step or an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepError {
    /// A stable word: `timeout`, `tool_error`, `guard_blocked`, …
    pub code: StepErrorCode,
    /// The message for people.
    pub message: String,
    /// True if trying again may help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// The knowledge of the effect of the call.
    #[serde(default, skip_serializing_if = "CallEffect::is_unknown")]
    pub effect: CallEffect,
}

/// The knowledge of the effect of a call that came to nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEffect {
    /// It had none: it was refused before anything was done.
    None,
    /// Nothing is known: the tool may have done some of its work, or all of it.
    #[default]
    Unknown,
    /// The tool did its work, and only its answer is of no use.
    Done,
}

impl CallEffect {
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl StepError {
    /// Makes an error that no other attempt is made after, and that says nothing about the effect
    /// of the call.
    pub fn new(code: StepErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: false,
            effect: CallEffect::Unknown,
        }
    }

    /// What an agent step says that ended without a call, although some could have been made.
    pub fn nothing_done() -> Self {
        Self::new(
            StepErrorCode::NothingDone,
            "the model said that it was done, and no tool was called: a step that only answers is a \
             `think` step, or has `maxCalls: 0`",
        )
        .retryable(true)
    }

    /// Says what is known of the effect of the call.
    #[must_use]
    pub fn with_effect(mut self, effect: CallEffect) -> Self {
        self.effect = effect;
        self
    }

    /// Says whether another attempt can help.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }
}

/// The word of a person about a call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It happened, with this value.
    Happened {
        /// The value that came back.
        value: StoredValue,
    },
    /// It had no effect: the attempt failed.
    DidNotHappen,
    /// Call it again, regardless of what happened before.
    RunAgain,
}

impl Journaled for RunEvent {
    /// A step starts each attempt once and ends once; a run starts once and ends once. Ends that a
    /// person may still reverse (an unknown outcome) carry no key. The step comes first, so that
    /// the keys of one commit lie side by side.
    fn unique_key(&self) -> Option<String> {
        match self {
            Self::RunStarted { .. } => Some("start".into()),
            Self::AttemptStarted { step, attempt, .. } => Some(format!("{step} start {attempt}")),
            Self::LoopOpened { step, .. } => Some(format!("{step} open")),
            Self::ResultReused { step, .. }
            | Self::AttemptSucceeded { step, .. }
            | Self::AttemptFailed {
                step,
                retry_at: None,
                ..
            }
            | Self::StepFailed { step, .. }
            | Self::StepSkipped { step, .. }
            | Self::AttemptCancelled { step, .. }
            | Self::ApprovalDenied { step, .. }
            | Self::LoopClosed { step, .. }
            | Self::InputGiven {
                step,
                attempt: None,
                ..
            }
            | Self::OutcomeResolved {
                step,
                resolution: Resolution::Happened { .. },
                ..
            } => Some(format!("{step} end")),
            Self::RunCompleted { .. }
            | Self::RunFailed { .. }
            | Self::RunGivenUp { .. }
            | Self::RunAdjusted { .. }
            | Self::RunCancelled { .. } => Some("end".into()),
            Self::RunReflected { cycle, .. } => Some(format!("reflected {cycle}")),
            Self::AgentTurn { step, turn, .. } => Some(format!("{step} turn {turn}")),
            Self::StepUndone { step, .. } => Some(format!("{step} undone")),
            Self::UndoOpened { run, .. } => Some(format!("undo {run}")),
            Self::AttemptFailed {
                retry_at: Some(_), ..
            }
            | Self::AttemptInterrupted { .. }
            | Self::OutcomeLost { .. }
            | Self::OutcomeResolved { .. }
            | Self::ChildParked { .. }
            | Self::ChildResumed { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalGranted { .. }
            | Self::InputRequested { .. }
            | Self::InputGiven {
                attempt: Some(_), ..
            }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::RunStalled { .. }
            | Self::RunQueued { .. }
            | Self::StepIsolated { .. }
            | Self::IsolationEnded { .. }
            | Self::ModelUsed { .. }
            | Self::CriteriaChecked { .. }
            | Self::CancelRequested { .. } => None,
        }
    }
}
