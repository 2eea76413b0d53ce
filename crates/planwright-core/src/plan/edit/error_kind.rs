//! Kinds and codes of edits that cannot be made.

use super::EditError;
use crate::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};

impl ClassifiedError for EditError {
    fn class(&self) -> ErrorClass {
        // An edit is a document of the caller: also a step or a path in it that does not exist is
        // something the caller wrote wrongly.
        ErrorKind::Invalid.with_code(match self {
            Self::NoSuchStep { .. } => "edit_unknown_step",
            Self::BadPath { .. } => "edit_bad_path",
            Self::NothingThere { .. } => "edit_nothing_there",
            Self::CannotHold { .. } => "edit_bad_value",
            Self::FixedId => "edit_fixed_id",
            Self::Needed { .. } => "edit_step_needed",
            Self::BeforeDependency { .. } | Self::AfterDependant { .. } => "edit_bad_order",
            Self::DuplicateStep(_) => "edit_duplicate_step",
            Self::BadPlace(_) => "edit_bad_place",
            Self::TooMany { .. } => "edit_too_many_changes",
            Self::TooLarge(_) => "edit_too_large",
        })
    }

    fn hint(&self) -> Option<Hint> {
        self.suggest().map(Hint::Text)
    }
}
