//! Where a step stands, as one enum. What may follow what is in `step_event.rs`.

use super::{Asked, AskedCall, StepError, StoredValue};
use crate::id::{AttemptNo, RunId};
use crate::plan::StepIx;
use crate::status::StepStatus;
use crate::time::Timestamp;
use crate::tool::EffectClass;
use std::time::Duration;

/// The tries of a step, and how they went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of attempts that were begun.
    pub attempts: AttemptNo,
    /// The attempts that failed.
    pub failures: u16,
    /// Attempts whose outcome was lost.
    pub interruptions: u16,
}

/// The questions of a call's server to a person, while the call waits.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldQuestion {
    /// The questions.
    pub asked: Asked,
    /// The time at which the person was asked.
    pub asked_at: Timestamp,
}

/// Where one step of a run stands. Folded from the journal, never stored as the truth.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Waits for this many of the steps it depends on.
    Pending {
        /// The number of steps it waits for.
        waits_for: u32,
    },
    /// A step it depends on will never succeed, so this one will never run. Names the one that
    /// failed first.
    Blocked {
        /// The step that failed first.
        by: StepIx,
    },
    /// Nothing is in the way, except a person's approval if the plan asks for one.
    Ready {
        /// The attempts so far.
        tally: Tally,
        /// A person has agreed.
        approved: bool,
    },
    /// A person has been asked. Nothing is called until they answer.
    AwaitingApproval {
        /// The time at which the person was asked.
        asked_at: Timestamp,
        /// The tries before this was asked.
        tally: Tally,
        /// The concrete call, if that is what was asked about.
        call: Option<Box<AskedCall>>,
        /// The time until which it can be given.
        expires_at: Option<Timestamp>,
    },
    /// A person has been asked for values.
    AwaitingInput {
        /// The attempts so far.
        tally: Tally,
        /// The time at which the person was asked.
        asked_at: Timestamp,
        /// The attempt whose tool asked. It is over, and had no effect.
        attempt: Option<AttemptNo>,
        /// The questions.
        asked: Box<Asked>,
    },
    /// The run of its sub-plan waits for a person, or is paused.
    AwaitingPlan {
        /// The attempts so far.
        tally: Tally,
        /// The run of its sub-plan.
        run: RunId,
    },
    /// A call is in flight, or was when the last owner died.
    Running {
        /// The attempts so far.
        tally: Tally,
        /// The class of its effect.
        class: EffectClass,
        /// The time at which the call began.
        started_at: Timestamp,
        /// The time at which the call has taken too long.
        deadline: Option<Timestamp>,
        /// The questions of its server to a person, while the call waits.
        question: Option<Box<HeldQuestion>>,
    },
    /// Runs once per element: the calls are those of its instances.
    Looping {
        /// The time at which the loop was opened.
        opened_at: Timestamp,
        /// The number of elements.
        count: u32,
    },
    /// The last attempt failed and another is due.
    RetryDue {
        /// The attempts so far.
        tally: Tally,
        /// The time of the next attempt.
        due_at: Timestamp,
    },
    /// It came to a value.
    Completed {
        /// The attempts so far.
        tally: Tally,
        /// The time from its start to its end.
        took: Duration,
        /// The value that came back.
        value: StoredValue,
    },
    /// It failed for good.
    Failed {
        /// The attempts so far.
        tally: Tally,
        /// The time from its start to its end.
        took: Duration,
        /// The error that ended it.
        error: Box<StepError>,
    },
    /// A person said no. What depends on it is blocked.
    Denied {
        /// The reason, in words for people.
        reason: Box<str>,
    },
    /// Will not run, and nothing is wrong: what depends on it goes on.
    Skipped {
        /// The reason, in words for people.
        reason: Box<str>,
    },
    /// Did not run, or was stopped, because the run ended.
    Cancelled {
        /// The attempts so far.
        tally: Tally,
        /// The reason, in words for people.
        reason: Box<str>,
    },
    /// The call may or may not have happened. A person has to say.
    OutcomeUnknown {
        /// The attempts so far.
        tally: Tally,
        /// The reason, in words for people.
        reason: Box<str>,
    },
    /// Completed, then taken back.
    Undone {
        /// The attempts so far.
        tally: Tally,
    },
}

impl StepState {
    /// Returns the status that every output shows for this state.
    pub fn status(&self) -> StepStatus {
        match self {
            Self::Pending { .. } => StepStatus::Pending,
            Self::Blocked { .. } => StepStatus::Blocked,
            Self::Ready { .. } => StepStatus::Ready,
            Self::AwaitingApproval { .. } => StepStatus::AwaitingApproval,
            Self::AwaitingInput { .. }
            | Self::Running {
                question: Some(_), ..
            } => StepStatus::AwaitingInput,
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

    /// What a person is asked for, by the step itself or by its tool.
    pub fn question(&self) -> Option<&Asked> {
        match self {
            Self::AwaitingInput { asked, .. } => Some(asked),
            Self::Running {
                question: Some(held),
                ..
            } => Some(&held.asked),
            Self::Pending { .. }
            | Self::Blocked { .. }
            | Self::Ready { .. }
            | Self::AwaitingApproval { .. }
            | Self::AwaitingPlan { .. }
            | Self::Running { question: None, .. }
            | Self::Looping { .. }
            | Self::RetryDue { .. }
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Denied { .. }
            | Self::Skipped { .. }
            | Self::Cancelled { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Undone { .. } => None,
        }
    }

    /// The time at which the person was asked for it.
    pub fn question_asked_at(&self) -> Option<Timestamp> {
        if let Self::AwaitingInput { asked_at, .. } = self {
            return Some(*asked_at);
        }
        if let Self::Running {
            question: Some(held),
            ..
        } = self
        {
            return Some(held.asked_at);
        }
        None
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

    /// The attempts so far.
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

    /// The value, if it completed.
    pub fn value(&self) -> Option<&StoredValue> {
        if let Self::Completed { value, .. } = self {
            Some(value)
        } else {
            None
        }
    }
}
