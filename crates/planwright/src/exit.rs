//! How the program ends: one code per kind of ending, and the one place where errors get theirs.

use crate::terminal::printer::line;
use planwright_adapters::sqlite::OpenStoreError;
use planwright_adapters::vault::UnlockError;
use planwright_core::plan::Finding;
use planwright_core::policy::PolicyDenial;
use planwright_core::review::{CommentRefusal, Refusal as ReviewRefusal};
use planwright_core::run::{Refusal, Run, RunState};
use planwright_engine::port::{AcquireError, AppendError, ArtifactError, StoreError};
use planwright_engine::{
    CommandError, LoadError, ReviewError, RunError, StartRunError, UndoRunError, Unmanned,
    with_causes,
};
use std::error::Error;

/// Shown below `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the run ended failed, cancelled or stalled
  2    bad usage or an invalid plan
  3    refused: approval or policy
  4    waits for a person: approval, input, unknown outcome
  5    the store is damaged or unreachable
  6    the store is encrypted, and its passphrase is missing or wrong
  7    no model could be asked, or none gave an answer that can be used
  130  interrupted";

/// The endings other programs can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    RunFailed,
    Usage,
    Refused,
    Waits,
    Store,
    Locked,
    Model,
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::RunFailed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Waits => 4,
            Self::Store => 5,
            Self::Locked => 6,
            Self::Model => 7,
            Self::Interrupted => 130,
        }
    }

    /// How a command ends that executed this run.
    pub(crate) fn of_run(run: &Run) -> Self {
        match run.state() {
            RunState::Completed => Self::Done,
            RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Stalled { .. }
            | RunState::Cancelled
            | RunState::Stopping { .. }
            | RunState::Cancelling => Self::RunFailed,
            RunState::Running | RunState::Paused | RunState::Adjusted { .. } => Self::Waits,
        }
    }
}

/// Why a command did not do what was asked. Printed once, by `main`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What is wrong with the plan, when that is the reason.
    pub(crate) findings: Vec<Finding>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            findings: Vec::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// An error with everything it has to say about its causes.
    pub(crate) fn from_error(exit: Exit, error: &dyn Error) -> Self {
        Self::new(exit, with_causes(error))
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::from_error(Exit::Store, &error)
            .hint("planwright verify lists everything that is damaged")
    }
}

impl From<OpenStoreError> for Failure {
    fn from(error: OpenStoreError) -> Self {
        match &error {
            OpenStoreError::Encrypted => Self::from_error(Exit::Locked, &error).hint(
                "--passphrase-file PATH, --passphrase-fd N, or [store] passphrase_file in planwright.toml",
            ),
            OpenStoreError::Unlock(UnlockError::WrongPassphrase) => Self::from_error(Exit::Locked, &error)
                .hint("nothing was changed; without the passphrase nobody can read the store"),
            OpenStoreError::NotEncrypted => Self::from_error(Exit::Locked, &error)
                .hint("planwright store encrypt encrypts it; else leave the passphrase out"),
            OpenStoreError::Passphrase(_) => Self::from_error(Exit::Usage, &error),
            _ => {
                Self::from_error(Exit::Store, &error).hint("planwright doctor says what is wrong with the store")
            }
        }
    }
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        Self::from_error(Exit::Store, &error)
            .hint("planwright verify lists everything that is damaged")
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NoSuchPlan(_) | LoadError::NoSuchRun(_) => {
                Self::from_error(Exit::Usage, &error).hint("planwright list shows the plans there are")
            }
            LoadError::Store(error) => error.into(),
            LoadError::Damaged { .. } | LoadError::Plan(_) => Self::from_error(Exit::Store, &error)
                .hint("other plans are not affected; planwright verify lists everything that is damaged"),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Conflict { .. } | AppendError::Duplicate { .. } => {
                Self::refused("somebody else changed this plan at the same moment")
                    .hint("look at it again and repeat the command")
            }
            AppendError::Fenced { .. } => Self::from_error(Exit::Refused, &error)
                .hint("planwright log --follow shows what it does"),
            AppendError::Store(error) => error.into(),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Held { run, .. } => {
                Self::refused(format!("another process executes {run}"))
                    .hint("planwright log --follow shows what it does")
            }
            AcquireError::NoSuchRun(_) => Self::from_error(Exit::Usage, &error),
            AcquireError::Store(error) => error.into(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let exit = match refusal {
            Refusal::UnknownStep(_) | Refusal::BadInput { .. } => Exit::Usage,
            Refusal::RunEnded { .. }
            | Refusal::NotExecuting
            | Refusal::InFlight { .. }
            | Refusal::NotPaused
            | Refusal::CannotPause { .. }
            | Refusal::NothingToApprove { .. }
            | Refusal::NothingToResolve { .. }
            | Refusal::NothingToAnswer { .. }
            | Refusal::OtherQuestion { .. }
            | Refusal::MayNotAnswer(_)
            | Refusal::CannotStart { .. }
            | Refusal::CannotSkip { .. }
            | Refusal::NotInFlight { .. }
            | Refusal::Stale { .. }
            | Refusal::MayNotApprove(_)
            | Refusal::MayNot { .. }
            | Refusal::FourEyes(_)
            | Refusal::ApprovalExpired { .. }
            | Refusal::NotEnded { .. }
            | Refusal::NothingToUndo
            | Refusal::NothingToReflectOn { .. }
            | Refusal::AlreadyUndone { .. } => Exit::Refused,
        };
        Self::from_error(exit, &refusal)
    }
}

impl From<ReviewRefusal> for Failure {
    fn from(refusal: ReviewRefusal) -> Self {
        match refusal {
            ReviewRefusal::Decision(refusal) => refusal.into(),
            ReviewRefusal::Comment(refusal) => refusal.into(),
            ReviewRefusal::Archived => {
                Self::from_error(Exit::Refused, &refusal).hint("planwright unarchive ID takes it back")
            }
            ReviewRefusal::OpenThreads { .. } => Self::from_error(Exit::Refused, &refusal).hint(
                "planwright comments ID shows them, planwright comment ID --resolve COMMENT settles one",
            ),
            ReviewRefusal::ChangesRequested
            | ReviewRefusal::PlanExpired
            | ReviewRefusal::NotArchived
            | ReviewRefusal::NotOver(_) => Self::from_error(Exit::Refused, &refusal),
            ReviewRefusal::Exists(_)
            | ReviewRefusal::Deleted
            | ReviewRefusal::NothingToDecide(_)
            | ReviewRefusal::Rejected
            | ReviewRefusal::NotApproved
            | ReviewRefusal::Changed { .. }
            | ReviewRefusal::FourEyes(_)
            | ReviewRefusal::PolicyAsks(_)
            | ReviewRefusal::MayNotRevoke { .. }
            | ReviewRefusal::NothingToRevoke(_)
            | ReviewRefusal::Executing => Self::from_error(Exit::Refused, &refusal),
            ReviewRefusal::Conflict { based_on, .. } => Self::from_error(Exit::Refused, &refusal).hint(format!(
                "planwright diff ID {based_on} shows what changed since; edit the current version"
            )),
            ReviewRefusal::Draft => {
                Self::from_error(Exit::Refused, &refusal).hint("planwright propose ID puts it forward")
            }
            ReviewRefusal::NoSteps => Self::from_error(Exit::Refused, &refusal)
                .hint("planwright edit ID --add '{\"tool\": …}' adds one"),
            ReviewRefusal::Fallback => Self::from_error(Exit::Refused, &refusal).hint(
                "a person looks at it with planwright show ID and puts it forward with planwright propose ID",
            ),
            ReviewRefusal::NoSuchVersion(_) => {
                Self::from_error(Exit::Usage, &refusal).hint("planwright versions ID lists them")
            }
            ReviewRefusal::ReasonTooLong(_) => Self::from_error(Exit::Usage, &refusal),
            ReviewRefusal::NotADraft(_) | ReviewRefusal::TooManyVersions(_) => {
                Self::from_error(Exit::Refused, &refusal)
            }
            ReviewRefusal::Expired { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("look at the plan again and approve it again: an approval has to be used in time"),
            ReviewRefusal::Revoked { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("look at the plan and approve it again: planwright approve ID --digest DIGEST"),
            ReviewRefusal::NotEnough { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("somebody else has to approve it too: planwright approve ID --digest DIGEST"),
        }
    }
}

impl From<CommentRefusal> for Failure {
    fn from(refusal: CommentRefusal) -> Self {
        let exit = match refusal {
            CommentRefusal::Empty
            | CommentRefusal::TooLong { .. }
            | CommentRefusal::NoSuchComment(_)
            | CommentRefusal::NoSuchStep(_)
            | CommentRefusal::ReplyWithStep => Exit::Usage,
            CommentRefusal::TooMany
            | CommentRefusal::Already(_)
            | CommentRefusal::MayNotResolve(_)
            | CommentRefusal::Duplicate(_) => Exit::Refused,
        };
        Self::from_error(exit, &refusal)
    }
}

impl From<ReviewError> for Failure {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Load(error) => error.into(),
            ReviewError::Refused(refusal) => refusal.into(),
            ReviewError::Invalid(findings) => {
                Self::usage("the plan is not valid").findings(findings)
            }
            ReviewError::Edit(error) => {
                let (failure, hint) = (Self::from_error(Exit::Usage, &error), error.hint());
                Self { hint, ..failure }
            }
            ReviewError::OtherPlan { .. } => Self::from_error(Exit::Usage, &error)
                .hint("planwright import stores it as a plan of its own"),
            ReviewError::MissingTools(_) => missing_tools(&error),
            ReviewError::Denied(denied) => denied.into(),
            ReviewError::BadChoice(_) => Self::from_error(Exit::Usage, &error),
            ReviewError::Artifact(error) => error.into(),
            ReviewError::Append(error) => error.into(),
        }
    }
}

impl From<StartRunError> for Failure {
    fn from(error: StartRunError) -> Self {
        match error {
            StartRunError::Load(error) => error.into(),
            StartRunError::Invalid(findings) => {
                Self::usage("the plan is not valid").findings(findings)
            }
            StartRunError::MissingTools(_) => missing_tools(&error),
            StartRunError::Unsupported(_) => Self::from_error(Exit::Refused, &error)
                .hint("such a plan can be imported, validated and exported, but not run yet"),
            StartRunError::Unmanned(Unmanned::NoExecutor { ref executor, .. }) => {
                let name = line(executor);
                let hint = format!(
                    "planwright executors lists those there are; one that the workspace's file describes is started once \
                     you trust it: planwright executors trust {name}, or --trust-project-servers for one command"
                );
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::Unmanned(Unmanned::NoModel { .. } | Unmanned::Model { .. }) => {
                Self::from_error(Exit::Refused, &error)
                    .hint("see `planwright models` and docs/agents.md")
            }
            StartRunError::Refused(refusal) => refusal.into(),
            StartRunError::Edited { .. } => Self::from_error(Exit::Refused, &error)
                .hint("cancel the run and start the new version, or fork it to keep its results"),
            StartRunError::Changed { .. } => Self::from_error(Exit::Refused, &error)
                .hint("look at the plan again and approve what it does now"),
            StartRunError::Denied(denied) => denied.into(),
            StartRunError::BadChoice(_) => Self::from_error(Exit::Usage, &error),
            StartRunError::Artifact(error) => error.into(),
            StartRunError::ToolsChanged { .. } => Self::from_error(Exit::Refused, &error)
                .hint("cancel the run, look at the plan again and approve what it does now"),
            StartRunError::NothingToResume(ref id) => {
                let hint = format!("planwright run {id} starts one");
                Self::from_error(Exit::Usage, &error).hint(hint)
            }
            StartRunError::AlreadyExecuting { ref plan, .. } => {
                let hint = format!(
                    "planwright resume {plan} goes on with it, planwright cancel {plan} ends it"
                );
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::Ended { .. } => Self::from_error(Exit::Refused, &error).hint(
                "planwright run starts a new run, planwright fork one that reuses its results",
            ),
            StartRunError::BeingUndone { ref run, .. } => {
                let hint = format!("planwright undo {run} goes on with that");
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::ChildRun { ref parent, .. } => {
                let hint = format!("planwright resume {}", parent.run);
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::UnknownStep(_) => Self::from_error(Exit::Usage, &error),
            StartRunError::Stopping => Self::from_error(Exit::Refused, &error),
            StartRunError::Acquire(error) => error.into(),
            StartRunError::Append(error) => error.into(),
        }
    }
}

impl From<PolicyDenial> for Failure {
    fn from(denied: PolicyDenial) -> Self {
        Self::from_error(Exit::Refused, &denied)
            .hint("planwright policy explain says which rule decided about each step, and why")
    }
}

fn missing_tools(error: &dyn Error) -> Failure {
    Failure::from_error(Exit::Usage, error)
        .hint("planwright tools lists what there is, and how to enable the rest")
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Load(error) => error.into(),
            CommandError::Refused(refusal) => refusal.into(),
            CommandError::RefusedElsewhere(reason) => Self::refused(reason),
            CommandError::NoAnswer(_) => Self::from_error(Exit::Store, &error),
            CommandError::Acquire(error) => error.into(),
            CommandError::Append(error) => error.into(),
            CommandError::Artifact(error) => error.into(),
        }
    }
}

impl From<UndoRunError> for Failure {
    fn from(error: UndoRunError) -> Self {
        match error {
            UndoRunError::Load(error) => error.into(),
            UndoRunError::Refused(refusal) => refusal.into(),
            UndoRunError::Start(error) => error.into(),
            UndoRunError::NotApproved | UndoRunError::Plan(_) => {
                Self::from_error(Exit::Refused, &error)
            }
            UndoRunError::Value(_) => Self::from_error(Exit::Store, &error),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Append(error) => error.into(),
            RunError::Corrupt(_) => Self::from_error(Exit::Store, &error),
        }
    }
}
