//! Kinds, codes and next steps of the errors of runs.

use super::command::CommandError;
use super::start::StartRunError;
use super::undo::UndoRunError;
use super::write_off::WriteOffError;
use crate::dispatch::RunError;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::plan::Finding;

impl ClassifiedError for WriteOffError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotDamaged(_) => ErrorKind::Conflict.with_code("not_damaged"),
            Self::NoSuchRun(_) => ErrorKind::NotFound.with_code("unknown_run"),
            Self::Executed(_) => ErrorKind::Conflict.with_code("already_executing"),
            Self::Review(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotDamaged(run) => Some(Hint::EndRun(run.clone())),
            Self::NoSuchRun(_) => Some(Hint::ListPlans),
            Self::Executed(_) => Some(Hint::FollowRun),
            Self::Review(error) => error.hint(),
        }
    }
}

impl ClassifiedError for StartRunError {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Conflict, Invalid, NotFound, Unavailable};
        match self {
            Self::Load(error) => error.class(),
            Self::Invalid(_) => Invalid.with_code("plan_invalid"),
            Self::MissingTools(_) => Invalid.with_code("missing_tools"),
            Self::Unsupported(_) => Invalid.with_code("plan_unsupported"),
            Self::MissingExecutor(error) => error.class(),
            Self::Refused(refusal) => refusal.class(),
            Self::Edited { .. } => Conflict.with_code("plan_edited"),
            Self::ToolsChanged { .. } => Conflict.with_code("tools_changed"),
            Self::Changed { .. } => Conflict.with_code("plan_changed"),
            Self::Denied(denial) => denial.class(),
            Self::BadChoice(_) => Invalid.with_code("bad_late_choice"),
            Self::Artifact(error) => error.class(),
            Self::NothingToResume(_) => Conflict.with_code("nothing_to_resume"),
            Self::AlreadyExecuting { .. } => Conflict.with_code("already_executing"),
            Self::Ended { .. } => Conflict.with_code("run_ended"),
            Self::BeingUndone { .. } => Conflict.with_code("being_undone"),
            Self::ChildRun { .. } => Conflict.with_code("child_run"),
            Self::UnknownStep(_) => NotFound.with_code("unknown_step"),
            Self::Stopping => Unavailable.with_code("stopping"),
            Self::Acquire(error) => error.class(),
            Self::Append(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Load(error) => error.hint(),
            Self::MissingTools(_) => Some(Hint::ListTools),
            Self::Unsupported(_) => Some(Hint::KeepWithoutRunning),
            Self::MissingExecutor(error) => error.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::Edited { .. } => Some(Hint::Text(
                "cancel the run and start the new version, or fork it to keep its results"
                    .to_owned(),
            )),
            Self::ToolsChanged { .. } => Some(Hint::CancelAndApproveCurrent),
            Self::Changed { .. } => Some(Hint::ApproveCurrent),
            Self::Denied(denial) => denial.hint(),
            Self::Artifact(error) => error.hint(),
            Self::NothingToResume(plan) => Some(Hint::StartRun(plan.clone())),
            Self::AlreadyExecuting { plan, .. } => Some(Hint::ResumeOrCancel(plan.clone())),
            Self::Ended { .. } => Some(Hint::StartOrFork),
            Self::BeingUndone { run, .. } => Some(Hint::ContinueUndo(run.clone())),
            Self::ChildRun { parent, .. } => Some(Hint::ResumeRun(parent.run.clone())),
            Self::Acquire(error) => error.hint(),
            Self::Append(error) => error.hint(),
            Self::Invalid(_) | Self::BadChoice(_) | Self::UnknownStep(_) | Self::Stopping => None,
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Invalid(findings) => findings,
            _ => &[],
        }
    }
}

impl ClassifiedError for CommandError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Load(error) => error.class(),
            Self::Refused(refusal) => refusal.class(),
            // The other process sends words and no code, so its refusal keeps the kind that most
            // refusals of runs have.
            Self::RefusedElsewhere(_) => ErrorKind::Conflict.with_code("refused_elsewhere"),
            Self::NoAnswer(_) => ErrorKind::Unavailable.with_code("no_answer"),
            Self::Acquire(error) => error.class(),
            Self::Append(error) => error.class(),
            Self::Artifact(error) => error.class(),
            Self::StillRunning(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Load(error) => error.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::RefusedElsewhere(_) | Self::NoAnswer(_) => None,
            Self::Acquire(error) => error.hint(),
            Self::Append(error) => error.hint(),
            Self::Artifact(error) => error.hint(),
            Self::StillRunning(error) => error.hint(),
        }
    }
}

impl ClassifiedError for UndoRunError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Load(error) => error.class(),
            Self::Refused(refusal) => refusal.class(),
            Self::NotApproved => ErrorKind::Waiting.with_code("undo_not_approved"),
            Self::Plan(error) => error.class(),
            Self::Value(_) => ErrorKind::Damaged.with_code("value_unreadable"),
            Self::Start(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Load(error) => error.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::NotApproved => None,
            Self::Plan(error) => error.hint(),
            Self::Value(_) => Some(Hint::ListDamage),
            Self::Start(error) => error.hint(),
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Start(error) => error.findings(),
            _ => &[],
        }
    }
}

impl ClassifiedError for RunError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Append(error) => error.class(),
            Self::Corrupt(corrupt) => corrupt.class(),
            Self::StillRunning(error) => error.class(),
            Self::NotOpened => ErrorKind::Unavailable.with_code("run_not_opened"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Append(error) => error.hint(),
            Self::Corrupt(corrupt) => corrupt.hint(),
            Self::StillRunning(error) => error.hint(),
            Self::NotOpened => None,
        }
    }
}
