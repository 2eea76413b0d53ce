//! Kinds and codes of the refusals of runs.

use super::{Corrupt, PlanUndoError, Refusal};
use crate::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};

impl ClassifiedError for Refusal {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Conflict, Forbidden, Invalid, NotFound};
        match self {
            Self::RunEnded { .. } => Conflict.with_code("run_ended"),
            Self::NotExecuting => Conflict.with_code("not_executing"),
            Self::NotPaused => Conflict.with_code("not_paused"),
            Self::CannotPause { .. } => Conflict.with_code("cannot_pause"),
            Self::InFlight { .. } => Conflict.with_code("calls_in_flight"),
            Self::UnknownStep(_) => NotFound.with_code("unknown_step"),
            Self::NothingToApprove { .. } => Conflict.with_code("nothing_to_approve"),
            Self::NothingToResolve { .. } => Conflict.with_code("nothing_to_resolve"),
            Self::NothingToAnswer { .. } => Conflict.with_code("nothing_to_answer"),
            Self::OtherQuestion { .. } => Conflict.with_code("other_question"),
            Self::BadInput { .. } => Invalid.with_code("bad_input"),
            Self::MayNotAnswer(_) => Forbidden.with_code("may_not_answer"),
            Self::CannotStart { .. } => Conflict.with_code("cannot_start_step"),
            Self::CannotSkip { .. } => Conflict.with_code("cannot_skip_step"),
            Self::NotInFlight { .. } => Conflict.with_code("step_not_in_flight"),
            Self::Stale { .. } => Conflict.with_code("stale"),
            Self::NotEnded { .. } => Conflict.with_code("run_not_ended"),
            Self::NothingToUndo => Conflict.with_code("nothing_to_undo"),
            Self::AlreadyUndone { .. } => Conflict.with_code("already_undone"),
            Self::MayNotApprove(_) => Forbidden.with_code("may_not_approve"),
            Self::MayNotSkip { .. } => Forbidden.with_code("may_not_skip"),
            Self::HeldRun => Forbidden.with_code("run_from_elsewhere"),
            Self::PausedByPerson { .. } => Forbidden.with_code("paused_by_person"),
            Self::MayNot { .. } => Forbidden.with_code("not_permitted"),
            Self::FourEyes(_) => Forbidden.with_code("four_eyes"),
            Self::InPerson(_) => Forbidden.with_code("in_person"),
            Self::Passkey(_) => Forbidden.with_code("passkey_needed"),
            Self::NothingToReflectOn { .. } => Conflict.with_code("nothing_to_reflect_on"),
            Self::ApprovalExpired { .. } => Conflict.with_code("step_approval_expired"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::MayNotApprove(_) => Some(Hint::AskPerson),
            Self::Passkey(_) => Some(Hint::UsePasskey),
            Self::MayNotSkip { .. } => Some(Hint::AskApproverToSkip),
            Self::HeldRun => Some(Hint::EndHeldRun),
            Self::PausedByPerson { .. } => Some(Hint::AskPersonToResume),
            Self::RunEnded { .. }
            | Self::NotExecuting
            | Self::NotPaused
            | Self::CannotPause { .. }
            | Self::InFlight { .. }
            | Self::UnknownStep(_)
            | Self::NothingToApprove { .. }
            | Self::NothingToResolve { .. }
            | Self::NothingToAnswer { .. }
            | Self::OtherQuestion { .. }
            | Self::BadInput { .. }
            | Self::MayNotAnswer(_)
            | Self::CannotStart { .. }
            | Self::CannotSkip { .. }
            | Self::NotInFlight { .. }
            | Self::Stale { .. }
            | Self::NotEnded { .. }
            | Self::NothingToUndo
            | Self::AlreadyUndone { .. }
            | Self::MayNot { .. }
            | Self::FourEyes(_)
            | Self::InPerson(_)
            | Self::NothingToReflectOn { .. }
            | Self::ApprovalExpired { .. } => None,
        }
    }
}

impl ClassifiedError for PlanUndoError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Unresolved { .. } => ErrorKind::Conflict.with_code("undo_unresolved"),
        }
    }
}

impl ClassifiedError for Corrupt {
    fn class(&self) -> ErrorClass {
        ErrorKind::Damaged.with_code("journal_damaged")
    }

    fn hint(&self) -> Option<Hint> {
        Some(Hint::ListDamage)
    }
}
