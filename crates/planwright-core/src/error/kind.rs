//! The eight kinds of errors.

use super::ErrorClass;

/// The kind of an error. Exit codes, HTTP statuses and the errors of other faces are tables over
/// these kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The plan, run, step, version or comment that the caller names does not exist.
    NotFound,
    /// The request or the plan cannot be used as it is written.
    Invalid,
    /// The policy, a role or a rule about approvals forbids it to this principal.
    Forbidden,
    /// The current state does not allow it, or another writer was first.
    Conflict,
    /// A person has to act before it is possible: approve, propose, answer, resolve.
    Waiting,
    /// Something that is needed does not answer: the store, a model, the process that executes the
    /// run, a service that is stopping.
    Unavailable,
    /// A journal or a stored value cannot be trusted.
    Damaged,
    /// The store is encrypted and its passphrase is missing or wrong.
    Locked,
}

impl ErrorKind {
    /// Every kind, in the order in which they are declared.
    pub const ALL: [Self; 8] = [
        Self::NotFound,
        Self::Invalid,
        Self::Forbidden,
        Self::Conflict,
        Self::Waiting,
        Self::Unavailable,
        Self::Damaged,
        Self::Locked,
    ];

    /// Makes the class of one error of this kind.
    pub const fn with_code(self, code: &'static str) -> ErrorClass {
        ErrorClass { kind: self, code }
    }

    /// Returns the kind as it is written in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::Waiting => "waiting",
            Self::Unavailable => "unavailable",
            Self::Damaged => "damaged",
            Self::Locked => "locked",
        }
    }
}
