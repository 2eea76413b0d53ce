//! The HTTP status of every error: a table over kinds, and the exceptions.

use http::StatusCode;
use planwright_core::error::{ErrorClass, ErrorKind};

/// Seconds after which a client may repeat a request that was not possible for now.
const RETRY_AFTER: u64 = 5;

/// The status of a problem and its header `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProblemStatus {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<u64>,
}

const fn status(status: StatusCode) -> ProblemStatus {
    ProblemStatus {
        status,
        retry_after: None,
    }
}

/// Errors whose status is not the one of their kind.
const EXCEPTIONS: &[(&str, ProblemStatus)] = &[
    // The operator has to act: repeating the request does not help.
    ("store_failed", status(StatusCode::INTERNAL_SERVER_ERROR)),
    (
        "artifact_store_failed",
        status(StatusCode::INTERNAL_SERVER_ERROR),
    ),
    // The prompt is the operator's and not part of the request.
    ("prompt_unusable", status(StatusCode::INTERNAL_SERVER_ERROR)),
    // The document can be used as it is written, once the service has its tools.
    ("missing_tools", status(StatusCode::CONFLICT)),
    // Parameters of the request, as opposed to the content of a plan.
    ("goal_missing", status(StatusCode::BAD_REQUEST)),
    ("goal_too_long", status(StatusCode::BAD_REQUEST)),
    ("model_unknown", status(StatusCode::BAD_REQUEST)),
    // The service works; the provider behind it does not.
    ("model_refused", status(StatusCode::BAD_GATEWAY)),
    ("model_unavailable", status(StatusCode::BAD_GATEWAY)),
    ("model_timed_out", status(StatusCode::BAD_GATEWAY)),
    ("model_unreadable", status(StatusCode::BAD_GATEWAY)),
    ("no_valid_plan", status(StatusCode::BAD_GATEWAY)),
    // The planning that was cancelled has cost something: a client is not told to repeat it by
    // itself.
    (
        "planning_cancelled",
        status(StatusCode::SERVICE_UNAVAILABLE),
    ),
];

/// Codes of errors that only the operator's log describes.
const LOGGED_ONLY: &[&str] = &["store_failed", "artifact_store_failed", "prompt_unusable"];

/// Returns the status of an error of this class.
pub(super) fn status_of_class(class: ErrorClass) -> ProblemStatus {
    EXCEPTIONS
        .iter()
        .find(|(code, _)| *code == class.code)
        .map_or_else(|| status_of_kind(class.kind), |(_, status)| *status)
}

fn status_of_kind(kind: ErrorKind) -> ProblemStatus {
    match kind {
        ErrorKind::NotFound => status(StatusCode::NOT_FOUND),
        ErrorKind::Invalid => status(StatusCode::UNPROCESSABLE_ENTITY),
        ErrorKind::Forbidden => status(StatusCode::FORBIDDEN),
        ErrorKind::Conflict | ErrorKind::Waiting => status(StatusCode::CONFLICT),
        ErrorKind::Unavailable => ProblemStatus {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry_after: Some(RETRY_AFTER),
        },
        ErrorKind::Damaged => status(StatusCode::INTERNAL_SERVER_ERROR),
        // A service does not start on a locked store, so no client meets this one.
        ErrorKind::Locked => status(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// Returns true for an error whose details are for the operator and not for the caller.
pub(super) fn is_logged_only(class: ErrorClass) -> bool {
    LOGGED_ONLY.contains(&class.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exceptions that the kind would give anyway hide the table.
    #[test]
    fn every_exception_differs_from_its_kind() {
        let document = include_str!("../../../../../docs/errors/codes.md");
        for (code, exception) in EXCEPTIONS {
            let row = document
                .lines()
                .find(|line| line.starts_with(&format!("| `{code}` |")));
            let word = row.unwrap().split('|').nth(2).unwrap().trim();
            let kind = ErrorKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == word)
                .unwrap();
            assert_ne!(*exception, status_of_kind(kind), "{code}");
        }
    }
}
