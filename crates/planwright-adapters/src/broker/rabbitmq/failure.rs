//! What errors of the client library mean.

use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::{Error, ErrorKind};
use planwright_engine::port::BrokerError;
use std::time::Duration;

/// A refusal stays one however often it is tried; everything else may pass.
pub(super) fn classify(error: &Error) -> BrokerError {
    let ErrorKind::ProtocolError(protocol) = error.kind() else {
        return BrokerError::Unreachable(describe(error));
    };
    let is_refusal = match protocol.kind() {
        AMQPErrorKind::Soft(soft) => matches!(
            soft,
            AMQPSoftError::ACCESSREFUSED | AMQPSoftError::PRECONDITIONFAILED
        ),
        AMQPErrorKind::Hard(hard) => matches!(hard, AMQPHardError::NOTALLOWED),
    };
    match is_refusal {
        true => BrokerError::Refused(describe(error)),
        false => BrokerError::Unreachable(describe(error)),
    }
}

/// Of a connection that worked: it may work again.
pub(super) fn connection_lost(error: &Error) -> BrokerError {
    BrokerError::Unreachable(describe(error))
}

fn describe(error: &Error) -> String {
    match error.kind() {
        ErrorKind::IOError(error) => error.to_string(),
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        _ => error.to_string(),
    }
}

/// Waits for an answer for a limited time.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, BrokerError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(classify(&error)),
        Err(_) => Err(BrokerError::Unreachable(format!(
            "no answer within {limit:?}: {what}"
        ))),
    }
}
