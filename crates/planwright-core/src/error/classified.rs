//! The trait of errors that answer a request.

use super::{ErrorKind, Hint};
use crate::plan::Finding;
use std::error::Error;

/// The kind and the code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorClass {
    /// One of the eight kinds.
    pub kind: ErrorKind,
    /// A stable word in `snake_case`; `docs/errors/codes.md` lists all of them.
    pub code: &'static str,
}

/// An error that answers a request. A face turns it into an exit code, a status or a message by its
/// kind and code, and never by its variant.
///
/// ```
/// use planwright_core::error::{ClassifiedError as _, ErrorKind};
/// use planwright_core::run::Refusal;
///
/// let refusal = Refusal::NotPaused;
/// assert_eq!(refusal.kind(), ErrorKind::Conflict);
/// assert_eq!(refusal.code(), "not_paused");
/// assert_eq!(refusal.hint(), None);
/// ```
pub trait ClassifiedError: Error {
    /// Returns the kind and the code. An error that wraps another one returns those of its cause.
    fn class(&self) -> ErrorClass;

    /// Returns the kind.
    fn kind(&self) -> ErrorKind {
        self.class().kind
    }

    /// Returns the stable code.
    fn code(&self) -> &'static str {
        self.class().code
    }

    /// Returns the next step, where one is known.
    fn hint(&self) -> Option<Hint> {
        None
    }

    /// Returns the findings about the plan, when they are the reason.
    fn findings(&self) -> &[Finding] {
        &[]
    }
}
