//! The id that ties an answer to its logs, spans and events.

use super::state::Http;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderValue;
use http::request::Parts;
use std::convert::Infallible;
use std::fmt;

/// The name of the header that carries it on every answer.
pub(crate) const HEADER: &str = "x-trace-id";

/// The trace a request belongs to, written as a UUID: the caller's if it brought one, else a fresh one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceId(String);

impl TraceId {
    pub fn new(high: u64, low: u64) -> Self {
        let hex = format!("{high:016x}{low:016x}");
        Self(uuid(&hex))
    }

    /// The trace of a W3C `traceparent` header, if it is a valid one.
    pub fn from_traceparent(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let known = hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let valid = known && hex(trace, 32) && hex(parent, 16) && hex(flags, 2);
        let zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        (valid && !zero(trace) && !zero(parent)).then(|| Self(uuid(trace)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn uuid(hex: &str) -> String {
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every request has one: the outermost layer sees to it.
impl<S: Send + Sync> FromRequestParts<S> for TraceId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self::new(0, 0)))
    }
}

/// Gives every request its trace and every answer the header that names it.
pub(super) async fn layer(State(http): State<Http>, mut request: Request, next: Next) -> Response {
    let given = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let trace = given.and_then(TraceId::from_traceparent).unwrap_or_else(|| {
        let ids = &http.service.engine.environment().ids;
        TraceId::new(ids.entropy(), ids.entropy())
    });
    request.extensions_mut().insert(trace.clone());
    let mut response = next.run(request).await;
    let value = HeaderValue::from_str(trace.as_str()).expect("a trace id is made of hexadecimal digits");
    response.headers_mut().insert(HEADER, value);
    response
}

#[cfg(test)]
mod tests {
    use super::TraceId;

    #[test]
    fn only_a_valid_traceparent_is_taken_over() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceId::from_traceparent(good).unwrap();
        assert_eq!(trace.as_str(), "4bf92f35-77b3-4da6-a3ce-929d0e0e4736");
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceId::from_traceparent(bad), None, "{bad}");
        }
    }
}
