//! The two ways the core says no: a refusal (you may not do this now) and corruption (the journal
//! cannot say this).

use crate::digest::Digest;
use crate::id::RunId;
use crate::policy::Permission;
use crate::principal::Principal;
use crate::status::{PlanStatus, RunStatus, StepStatus};
use crate::time::Timestamp;
use std::fmt;

/// A command that may not happen now. A value, not a failure: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has ended.
    #[error("the run has ended ({status})")]
    RunEnded {
        /// The status at that time.
        status: RunStatus,
    },
    /// The process that was asked let go of the run meanwhile.
    #[error("the run has ended (no longer executing)")]
    NotExecuting,
    /// A run that is not paused cannot be resumed.
    #[error("the run is not paused")]
    NotPaused,
    /// A run in this status cannot be paused.
    #[error("the run is {status}, so it cannot be paused")]
    CannotPause {
        /// The status at that time.
        status: RunStatus,
    },
    /// Calls are in flight.
    #[error("the run is being executed ({calls} {} in flight): cancel it instead", if *calls == 1 { "call is" } else { "calls are" })]
    InFlight {
        /// The number of calls.
        calls: usize,
    },
    /// The run has no such step.
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    /// No approval of the step is waited for.
    #[error("step `{step}` is {state}: it is not waiting for approval")]
    NothingToApprove {
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The outcome of the step is not in question.
    #[error("step `{step}` is {state}: its outcome is not unknown")]
    NothingToResolve {
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The step asks nothing.
    #[error("step `{step}` is {state}: it has no open question")]
    NothingToAnswer {
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The step asks something else by now.
    #[error("the question of step `{step}` has changed since")]
    OtherQuestion {
        /// The step or element.
        step: String,
    },
    /// The answer does not fit the question.
    #[error("the answer to step `{step}` does not fit: {}", .findings.join("; "))]
    BadInput {
        /// The step or element.
        step: String,
        /// The findings, one line each.
        findings: Vec<String>,
    },
    /// Only people answer.
    #[error("{0} may not answer: only people can answer")]
    MayNotAnswer(Principal),
    /// The step cannot start.
    #[error("step `{step}` is {state} and cannot start")]
    CannotStart {
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The step cannot be left out any more.
    #[error("step `{step}` is {state} and can no longer be skipped")]
    CannotSkip {
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The report is about an attempt that is over.
    #[error("step `{step}` is not in flight with attempt {attempt}")]
    NotInFlight {
        /// The step or element.
        step: String,
        /// The attempt, counted from 1.
        attempt: u32,
    },
    /// The decision was made about something else.
    #[error("the plan changed since it was shown: shown {shown}, now {current}")]
    Stale {
        /// The version or digest that was on the screen.
        shown: Shown,
        /// The version or digest that is current.
        current: Shown,
    },
    /// Only a run that has ended can be taken back.
    #[error("the run is {status}: only a run that has ended can be undone")]
    NotEnded {
        /// The status at that time.
        status: RunStatus,
    },
    /// No completed step says how it is taken back.
    #[error("nothing in this run can be undone: no completed step defines an undo")]
    NothingToUndo,
    /// The run was taken back already.
    #[error("the run was already undone, by {run}")]
    AlreadyUndone {
        /// The id of that run.
        run: RunId,
    },
    /// Agents and services may not approve.
    #[error("{0} may not approve: agents and services propose, people approve")]
    MayNotApprove(Principal),
    /// Others wait for the step, and the principal may not agree to them.
    #[error(
        "{by} may not skip step `{step}`: other steps depend on it, so skipping it needs the right to approve"
    )]
    MayNotSkip {
        /// The step or element.
        step: String,
        /// The principal who wanted to.
        by: Principal,
    },
    /// A rule holds the run for good.
    #[error("the run came with an adopted store, and its approval was given elsewhere")]
    HeldRun,
    /// Only people lift the pause of a person.
    #[error("{paused_by} paused the run, and {by} may not resume it: only a person can")]
    PausedByPerson {
        /// The person who paused it.
        paused_by: Principal,
        /// The principal who wanted to resume it.
        by: Principal,
    },
    /// The principal lacks the permission.
    #[error("{by} may not {action}")]
    MayNot {
        /// The principal who wanted to.
        by: Principal,
        /// The permission that is missing.
        action: Permission,
    },
    /// The author of the plan may not approve its calls.
    #[error("{0} proposed the plan, and another person has to approve its calls")]
    FourEyes(Principal),
    /// A client says that its person agreed, and that is not enough for this tool.
    #[error(
        "calls of `{0}` are approved at a terminal or signed in to the service, not through a client"
    )]
    InPerson(String),
    /// The person has not just used a passkey, and that is wanted for this tool.
    #[error("calls of `{0}` are approved with a passkey")]
    Passkey(String),
    /// The run is not at a point where a reflection decides anything.
    #[error("the run is {status} and has no unknown outcome")]
    NothingToReflectOn {
        /// The status at that time.
        status: RunStatus,
    },
    /// The approval was not given in time.
    #[error("the approval of step `{step}` was asked for until {at}, and has expired")]
    ApprovalExpired {
        /// The step or element.
        step: String,
        /// The time until which it was asked for.
        at: Timestamp,
    },
}

/// The version or digest that was on the screen when the principal decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The number of the version.
    Version(u32),
    /// The digest of what would run.
    Digest(Digest),
}

impl Shown {
    /// Checks that what was shown is what is current.
    pub fn check(self, version: u32, digest: Digest) -> Result<(), Refusal> {
        let current = match self {
            Self::Version(_) => Self::Version(version),
            Self::Digest(_) => Self::Digest(digest),
        };
        if self == current {
            Ok(())
        } else {
            Err(Refusal::Stale {
                shown: self,
                current,
            })
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "version {version}"),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

/// The journal says something that cannot have happened. The run is stopped; other runs go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// The journal does not begin with a start.
    #[error("the journal does not begin with the start of a run")]
    NoStart,
    /// An entry is missing.
    #[error("entry {found} follows entry {last}")]
    Gap {
        /// The number of the last entry.
        last: u64,
        /// The number of the entry that follows.
        found: u64,
    },
    /// The entry names a step that the plan does not have.
    #[error("entry {seq} names step `{step}`, which the plan does not have")]
    UnknownStep {
        /// The number of the entry.
        seq: u64,
        /// The step or element.
        step: String,
    },
    /// The event cannot happen to a step in this state.
    #[error("entry {seq} ({event}) cannot follow: step `{step}` is {state}")]
    StepTransition {
        /// The number of the entry.
        seq: u64,
        /// The name of the event.
        event: &'static str,
        /// The step or element.
        step: String,
        /// The status of the step at that time.
        state: StepStatus,
    },
    /// The event cannot happen to a run in this status.
    #[error("entry {seq} ({event}) cannot follow: the run is {status}")]
    RunTransition {
        /// The number of the entry.
        seq: u64,
        /// The name of the event.
        event: &'static str,
        /// The status at that time.
        status: RunStatus,
    },
    /// The event cannot happen to a plan in this status.
    #[error("entry {seq} ({event}) cannot follow: the plan is {status}")]
    PlanTransition {
        /// The number of the entry.
        seq: u64,
        /// The name of the event.
        event: &'static str,
        /// The status at that time.
        status: PlanStatus,
    },
    /// The fold does not reach the state that the last entry records.
    #[error("entry {seq} records the state {recorded}, but the journal folds to {folded}")]
    StateMismatch {
        /// The number of the entry.
        seq: u64,
        /// The digest in the entry.
        recorded: Digest,
        /// The digest of the fold.
        folded: Digest,
    },
}
