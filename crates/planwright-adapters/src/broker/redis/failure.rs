//! What errors of the client library mean.

use planwright_engine::port::BrokerError;
use redis::{ErrorKind, RedisError};

/// A refusal stays one however often it is tried; everything else may pass.
pub(super) fn classify(error: &RedisError) -> BrokerError {
    let is_refusal = matches!(
        error.kind(),
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig
    ) || matches!(
        error.code(),
        Some("NOAUTH" | "WRONGPASS" | "NOPERM" | "WRONGTYPE")
    );
    match is_refusal {
        true => BrokerError::Refused(error.to_string()),
        false => BrokerError::Unreachable(error.to_string()),
    }
}

/// Whether the group is gone, as it is after all data was deleted.
pub(super) fn is_group_missing(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOGROUP" | "UNBLOCKED"))
}
