//! What can be written into the journal of a run.

use super::{Asked, AskedCall, Consent, Reply, StoredValue};
use crate::digest::Digest;
use crate::id::{AttemptNo, PlanId, RunId, StepId};
use crate::journal::Journaled;
use crate::principal::{Assurance, Principal};
use crate::time::Timestamp;
use crate::tool::{EffectClass, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunEvent {
    RunStarted {
        plan: PlanId,
        version: u32,
        /// What was approved.
        digest: Digest,
        /// Given at run time. They win over the plan's and are part of the digest.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        variables: Map<String, Value>,
        max_concurrency: u32,
        guards: bool,
        by: Principal,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<Fork>,
        /// What was agreed to. Absent in runs from before it was written down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<Box<Consent>>,
    },
    /// A fork takes this value over from another run.
    ResultReused {
        step: StepId,
        value: StoredValue,
    },
    /// Durable before the call is made.
    AttemptStarted {
        step: StepId,
        attempt: AttemptNo,
        tool: ToolName,
        class: EffectClass,
        /// The digest of the tool's name and the resolved arguments: exactly what is sent.
        call: Digest,
    },
    AttemptSucceeded {
        step: StepId,
        attempt: AttemptNo,
        value: StoredValue,
    },
    AttemptFailed {
        step: StepId,
        attempt: AttemptNo,
        error: StepError,
        /// When it is tried again; absent when it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    },
    /// The outcome was lost, and the call may be repeated.
    AttemptInterrupted {
        step: StepId,
        attempt: AttemptNo,
        reason: String,
    },
    /// The call was stopped on request.
    AttemptCancelled {
        step: StepId,
        attempt: AttemptNo,
    },
    /// The outcome was lost, and the call must not be repeated by itself.
    OutcomeLost {
        step: StepId,
        attempt: AttemptNo,
        reason: String,
    },
    OutcomeResolved {
        step: StepId,
        resolution: Resolution,
        by: Principal,
    },
    /// The step failed without a call: a guard, a missing value, arguments the tool would not take.
    StepFailed {
        step: StepId,
        error: StepError,
    },
    StepSkipped {
        step: StepId,
        reason: String,
    },
    ApprovalRequested {
        step: StepId,
        /// The concrete call that is asked about; absent when the plan asks for the step as it is written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<AskedCall>>,
        /// The step fails if nobody agreed by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    ApprovalGranted {
        step: StepId,
        by: Principal,
        assurance: Assurance,
        /// The call that was agreed to, if one was asked about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Digest>,
    },
    ApprovalDenied {
        step: StepId,
        by: Principal,
        reason: String,
    },
    /// The step runs once for each of these.
    LoopOpened {
        step: StepId,
        /// The list.
        items: StoredValue,
        count: u32,
    },
    /// Every element had its turn.
    LoopClosed {
        step: StepId,
        /// Their values in order; null where an element was skipped.
        value: StoredValue,
    },
    /// A person is asked for values.
    InputRequested {
        step: StepId,
        /// The attempt whose tool asks; absent when the step itself does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptNo>,
        asked: Box<Asked>,
    },
    InputGiven {
        step: StepId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptNo>,
        by: Principal,
        /// One per question.
        replies: Vec<Reply>,
    },
    RunPaused {
        by: Principal,
    },
    RunResumed {
        by: Principal,
    },
    CancelRequested {
        by: Principal,
    },
    RunCompleted {
        steps_digest: Digest,
    },
    RunFailed {
        steps_digest: Digest,
    },
    RunCancelled {
        steps_digest: Digest,
    },
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    pub run: RunId,
    /// The first steps that run again.
    pub from: Vec<StepId>,
}

/// Why a step or an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepError {
    /// A stable word: `timeout`, `tool_error`, `guard_blocked`, …
    pub code: String,
    pub message: String,
    /// Whether trying again may help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
}

impl StepError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false }
    }

    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }
}

/// What a person says about a call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It happened, with this value.
    Happened { value: StoredValue },
    /// It had no effect: the attempt failed.
    DidNotHappen,
    /// Call it again, whatever happened before.
    RunAgain,
}

impl Journaled for RunEvent {
    /// A step starts each attempt once and ends once; a run starts once and ends once. Ends that a person may still
    /// reverse (an unknown outcome) carry no key. The step comes first, so that the keys of one commit lie side by side.
    fn unique_key(&self) -> Option<String> {
        match self {
            Self::RunStarted { .. } => Some("start".into()),
            Self::AttemptStarted { step, attempt, .. } => Some(format!("{step} start {attempt}")),
            Self::LoopOpened { step, .. } => Some(format!("{step} open")),
            Self::ResultReused { step, .. }
            | Self::AttemptSucceeded { step, .. }
            | Self::AttemptFailed { step, retry_at: None, .. }
            | Self::StepFailed { step, .. }
            | Self::StepSkipped { step, .. }
            | Self::AttemptCancelled { step, .. }
            | Self::ApprovalDenied { step, .. }
            | Self::LoopClosed { step, .. }
            | Self::InputGiven { step, attempt: None, .. }
            | Self::OutcomeResolved { step, resolution: Resolution::Happened { .. }, .. } => {
                Some(format!("{step} end"))
            }
            Self::RunCompleted { .. } | Self::RunFailed { .. } | Self::RunCancelled { .. } => {
                Some("end".into())
            }
            Self::AttemptFailed { retry_at: Some(_), .. }
            | Self::AttemptInterrupted { .. }
            | Self::OutcomeLost { .. }
            | Self::OutcomeResolved { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalGranted { .. }
            | Self::InputRequested { .. }
            | Self::InputGiven { attempt: Some(_), .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::CancelRequested { .. } => None,
        }
    }
}
