//! The reply to a request.

use hyper::StatusCode;
use serde_json::{Value, json};

/// A status and a JSON document.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body,
        }
    }

    pub(super) fn error(status: StatusCode, code: &str, message: &str) -> Self {
        Self {
            status,
            body: json!({"error": {"code": code, "message": message}}),
        }
    }
}
