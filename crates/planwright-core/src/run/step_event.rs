//! The life of a step: one table that says what may follow what.

use super::{Asked, AskedCall, HeldQuestion, StepError, StepState, StoredValue, Tally};
use crate::digest::Digest;
use crate::id::{AttemptNo, RunId};
use crate::plan::StepIx;
use crate::status::StepStatus;
use crate::time::Timestamp;
use crate::tool::EffectClass;
use std::time::Duration;

/// What can happen to one step. The first six follow from other steps and from the run; the rest
/// are journaled.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEvent<'a> {
    /// A step it depends on ended well.
    DependencyDone,
    /// A step it depends on will never succeed.
    DependencyFailed {
        /// The step that failed first.
        root: StepIx,
    },
    /// The run ended before it.
    RunEnded {
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// Another element of the same loop failed: what is not in flight does not begin any more.
    LoopStopped {
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// An element of its list failed for good.
    ElementFailed {
        /// The element, counted from 0.
        index: u32,
        /// The error that ended it.
        error: &'a StepError,
    },
    /// A person refused an element of its list.
    ElementDenied {
        /// The element, counted from 0.
        index: u32,
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// Its value is taken over from another run.
    Reused {
        /// The value that came back.
        value: &'a StoredValue,
    },
    /// A person is asked.
    ApprovalRequested {
        /// The time at which it happened.
        at: Timestamp,
        /// The call that is asked about; absent for the step as it is written.
        call: Option<&'a AskedCall>,
        /// The time until which it can be given.
        expires_at: Option<Timestamp>,
    },
    /// A person agreed.
    ApprovalGranted {
        /// The digest of the tool and its arguments.
        call: Option<Digest>,
    },
    /// A person refused.
    ApprovalDenied {
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// A call is about to be made.
    AttemptStarted {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The class of its effect.
        class: EffectClass,
        /// The time at which it happened.
        at: Timestamp,
        /// The time at which the call has taken too long.
        deadline: Option<Timestamp>,
    },
    /// The call came back with a value.
    AttemptSucceeded {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The value that came back.
        value: &'a StoredValue,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// The call came back with an error, or took too long.
    AttemptFailed {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The error that ended it.
        error: &'a StepError,
        /// The time of the next attempt; absent when there is none.
        retry_at: Option<Timestamp>,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// The outcome was lost, and the call may be repeated.
    AttemptInterrupted {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
    },
    /// The call was stopped on request.
    AttemptCancelled {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
    },
    /// The outcome was lost, and the call must not be repeated by itself.
    OutcomeLost {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// A person states that the call happened.
    Happened {
        /// The value that came back.
        value: &'a StoredValue,
    },
    /// The failed attempt that follows from it is an event of its own.
    DidNotHappen,
    /// A person orders the call once more.
    RunAgain,
    /// The run of its sub-plan waits for a person.
    ChildParked {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The id of that run.
        run: &'a RunId,
    },
    /// The run of its sub-plan is looked at again.
    ChildResumed,
    /// After the end of the run.
    Undone,
    /// The call cannot be made.
    FailedWithoutCall {
        /// The error that ended it.
        error: &'a StepError,
    },
    /// It will not run, and nothing is wrong.
    Skipped {
        /// The reason, in words for people.
        reason: &'a str,
    },
    /// It runs once for each element.
    LoopOpened {
        /// The number of elements.
        count: u32,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// Every element had its turn.
    LoopClosed {
        /// The value that came back.
        value: &'a StoredValue,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// A person is asked for values.
    InputRequested {
        /// The attempt, counted from 1.
        attempt: Option<AttemptNo>,
        /// The questions.
        asked: &'a Asked,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// A person is asked while the call waits.
    QuestionHeld {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The questions.
        asked: &'a Asked,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// What a tool asked was answered: the call that waits knows, or the next attempt.
    QuestionAnswered {
        /// The attempt, counted from 1.
        attempt: AttemptNo,
    },
    /// A person gave the values it asks for.
    InputGiven {
        /// The value that came back.
        value: &'a StoredValue,
        /// The time at which it happened.
        at: Timestamp,
    },
    /// A person does not want to answer.
    InputDeclined {
        /// The reason, in words for people.
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
                question: None,
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
                Self::Running {
                    tally,
                    class,
                    started_at,
                    deadline,
                    question: None,
                },
                E::QuestionHeld { attempt, asked, at },
            ) if *attempt == tally.attempts => Self::Running {
                tally: *tally,
                class: *class,
                started_at: *started_at,
                deadline: *deadline,
                question: Some(Box::new(HeldQuestion {
                    asked: (*asked).clone(),
                    asked_at: *at,
                })),
            },
            (
                Self::Running {
                    tally,
                    class,
                    started_at,
                    deadline,
                    question: Some(_),
                },
                E::QuestionAnswered { attempt },
            ) if *attempt == tally.attempts => Self::Running {
                tally: *tally,
                class: *class,
                started_at: *started_at,
                deadline: *deadline,
                question: None,
            },
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
