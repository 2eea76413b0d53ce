//! Exit codes, and the one place where errors get theirs.

use crate::terminal::next_step::{format_next_step, name_plan};
use planwright_adapters::sqlite::OpenStoreError;
use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind};
use planwright_core::plan::Finding;
use planwright_core::policy::PolicyDenial;
use planwright_core::review::{CommentRefusal, ReviewRefusal};
use planwright_core::run::{Refusal, Run, RunState};
use planwright_core::status::RunStatus;
use planwright_engine::access::GrantError;
use planwright_engine::passes::SignInError;
use planwright_engine::port::{AcquireError, AppendError, ArtifactError, RetainError, StoreError};
use planwright_engine::{
    CommandError, LoadError, ReviewError, RunError, StartRunError, UndoRunError, WriteOffError,
    with_causes,
};
use serde_json::{Value, json};
use std::error::Error;

/// Shown below `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the run ended failed, cancelled or stalled
  2    bad usage or an invalid plan
  3    refused: approval or policy
  4    waits for a person: approval, input, unknown outcome
  5    the store is damaged, or the store or the broker is unreachable
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

    /// Returns a code and a kind for a failure of the program itself.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("done", "done"),
            Self::RunFailed => ("failed", "failed"),
            Self::Usage => ("usage", "invalid"),
            Self::Refused => ("refused", "forbidden"),
            Self::Waits => ("waits", "waiting"),
            Self::Store => ("store", "unavailable"),
            Self::Locked => ("locked", "locked"),
            Self::Model => ("model", "unavailable"),
            Self::Interrupted => ("interrupted", "interrupted"),
        }
    }

    /// Returns the exit of a command that executed this run.
    pub(crate) fn of_run(run: &Run) -> Self {
        match run.state() {
            RunState::Completed if run.status() == RunStatus::CompletedWithFailures => {
                Self::RunFailed
            }
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
    /// The stable word for it, and its kind, where the engine has one.
    pub(crate) class: Option<ErrorClass>,
    /// The digest that an approval would name, when one is missing.
    pub(crate) digest: Option<Box<Digest>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            findings: Vec::new(),
            class: None,
            digest: None,
        }
    }

    /// The stable word for it, where the engine has one.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.class.map(|class| class.code)
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

    /// Names the digest that an approval has to cover.
    #[must_use]
    pub(crate) fn digest(mut self, digest: Digest) -> Self {
        self.digest = Some(Box::new(digest));
        self
    }

    /// Names the plan that the command was about in the hint.
    #[must_use]
    pub(crate) fn about_plan(mut self, plan: Option<&str>) -> Self {
        if let (Some(hint), Some(plan)) = (&mut self.hint, plan) {
            *hint = name_plan(hint, plan);
        }
        self
    }

    /// The failure as the one document of `--json`.
    pub(crate) fn document(&self) -> Value {
        let (code, kind) = match self.class {
            Some(class) => (class.code, class.kind.as_str()),
            None => self.exit.words(),
        };
        let mut error = json!({ "code": code, "kind": kind, "message": self.message });
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        if !self.findings.is_empty() {
            error["findings"] = json!(self.findings);
        }
        if let Some(digest) = &self.digest {
            error["digest"] = json!(digest);
        }
        json!({ "error": error })
    }

    #[must_use]
    pub(crate) fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings;
        self
    }
}

/// Errors whose exit code is not the one of their kind.
const EXCEPTIONS: &[(&str, Exit)] = &[
    // The journal of a deleted plan is there and refuses commands; the id is no typing error.
    ("plan_deleted", Exit::Refused),
    // The plan is valid; this program or its configuration cannot execute it.
    ("plan_unsupported", Exit::Refused),
    ("step_without_model", Exit::Refused),
    ("step_model_unusable", Exit::Refused),
    ("step_without_executor", Exit::Refused),
    // The command names a plan that has nothing to do it with.
    ("nothing_to_resume", Exit::Usage),
    ("no_criteria", Exit::Usage),
    // The process that stops is this one: its store works.
    ("stopping", Exit::Refused),
    ("planning_cancelled", Exit::Interrupted),
    // A grant is refused as a whole, also for the name in it.
    ("bad_principal_name", Exit::Refused),
    ("too_many_sessions", Exit::Store),
    ("too_many_tokens", Exit::Store),
    // Models have an exit code of their own, for every reason a model gives no answer.
    ("model_not_configured", Exit::Model),
    ("model_unknown", Exit::Model),
    ("model_without_key", Exit::Model),
    ("model_refused", Exit::Model),
    ("model_unavailable", Exit::Model),
    ("model_timed_out", Exit::Model),
    ("model_unreadable", Exit::Model),
    ("model_cancelled", Exit::Model),
    ("no_valid_plan", Exit::Model),
];

impl Exit {
    /// Returns the exit of a command that ended with an error of this class.
    pub(crate) fn of_class(class: ErrorClass) -> Self {
        EXCEPTIONS
            .iter()
            .find(|(code, _)| *code == class.code)
            .map_or_else(|| Self::of_kind(class.kind), |(_, exit)| *exit)
    }

    fn of_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound | ErrorKind::Invalid => Self::Usage,
            // `Waits` is the exit of a run that waits. A command that a person has to make possible
            // first was refused.
            ErrorKind::Forbidden | ErrorKind::Conflict | ErrorKind::Waiting => Self::Refused,
            ErrorKind::Unavailable | ErrorKind::Damaged => Self::Store,
            ErrorKind::Locked => Self::Locked,
        }
    }
}

impl Failure {
    /// Makes the failure that an error of the engine is: its exit code by kind and code, its next
    /// step as a command.
    pub(crate) fn from_classified(error: &dyn ClassifiedError) -> Self {
        let message = match error.code() {
            // The error itself speaks of heads and keys, for the log.
            "concurrent_change" => "another command changed this plan at the same time".to_owned(),
            _ => with_causes(error),
        };
        Self {
            exit: Exit::of_class(error.class()),
            message,
            hint: error.hint().as_ref().and_then(format_next_step),
            findings: error.findings().to_vec(),
            class: Some(error.class()),
            digest: None,
        }
    }
}

/// Lets `?` turn these errors into failures.
macro_rules! failures_from {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::from_classified(&error)
            }
        }
    )*};
}

failures_from!(
    StoreError,
    OpenStoreError,
    ArtifactError,
    LoadError,
    AppendError,
    AcquireError,
    Refusal,
    ReviewRefusal,
    CommentRefusal,
    ReviewError,
    StartRunError,
    WriteOffError,
    PolicyDenial,
    CommandError,
    UndoRunError,
    RunError,
    GrantError,
    SignInError,
    RetainError,
);

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_adapters::vault::UnlockError;
    use planwright_core::id::{PlanId, RunId};
    use planwright_core::journal::{Head, StreamName};
    use planwright_core::policy::GrantRefusal;
    use planwright_core::principal::Principal;
    use planwright_core::run::Shown;
    use planwright_core::time::Timestamp;
    use planwright_engine::port::{ModelError, TokenId};
    use planwright_engine::{CreateError, MissingExecutor};

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
        let no_executor = MissingExecutor::NoExecutor {
            step: step(),
            executor: step(),
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
                ReviewError::StoredTooMuch {
                    by: Principal::person("ann"),
                    limit: 1 << 20,
                }
                .into(),
                3,
            ),
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
            (StartRunError::MissingExecutor(no_executor).into(), 3),
            (Failure::from(&ModelError::Cancelled), 7),
            (GrantError::Refused(GrantRefusal::NotAPrincipal).into(), 3),
            (GrantError::Refused(GrantRefusal::Name(step())).into(), 3),
            (GrantError::NoSuchToken(TokenId(step())).into(), 2),
            (GrantError::Invalid(TokenId(step())).into(), 3),
            (GrantError::TooMany.into(), 5),
            (GrantError::Random(step()).into(), 5),
            (SignInError::Lifetime.into(), 2),
            (SignInError::TooMany(1).into(), 5),
            (SignInError::Random(step()).into(), 5),
            (CreateError::NoGoal.into(), 2),
            (CreateError::NoSuchStep(step()).into(), 2),
            (CreateError::NothingInScope(plan()).into(), 3),
            (CreateError::OutcomeUnknown(step()).into(), 3),
            (CreateError::Cancelled(Box::default()).into(), 130),
            (CreateError::Failed(Box::default()).into(), 7),
            (OpenStoreError::ReadOnly.into(), 5),
            (OpenStoreError::Unlock(UnlockError::Memory).into(), 5),
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

    /// The table of codes names the exit code of each.
    #[test]
    fn the_documented_exit_codes_are_those_of_the_table() {
        let document = include_str!("../../../docs/errors/codes.md");
        let mut codes = Vec::new();
        for row in document.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let code = cells[1].trim_matches('`').to_owned();
            let kind = ErrorKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == cells[2])
                .unwrap();
            // The codes that only the service answers with have no exit code.
            let of_the_program = !cells[3].is_empty();
            if of_the_program {
                let class = kind.with_code(code.clone().leak());
                assert_eq!(Exit::of_class(class).code().to_string(), cells[3], "{row}");
            }
            codes.push(code);
        }
        for (code, _) in EXCEPTIONS {
            assert!(codes.iter().any(|known| known == code), "{code}");
        }
    }
}
