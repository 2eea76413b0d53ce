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
    #[error("the run has ended ({status})")]
    RunEnded { status: RunStatus },
    /// The process that was asked let go of the run meanwhile.
    #[error("the run has ended (not executing any more)")]
    NotExecuting,
    #[error("the run is not paused")]
    NotPaused,
    #[error("the run is {status}, so it cannot be paused")]
    CannotPause { status: RunStatus },
    #[error("the run is being executed ({calls} {} in flight): cancel it instead", if *calls == 1 { "call is" } else { "calls are" })]
    InFlight { calls: usize },
    #[error("there is no step `{0}`")]
    UnknownStep(String),
    #[error("step `{step}` is {state}: no approval is waited for")]
    NothingToApprove { step: String, state: StepStatus },
    #[error("step `{step}` is {state}: its outcome is not in question")]
    NothingToResolve { step: String, state: StepStatus },
    #[error("step `{step}` is {state}: it asks nothing")]
    NothingToAnswer { step: String, state: StepStatus },
    #[error("step `{step}` asks something else by now")]
    OtherQuestion { step: String },
    #[error("the answer to step `{step}` does not fit: {}", .findings.join("; "))]
    BadInput { step: String, findings: Vec<String> },
    #[error("{0} may not answer: people are asked, and people answer")]
    MayNotAnswer(Principal),
    #[error("step `{step}` is {state} and cannot start")]
    CannotStart { step: String, state: StepStatus },
    #[error("step `{step}` is {state} and cannot be left out any more")]
    CannotSkip { step: String, state: StepStatus },
    #[error("step `{step}` is not in flight with attempt {attempt}")]
    NotInFlight { step: String, attempt: u32 },
    #[error("what was shown is not what would run: shown was {shown}, current is {current}")]
    Stale { shown: Shown, current: Shown },
    #[error("the run is {status}: only a run that has ended can be taken back")]
    NotEnded { status: RunStatus },
    #[error("nothing of this run can be taken back: no completed step says how")]
    NothingToUndo,
    #[error("the run was taken back already, by {run}")]
    AlreadyUndone { run: RunId },
    #[error("{0} may not approve: agents and services propose, people approve")]
    MayNotApprove(Principal),
    #[error("{by} may not {action}")]
    MayNot { by: Principal, action: Permission },
    #[error("{0} proposed the plan, and another person has to approve its calls")]
    FourEyes(Principal),
    #[error("the run is {status}, and no outcome of it is in question")]
    NothingToReflectOn { status: RunStatus },
    #[error("the approval of step `{step}` was asked for until {at}, and has expired")]
    ApprovalExpired { step: String, at: Timestamp },
}

/// The version or digest that was on the screen when the principal decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Version(u32),
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
    #[error("the journal does not begin with the start of a run")]
    NoStart,
    #[error("entry {found} follows entry {last}")]
    Gap { last: u64, found: u64 },
    #[error("entry {seq} names step `{step}`, which the plan does not have")]
    UnknownStep { seq: u64, step: String },
    #[error("entry {seq} ({event}) cannot follow: step `{step}` is {state}")]
    StepTransition {
        seq: u64,
        event: &'static str,
        step: String,
        state: StepStatus,
    },
    #[error("entry {seq} ({event}) cannot follow: the run is {status}")]
    RunTransition {
        seq: u64,
        event: &'static str,
        status: RunStatus,
    },
    #[error("entry {seq} ({event}) cannot follow: the plan is {status}")]
    PlanTransition {
        seq: u64,
        event: &'static str,
        status: PlanStatus,
    },
    #[error("entry {seq} records the state {recorded}, but the journal folds to {folded}")]
    StateMismatch {
        seq: u64,
        recorded: Digest,
        folded: Digest,
    },
}
