//! What errors of the database mean.

use planwright_engine::port::StoreError;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The reason something was not done inside a transaction.
#[derive(Debug)]
pub(super) enum Stop<E> {
    /// The database failed: it may be tried again.
    Database(Error),
    /// It was refused for good.
    Refused(E),
}

impl<E> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl<E: From<StoreError>> Stop<E> {
    /// Refuses because something is wrong with the request or the rows.
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Refused(StoreError::Failed(reason.into()).into())
    }
}

/// Returns whether the connection is of no use any more, or leads to a server that cannot be written.
pub(super) fn is_broken(error: &Error) -> bool {
    let Some(code) = error.code() else {
        return error.is_closed() || is_io(error);
    };
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            // A statement of another transaction got in between: a pooler has changed the connection.
            SqlState::INVALID_TRANSACTION_STATE,
        ]
        .contains(code)
}

fn is_io(error: &Error) -> bool {
    error
        .source()
        .is_some_and(|cause| cause.is::<std::io::Error>())
}

/// Returns whether the same transaction may work if it begins anew: another one was in its way.
pub(super) fn is_crossed(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            SqlState::LOCK_NOT_AVAILABLE,
        ]
        .contains(code)
    })
}

/// The error in one line. Messages of the server name tables and reasons, never passwords.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(database) => format!("{} ({})", database.message(), database.code().code()),
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

/// The error as the engine knows it. `place` is the address of the store.
pub(super) fn store_error(error: &Error, place: &str) -> StoreError {
    let reason = describe(error);
    let code = error.code();
    if code == Some(&SqlState::DISK_FULL) {
        return StoreError::Full;
    }
    if is_broken(error) {
        return StoreError::Unreachable(format!("{place}: {reason}"));
    }
    if code == Some(&SqlState::LOCK_NOT_AVAILABLE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
        || code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::QUERY_CANCELED)
    {
        return StoreError::Busy(reason);
    }
    if code == Some(&SqlState::NOT_NULL_VIOLATION) {
        // Only the mark of a transaction can be this: it is made where the key is the one that this process has.
        return StoreError::Lost(format!(
            "{place} was encrypted, decrypted or given another key since this process opened it"
        ));
    }
    StoreError::Failed(reason)
}
