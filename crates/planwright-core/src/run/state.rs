//! Where a run and its steps stand: one enum each, and one table each that says what may follow
//! what.

use super::{Asked, AskedCall, StepError, StoredValue};
use crate::digest::Digest;
use crate::id::{AttemptNo, RunId};
use crate::plan::StepIx;
use crate::status::StepStatus;
use crate::time::Timestamp;
use crate::tool::EffectClass;
use std::time::Duration;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    Running,
    /// In-flight calls finish; nothing starts until the run is resumed.
    Paused,
    /// It was being executed, and then no process executed it for too long. A person says how it
    /// goes on.
    Stalled {
        since: Timestamp,
    },
    /// A critical step failed: in-flight calls finish, nothing starts.
    Stopping {
        failed: StepIx,
    },
    /// It was cancelled: in-flight calls are being stopped.
    Cancelling,
    Completed,
    Failed {
        failed: StepIx,
    },
    /// A person declared it failed, although no step of it was why.
    GivenUp,
    /// The plan was adjusted: the work goes on with this version of it.
    Adjusted {
        version: u32,
    },
    Cancelled,
}

/// What can happen to a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunSignal {
    Paused,
    Resumed,
    CancelRequested,
    CriticalStepFailed(StepIx),
    Completed,
    Failed(StepIx),
    Cancelled,
    Stalled(Timestamp),
    GivenUp,
    Adjusted(u32),
}

impl RunState {
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Completed
            | Self::Failed { .. }
            | Self::GivenUp
            | Self::Adjusted { .. }
            | Self::Cancelled => true,
            Self::Running
            | Self::Paused
            | Self::Stalled { .. }
            | Self::Stopping { .. }
            | Self::Cancelling => false,
        }
    }

    /// Returns the state that follows, or `None` if the journal may not say this here.
    pub(super) fn after(&self, signal: RunSignal) -> Option<Self> {
        use RunSignal as S;
        Some(match (self, signal) {
            (Self::Running, S::Paused) => Self::Paused,
            (Self::Running, S::Stalled(since)) => Self::Stalled { since },
            (Self::Paused | Self::Stalled { .. }, S::Resumed) => Self::Running,
            (
                Self::Running | Self::Paused | Self::Stalled { .. } | Self::Stopping { .. },
                S::CancelRequested,
            ) => Self::Cancelling,
            (
                Self::Running | Self::Paused | Self::Stalled { .. },
                S::CriticalStepFailed(failed),
            ) => Self::Stopping { failed },
            (
                Self::Running | Self::Paused | Self::Stalled { .. } | Self::Stopping { .. },
                S::GivenUp,
            ) => Self::GivenUp,
            // Once the run is ending, another failure does not change why.
            (Self::Stopping { failed }, S::CriticalStepFailed(_)) => {
                Self::Stopping { failed: *failed }
            }
            (Self::Cancelling, S::CriticalStepFailed(_)) => Self::Cancelling,
            (Self::Running | Self::Paused, S::Completed) => Self::Completed,
            (Self::Running | Self::Paused | Self::Stopping { .. }, S::Failed(failed)) => {
                Self::Failed { failed }
            }
            (Self::Running | Self::Paused | Self::Stopping { .. }, S::Adjusted(version)) => {
                Self::Adjusted { version }
            }
            (Self::Cancelling, S::Cancelled) => Self::Cancelled,
            _ => return None,
        })
    }
}

/// How often a step was tried, and how that went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub attempts: AttemptNo,
    pub failures: u16,
    /// Attempts whose outcome was lost.
    pub interruptions: u16,
}

/// Where one step of a run stands. Folded from the journal, never stored as the truth.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Waits for this many of the steps it depends on.
    Pending { waits_for: u32 },
    /// A step it depends on will never succeed, so this one will never run. Names the one that
    /// failed first.
    Blocked { by: StepIx },
    /// Nothing is in the way, except a person's approval if the plan asks for one.
    Ready { tally: Tally, approved: bool },
    /// A person has been asked. Nothing is called until they answer.
    AwaitingApproval {
        asked_at: Timestamp,
        /// What was tried before this was asked.
        tally: Tally,
        /// The concrete call, if that is what was asked about.
        call: Option<Box<AskedCall>>,
        expires_at: Option<Timestamp>,
    },
    /// A person has been asked for values.
    AwaitingInput {
        tally: Tally,
        asked_at: Timestamp,
        /// The attempt whose tool asked. It is over, and had no effect.
        attempt: Option<AttemptNo>,
        asked: Box<Asked>,
    },
    /// The run of its sub-plan waits for a person, or is paused.
    AwaitingPlan { tally: Tally, run: RunId },
    /// A call is in flight, or was when the last owner died.
    Running {
        tally: Tally,
        class: EffectClass,
        started_at: Timestamp,
        deadline: Option<Timestamp>,
    },
    /// Runs once per element: the calls are those of its instances.
    Looping { opened_at: Timestamp, count: u32 },
    /// The last attempt failed and another is due.
    RetryDue { tally: Tally, due_at: Timestamp },
    Completed {
        tally: Tally,
        took: Duration,
        value: StoredValue,
    },
    Failed {
        tally: Tally,
        took: Duration,
        error: Box<StepError>,
    },
    /// A person said no. What depends on it is blocked.
    Denied { reason: Box<str> },
    /// Will not run, and nothing is wrong: what depends on it goes on.
    Skipped { reason: Box<str> },
    /// Did not run, or was stopped, because the run ended.
    Cancelled { tally: Tally, reason: Box<str> },
    /// The call may or may not have happened. A person has to say.
    OutcomeUnknown { tally: Tally, reason: Box<str> },
    /// Completed, then taken back.
    Undone { tally: Tally },
}

/// What can happen to one step. The first six follow from other steps and from the run; the rest
/// are journaled.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEvent<'a> {
    DependencyDone,
    DependencyFailed {
        root: StepIx,
    },
    RunEnded {
        reason: &'a str,
    },
    /// Another element of the same loop failed: what is not in flight does not begin any more.
    LoopStopped {
        reason: &'a str,
    },
    ElementFailed {
        index: u32,
        error: &'a StepError,
    },
    ElementDenied {
        index: u32,
        reason: &'a str,
    },
    Reused {
        value: &'a StoredValue,
    },
    ApprovalRequested {
        at: Timestamp,
        call: Option<&'a AskedCall>,
        expires_at: Option<Timestamp>,
    },
    ApprovalGranted {
        call: Option<Digest>,
    },
    ApprovalDenied {
        reason: &'a str,
    },
    AttemptStarted {
        attempt: AttemptNo,
        class: EffectClass,
        at: Timestamp,
        deadline: Option<Timestamp>,
    },
    AttemptSucceeded {
        attempt: AttemptNo,
        value: &'a StoredValue,
        at: Timestamp,
    },
    AttemptFailed {
        attempt: AttemptNo,
        error: &'a StepError,
        retry_at: Option<Timestamp>,
        at: Timestamp,
    },
    AttemptInterrupted {
        attempt: AttemptNo,
    },
    AttemptCancelled {
        attempt: AttemptNo,
    },
    OutcomeLost {
        attempt: AttemptNo,
        reason: &'a str,
    },
    Happened {
        value: &'a StoredValue,
    },
    /// The failed attempt that follows from it is an event of its own.
    DidNotHappen,
    RunAgain,
    ChildParked {
        attempt: AttemptNo,
        run: &'a RunId,
    },
    ChildResumed,
    /// After the end of the run.
    Undone,
    FailedWithoutCall {
        error: &'a StepError,
    },
    Skipped {
        reason: &'a str,
    },
    LoopOpened {
        count: u32,
        at: Timestamp,
    },
    LoopClosed {
        value: &'a StoredValue,
        at: Timestamp,
    },
    InputRequested {
        attempt: Option<AttemptNo>,
        asked: &'a Asked,
        at: Timestamp,
    },
    /// What a tool asked was answered: the next attempt knows.
    QuestionAnswered {
        attempt: AttemptNo,
    },
    InputGiven {
        value: &'a StoredValue,
        at: Timestamp,
    },
    InputDeclined {
        reason: &'a str,
    },
}

impl StepState {
    /// Returns the state that follows, or `None` if the journal may not say this here.
    pub fn after(&self, event: &StepEvent<'_>) -> Option<Self> {
        use StepEvent as E;
        Some(match (self, event) {
            (Self::Pending { waits_for: 1 }, E::DependencyDone) => Self::Ready {
                tally: Tally::default(),
                approved: false,
            },
            (Self::Pending { waits_for: 2.. }, E::DependencyDone) => {
                let Self::Pending { waits_for } = self else {
                    return None;
                };
                Self::Pending {
                    waits_for: waits_for - 1,
                }
            }
            (Self::Pending { .. }, E::DependencyFailed { root }) => Self::Blocked { by: *root },
            (Self::Blocked { by }, E::DependencyDone | E::DependencyFailed { .. }) => {
                Self::Blocked { by: *by }
            }

            (Self::Pending { .. } | Self::Ready { .. }, E::Reused { value }) => Self::Completed {
                tally: Tally::default(),
                took: Duration::ZERO,
                value: (*value).clone(),
            },
            (
                Self::Ready {
                    tally,
                    approved: false,
                },
                E::ApprovalRequested {
                    at,
                    call: None,
                    expires_at,
                },
            ) => Self::awaiting(*tally, *at, None, *expires_at),
            (
                Self::Ready { tally, .. } | Self::RetryDue { tally, .. },
                E::ApprovalRequested {
                    at,
                    call: Some(call),
                    expires_at,
                },
            ) => Self::awaiting(*tally, *at, Some(call), *expires_at),
            (
                Self::AwaitingApproval {
                    tally, call: asked, ..
                },
                E::ApprovalGranted { call },
            ) if asked.as_ref().map(|asked| asked.digest) == *call => Self::Ready {
                tally: *tally,
                approved: true,
            },
            // No person agreed in time.
            (Self::AwaitingApproval { tally, .. }, E::FailedWithoutCall { error }) => {
                Self::Failed {
                    tally: *tally,
                    took: Duration::ZERO,
                    error: Box::new((*error).clone()),
                }
            }
            (Self::AwaitingApproval { .. }, E::ApprovalDenied { reason }) => Self::Denied {
                reason: (*reason).into(),
            },

            (
                Self::Ready { tally, .. } | Self::RetryDue { tally, .. },
                E::AttemptStarted {
                    attempt,
                    class,
                    at,
                    deadline,
                },
            ) if *attempt == tally.attempts + 1 => Self::Running {
                tally: Tally {
                    attempts: *attempt,
                    ..*tally
                },
                class: *class,
                started_at: *at,
                deadline: *deadline,
            },
            (
                Self::Running {
                    tally, started_at, ..
                },
                E::AttemptSucceeded { attempt, value, at },
            ) if *attempt == tally.attempts => Self::Completed {
                tally: *tally,
                took: at.since(*started_at),
                value: (*value).clone(),
            },
            (
                Self::Running {
                    tally, started_at, ..
                },
                E::AttemptFailed {
                    attempt,
                    error,
                    retry_at,
                    at,
                },
            ) if *attempt == tally.attempts => {
                tally.failed(error, *retry_at, at.since(*started_at))
            }
            // A person said that it had no effect: the attempt failed.
            (
                Self::OutcomeUnknown { tally, .. },
                E::AttemptFailed {
                    attempt,
                    error,
                    retry_at,
                    ..
                },
            ) if *attempt == tally.attempts => tally.failed(error, *retry_at, Duration::ZERO),
            (Self::Running { tally, .. }, E::AttemptInterrupted { attempt })
                if *attempt == tally.attempts =>
            {
                Self::Ready {
                    tally: Tally {
                        interruptions: tally.interruptions + 1,
                        ..*tally
                    },
                    approved: true,
                }
            }
            (Self::Running { tally, .. }, E::AttemptCancelled { attempt })
                if *attempt == tally.attempts =>
            {
                Self::Cancelled {
                    tally: *tally,
                    reason: StepStatus::Cancelled.as_str().into(),
                }
            }
            (Self::Running { tally, .. }, E::OutcomeLost { attempt, reason })
                if *attempt == tally.attempts =>
            {
                Self::OutcomeUnknown {
                    tally: *tally,
                    reason: (*reason).into(),
                }
            }
            (Self::OutcomeUnknown { tally, .. }, E::Happened { value }) => Self::Completed {
                tally: *tally,
                took: Duration::ZERO,
                value: (*value).clone(),
            },
            (Self::OutcomeUnknown { .. }, E::DidNotHappen) => self.clone(),
            (Self::OutcomeUnknown { tally, .. }, E::RunAgain) => Self::Ready {
                tally: *tally,
                approved: true,
            },

            (Self::Running { tally, .. }, E::ChildParked { attempt, run })
                if *attempt == tally.attempts =>
            {
                Self::AwaitingPlan {
                    tally: *tally,
                    run: (*run).clone(),
                }
            }
            (Self::AwaitingPlan { tally, .. }, E::ChildResumed) => Self::Ready {
                tally: *tally,
                approved: true,
            },
            (Self::Completed { tally, .. }, E::Undone) => Self::Undone { tally: *tally },

            (
                Self::Ready { tally, .. } | Self::RetryDue { tally, .. },
                E::FailedWithoutCall { error },
            ) => Self::Failed {
                tally: *tally,
                took: Duration::ZERO,
                error: Box::new((*error).clone()),
            },
            (
                Self::Pending { .. } | Self::Ready { .. } | Self::AwaitingApproval { .. },
                E::Skipped { reason },
            ) => Self::Skipped {
                reason: (*reason).into(),
            },

            (Self::Ready { .. }, E::LoopOpened { count, at }) => Self::Looping {
                opened_at: *at,
                count: *count,
            },
            (Self::Looping { opened_at, .. }, E::LoopClosed { value, at }) => {
                let took = at.since(*opened_at);
                Self::Completed {
                    tally: Tally::default(),
                    took,
                    value: (*value).clone(),
                }
            }
            (Self::Looping { .. }, E::ElementFailed { index, error }) => {
                let message = format!("element {index}: {}", error.message);
                let error = Box::new(StepError::new(error.code.clone(), message));
                Self::Failed {
                    tally: Tally::default(),
                    took: Duration::ZERO,
                    error,
                }
            }
            (Self::Looping { .. }, E::ElementDenied { index, reason }) => Self::Denied {
                reason: format!("element {index}: {reason}").into(),
            },
            (Self::Looping { .. }, E::FailedWithoutCall { error }) => {
                let error = Box::new((*error).clone());
                Self::Failed {
                    tally: Tally::default(),
                    took: Duration::ZERO,
                    error,
                }
            }

            (
                Self::Ready { tally, .. },
                E::InputRequested {
                    attempt: None,
                    asked,
                    at,
                },
            ) => {
                let asked = Box::new((*asked).clone());
                Self::AwaitingInput {
                    tally: *tally,
                    asked_at: *at,
                    attempt: None,
                    asked,
                }
            }
            (
                Self::Running { tally, .. },
                E::InputRequested {
                    attempt: Some(attempt),
                    asked,
                    at,
                },
            ) if *attempt == tally.attempts => {
                let asked = Box::new((*asked).clone());
                Self::AwaitingInput {
                    tally: *tally,
                    asked_at: *at,
                    attempt: Some(*attempt),
                    asked,
                }
            }
            (
                Self::AwaitingInput {
                    tally,
                    attempt: Some(asked),
                    ..
                },
                E::QuestionAnswered { attempt },
            ) if asked == attempt => Self::Ready {
                tally: *tally,
                approved: true,
            },
            (
                Self::AwaitingInput {
                    tally,
                    asked_at,
                    attempt: None,
                    ..
                },
                E::InputGiven { value, at },
            ) => Self::Completed {
                tally: *tally,
                took: at.since(*asked_at),
                value: (*value).clone(),
            },
            (Self::AwaitingInput { attempt: None, .. }, E::InputDeclined { reason }) => {
                Self::Denied {
                    reason: (*reason).into(),
                }
            }

            (Self::Pending { .. }, E::RunEnded { reason } | E::LoopStopped { reason })
            | (Self::Looping { .. }, E::RunEnded { reason }) => Self::Cancelled {
                tally: Tally::default(),
                reason: (*reason).into(),
            },
            (
                Self::Ready { tally, .. }
                | Self::RetryDue { tally, .. }
                | Self::AwaitingApproval { tally, .. }
                | Self::AwaitingInput { tally, .. }
                | Self::AwaitingPlan { tally, .. },
                E::RunEnded { reason } | E::LoopStopped { reason },
            ) => Self::Cancelled {
                tally: *tally,
                reason: (*reason).into(),
            },
            _ => return None,
        })
    }

    fn awaiting(
        tally: Tally,
        asked_at: Timestamp,
        call: Option<&AskedCall>,
        expires_at: Option<Timestamp>,
    ) -> Self {
        Self::AwaitingApproval {
            asked_at,
            tally,
            call: call.cloned().map(Box::new),
            expires_at,
        }
    }

    /// Returns the status that every output shows for this state.
    pub fn status(&self) -> StepStatus {
        match self {
            Self::Pending { .. } => StepStatus::Pending,
            Self::Blocked { .. } => StepStatus::Blocked,
            Self::Ready { .. } => StepStatus::Ready,
            Self::AwaitingApproval { .. } => StepStatus::AwaitingApproval,
            Self::AwaitingInput { .. } => StepStatus::AwaitingInput,
            Self::AwaitingPlan { .. } => StepStatus::AwaitingPlan,
            Self::Running { .. } | Self::Looping { .. } => StepStatus::Running,
            Self::RetryDue { .. } => StepStatus::RetryDue,
            Self::Completed { .. } => StepStatus::Completed,
            Self::Failed { .. } => StepStatus::Failed,
            Self::Denied { .. } => StepStatus::Denied,
            Self::Skipped { .. } => StepStatus::Skipped,
            Self::Cancelled { .. } => StepStatus::Cancelled,
            Self::OutcomeUnknown { .. } => StepStatus::OutcomeUnknown,
            Self::Undone { .. } => StepStatus::Undone,
        }
    }

    /// Nothing happens to the step any more in this run, except that it may be taken back. An
    /// unknown outcome is not an end: a person may settle it.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Blocked { .. }
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Denied { .. }
            | Self::Skipped { .. }
            | Self::Cancelled { .. }
            | Self::Undone { .. } => true,
            Self::Pending { .. }
            | Self::Ready { .. }
            | Self::AwaitingApproval { .. }
            | Self::AwaitingInput { .. }
            | Self::AwaitingPlan { .. }
            | Self::Running { .. }
            | Self::Looping { .. }
            | Self::RetryDue { .. }
            | Self::OutcomeUnknown { .. } => false,
        }
    }

    pub fn tally(&self) -> Tally {
        match self {
            Self::Ready { tally, .. }
            | Self::AwaitingApproval { tally, .. }
            | Self::AwaitingPlan { tally, .. }
            | Self::Running { tally, .. }
            | Self::RetryDue { tally, .. }
            | Self::Completed { tally, .. }
            | Self::Failed { tally, .. }
            | Self::Cancelled { tally, .. }
            | Self::AwaitingInput { tally, .. }
            | Self::OutcomeUnknown { tally, .. }
            | Self::Undone { tally } => *tally,
            Self::Pending { .. }
            | Self::Blocked { .. }
            | Self::Looping { .. }
            | Self::Denied { .. }
            | Self::Skipped { .. } => Tally::default(),
        }
    }

    pub fn value(&self) -> Option<&StoredValue> {
        if let Self::Completed { value, .. } = self {
            Some(value)
        } else {
            None
        }
    }
}

impl Tally {
    fn failed(self, error: &StepError, retry_at: Option<Timestamp>, took: Duration) -> StepState {
        let tally = Self {
            failures: self.failures.saturating_add(1),
            ..self
        };
        match retry_at {
            Some(due_at) => StepState::RetryDue { tally, due_at },
            None => StepState::Failed {
                tally,
                took,
                error: Box::new(error.clone()),
            },
        }
    }
}
