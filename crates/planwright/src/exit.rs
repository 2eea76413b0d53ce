//! Exit codes, and the one place where errors get theirs.

use crate::terminal::printer::line;
use planwright_adapters::sqlite::OpenStoreError;
use planwright_adapters::vault::UnlockError;
use planwright_core::plan::Finding;
use planwright_core::policy::PolicyDenial;
use planwright_core::review::{CommentRefusal, Refusal as ReviewRefusal};
use planwright_core::run::{Refusal, Run, RunState};
use planwright_engine::port::{AcquireError, AppendError, ArtifactError, StoreError};
use planwright_engine::{
    CommandError, LoadError, MissingExecutor, ReviewError, RunError, StartRunError, UndoRunError,
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

/// The exit codes that other programs rely on.
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

    /// Returns the exit of a command that executed this run.
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

/// A failed command: exit code, message, hint and findings. Printed once, by `main`.
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

    /// Formats an error together with its causes.
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
                .hint("nothing was changed; the store cannot be read without its passphrase"),
            OpenStoreError::NotEncrypted => Self::from_error(Exit::Locked, &error)
                .hint("planwright store encrypt encrypts it; else leave the passphrase out"),
            OpenStoreError::Passphrase(_) => Self::from_error(Exit::Usage, &error),
            _ => {
                Self::from_error(Exit::Store, &error).hint("planwright doctor checks the store")
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
                Self::from_error(Exit::Usage, &error).hint("planwright list shows all plans")
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
                Self::refused("another command changed this plan at the same time")
                    .hint("check the plan again, then repeat the command")
            }
            AppendError::Fenced { .. } => Self::from_error(Exit::Refused, &error)
                .hint("planwright log ID --follow shows its progress"),
            AppendError::Store(error) => error.into(),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Held { run, .. } => {
                Self::refused(format!("another process is executing {run}"))
                    .hint("planwright log ID --follow shows its progress")
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
                Self::from_error(Exit::Refused, &refusal).hint("planwright unarchive ID restores it")
            }
            ReviewRefusal::OpenThreads { .. } => Self::from_error(Exit::Refused, &refusal).hint(
                "planwright comments ID lists them; planwright comment ID --resolve COMMENT resolves one",
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
                "planwright diff ID {based_on} shows what changed since; repeat the edit on the current version"
            )),
            ReviewRefusal::Draft => {
                Self::from_error(Exit::Refused, &refusal).hint("planwright propose ID submits it for review")
            }
            ReviewRefusal::NoSteps => Self::from_error(Exit::Refused, &refusal)
                .hint("planwright edit ID --add '{\"tool\": …}' adds one"),
            ReviewRefusal::Fallback => Self::from_error(Exit::Refused, &refusal).hint(
                "review it with planwright show ID, then submit it with planwright propose ID",
            ),
            ReviewRefusal::NoSuchVersion(_) => {
                Self::from_error(Exit::Usage, &refusal).hint("planwright versions ID lists them")
            }
            ReviewRefusal::ReasonTooLong(_) => Self::from_error(Exit::Usage, &refusal),
            ReviewRefusal::NotADraft(_) | ReviewRefusal::TooManyVersions(_) => {
                Self::from_error(Exit::Refused, &refusal)
            }
            ReviewRefusal::Expired { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("review the plan and approve it again: the approval was not used in time"),
            ReviewRefusal::Revoked { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("review the plan and approve it again: planwright approve ID --digest DIGEST"),
            ReviewRefusal::NotEnough { .. } => Self::from_error(Exit::Refused, &refusal)
                .hint("another approver is needed: planwright approve ID --digest DIGEST"),
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
                let failure = Self::from_error(Exit::Usage, &error);
                let hint = error.hint();
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
            StartRunError::MissingExecutor(MissingExecutor::NoExecutor { ref executor, .. }) => {
                let name = line(executor);
                let hint = format!(
                    "planwright executors lists the executors; planwright executors trust {name} trusts one that this workspace \
                     describes (--trust-project-servers does so for one command)"
                );
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::MissingExecutor(MissingExecutor::NoModel { .. } | MissingExecutor::Model { .. }) => {
                Self::from_error(Exit::Refused, &error)
                    .hint("see `planwright models` and docs/agents.md")
            }
            StartRunError::Refused(refusal) => refusal.into(),
            StartRunError::Edited { .. } => Self::from_error(Exit::Refused, &error)
                .hint("cancel the run and start the new version, or fork it to keep its results"),
            StartRunError::Changed { .. } => Self::from_error(Exit::Refused, &error)
                .hint("review the plan and approve what it does now"),
            StartRunError::Denied(denied) => denied.into(),
            StartRunError::BadChoice(_) => Self::from_error(Exit::Usage, &error),
            StartRunError::Artifact(error) => error.into(),
            StartRunError::ToolsChanged { .. } => Self::from_error(Exit::Refused, &error)
                .hint("cancel the run, review the plan and approve what it does now"),
            StartRunError::NothingToResume(ref id) => {
                let hint = format!("planwright run {id} starts one");
                Self::from_error(Exit::Usage, &error).hint(hint)
            }
            StartRunError::AlreadyExecuting { ref plan, .. } => {
                let hint = format!(
                    "planwright resume {plan} continues it; planwright cancel {plan} stops it"
                );
                Self::from_error(Exit::Refused, &error).hint(hint)
            }
            StartRunError::Ended { .. } => Self::from_error(Exit::Refused, &error).hint(
                "planwright run ID starts a new run; planwright fork ID --from STEP reuses its results",
            ),
            StartRunError::BeingUndone { ref run, .. } => {
                let hint = format!("planwright undo {run} continues it");
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
            .hint("planwright policy explain ID shows which rule decided about each step")
    }
}

fn missing_tools(error: &dyn Error) -> Failure {
    Failure::from_error(Exit::Usage, error)
        .hint("planwright tools lists the tools and how to enable the others")
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

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::digest::Digest;
    use planwright_core::id::{PlanId, RunId};
    use planwright_core::journal::{Head, StreamName};
    use planwright_core::principal::Principal;
    use planwright_core::run::Shown;
    use planwright_core::time::Timestamp;

    fn plan() -> PlanId {
        "p".parse().unwrap()
    }

    fn run() -> RunId {
        "run_1".parse().unwrap()
    }

    fn failed_store() -> StoreError {
        StoreError::Failed("disk full".to_owned())
    }

    /// One error per kind and face, with the exit code that scripts rely on.
    #[test]
    fn errors_keep_their_exit_codes() {
        let person = Principal::person("ann");
        let head = Head {
            seq: 0,
            hash: Digest::ZERO,
        };
        let conflict = || AppendError::Conflict {
            stream: StreamName::Plan(plan()),
            expected: head,
            found: head,
        };
        let at = Timestamp::from_millis(0);
        let damaged = || LoadError::Damaged {
            stream: StreamName::Plan(plan()),
            reason: "gap".to_owned(),
        };
        let step = || "a".to_owned();
        let stale = || Refusal::Stale {
            shown: Shown::Version(1),
            current: Shown::Version(2),
        };
        let cases: Vec<(Failure, u8)> = vec![
            (failed_store().into(), 5),
            (LoadError::NoSuchPlan(plan()).into(), 2),
            (LoadError::NoSuchRun(run()).into(), 2),
            (LoadError::Store(failed_store()).into(), 5),
            (LoadError::Plan(Vec::new()).into(), 5),
            (damaged().into(), 5),
            (conflict().into(), 3),
            (
                AppendError::Fenced {
                    run: run(),
                    ours: 1,
                    found: 2,
                }
                .into(),
                3,
            ),
            (AppendError::Store(failed_store()).into(), 5),
            (AcquireError::NoSuchRun(run()).into(), 2),
            (AcquireError::Store(failed_store()).into(), 5),
            (Refusal::UnknownStep(step()).into(), 2),
            (
                Refusal::BadInput {
                    step: step(),
                    findings: Vec::new(),
                }
                .into(),
                2,
            ),
            (Refusal::NotPaused.into(), 3),
            (stale().into(), 3),
            (Refusal::MayNotApprove(person.clone()).into(), 3),
            (Refusal::FourEyes(person.clone()).into(), 3),
            (Refusal::NothingToUndo.into(), 3),
            (ReviewRefusal::Deleted.into(), 3),
            (ReviewRefusal::NotApproved.into(), 3),
            (ReviewRefusal::Expired { at }.into(), 3),
            (ReviewRefusal::Draft.into(), 3),
            (ReviewRefusal::Archived.into(), 3),
            (ReviewRefusal::Executing.into(), 3),
            (
                ReviewRefusal::Conflict {
                    based_on: 1,
                    current: 2,
                }
                .into(),
                3,
            ),
            (ReviewRefusal::NoSuchVersion(9).into(), 2),
            (ReviewRefusal::ReasonTooLong(9).into(), 2),
            (ReviewRefusal::TooManyVersions(9).into(), 3),
            (ReviewRefusal::Decision(stale()).into(), 3),
            (
                ReviewRefusal::Decision(Refusal::UnknownStep(step())).into(),
                2,
            ),
            (CommentRefusal::Empty.into(), 2),
            (CommentRefusal::NoSuchComment(step()).into(), 2),
            (CommentRefusal::TooMany.into(), 3),
            (CommentRefusal::MayNotResolve(person).into(), 3),
            (ReviewError::Invalid(Vec::new()).into(), 2),
            (ReviewError::MissingTools(vec![step()]).into(), 2),
            (ReviewError::BadChoice(step()).into(), 2),
            (
                ReviewError::OtherPlan {
                    plan: plan(),
                    found: plan(),
                }
                .into(),
                2,
            ),
            (ReviewError::Append(conflict()).into(), 3),
            (StartRunError::Invalid(Vec::new()).into(), 2),
            (StartRunError::MissingTools(vec![step()]).into(), 2),
            (StartRunError::Unsupported(vec![step()]).into(), 3),
            (StartRunError::Edited { run: 1, current: 2 }.into(), 3),
            (StartRunError::NothingToResume(plan()).into(), 2),
            (
                StartRunError::AlreadyExecuting {
                    plan: plan(),
                    run: run(),
                }
                .into(),
                3,
            ),
            (
                StartRunError::BeingUndone {
                    plan: plan(),
                    run: run(),
                }
                .into(),
                3,
            ),
            (StartRunError::UnknownStep(step()).into(), 2),
            (StartRunError::BadChoice(step()).into(), 2),
            (StartRunError::Stopping.into(), 3),
            (StartRunError::Load(damaged()).into(), 5),
            (CommandError::RefusedElsewhere(step()).into(), 3),
            (CommandError::NoAnswer(run()).into(), 5),
            (CommandError::Load(LoadError::NoSuchRun(run())).into(), 2),
            (UndoRunError::NotApproved.into(), 3),
            (RunError::Append(conflict()).into(), 3),
            (OpenStoreError::Encrypted.into(), 6),
            (OpenStoreError::NotEncrypted.into(), 6),
            (
                OpenStoreError::Unlock(UnlockError::WrongPassphrase).into(),
                6,
            ),
        ];
        for (failure, code) in cases {
            assert_eq!(failure.exit.code(), code, "{failure:?}");
        }
    }
}
