//! SQLite's errors in words that say what to do.

use crate::scarcity::are_descriptors_scarce;
use crate::vault::OpenSealedError;
use planwright_core::journal::StreamName;
use planwright_engine::port::StoreError;
use rusqlite::types::Type;
use rusqlite::{Error, ErrorCode};

/// The reason why a request did not happen: the store refused it, or SQLite failed.
pub(super) enum Stop<E> {
    Refused(E),
    Sqlite(Error),
}

impl<E> From<Error> for Stop<E> {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl<E: From<StoreError>> Stop<E> {
    pub(super) fn failed(reason: String) -> Self {
        Self::Refused(StoreError::Failed(reason).into())
    }

    pub(super) fn into_error(self) -> E {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => failed(&error).into(),
        }
    }
}

pub(super) fn describe(error: &Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "the database is locked by another process".to_owned()
        }
        Some(ErrorCode::ReadOnly) => "the database is read-only".to_owned(),
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::NotADatabase) => "the file is not a database".to_owned(),
        Some(ErrorCode::DatabaseCorrupt) => "the database file is damaged".to_owned(),
        Some(ErrorCode::SystemIoFailure) => {
            format!("reading or writing the database file failed ({error})")
        }
        _ => error.to_string(),
    }
}

pub(super) fn failed(error: &Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy(describe(error))
        }
        // SQLite does not say why a file cannot be opened.
        Some(ErrorCode::CannotOpen) if are_descriptors_scarce() => {
            StoreError::Busy("no file descriptor is free at this moment".to_owned())
        }
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        _ => StoreError::Failed(describe(error)),
    }
}

/// The error of reading one stream. A damaged page concerns only those who read it.
pub(super) fn of_stream(stream: &StreamName, error: &Error) -> StoreError {
    let damaged = match error {
        Error::FromSqlConversionFailure(..)
        | Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..) => true,
        _ => error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt),
    };
    if damaged {
        StoreError::Damaged {
            stream: stream.clone(),
            reason: describe(error),
        }
    } else {
        failed(error)
    }
}

pub(super) fn is_io_failure(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

/// A value that did not open, as SQLite's own errors are: the reader of a stream reports it as
/// damaged.
pub(super) fn unopened_value(column: usize) -> impl FnOnce(OpenSealedError) -> Error {
    move |error| Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error))
}
