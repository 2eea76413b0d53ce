//! Pages of other origins that the operator allowed.
//!
//! They bring a token in a header. Cookies are never taken from them: a session belongs to the pages of
//! the service itself, so the answers do not allow credentials.

use super::auth::is_allowed_origin;
use super::state::Http;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

const METHODS: &str = "GET, HEAD, POST, PATCH, DELETE";
/// What requests of such pages may bring.
const SENT: &str = "authorization, content-type, idempotency-key, if-match, if-none-match, \
     last-event-id, traceparent";
/// What they may read of the answers.
const READ: &str =
    "etag, idempotency-replayed, link, location, retry-after, www-authenticate, x-trace-id";
/// For how many seconds a browser remembers what it was told.
const REMEMBERED: &str = "600";

/// Tells browsers that pages of allowed origins may ask and read. Others were refused before.
pub(super) async fn layer(State(http): State<Http>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let origin = headers.get(ORIGIN).cloned();
    let origin = origin.filter(|origin| is_allowed_origin(&http.settings, origin));
    let Some(origin) = origin else {
        return next.run(request).await;
    };
    let asks =
        request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks {
        let mut response = StatusCode::NO_CONTENT.into_response();
        set(
            response.headers_mut(),
            [
                (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                (ACCESS_CONTROL_ALLOW_HEADERS, SENT),
                (ACCESS_CONTROL_MAX_AGE, REMEMBERED),
            ],
        );
        response
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let varies = headers.get(VARY).and_then(|value| value.to_str().ok());
    let varies = varies.map_or_else(
        || "origin".to_owned(),
        |already| format!("{already}, origin"),
    );
    if let Ok(varies) = HeaderValue::from_str(&varies) {
        headers.insert(VARY, varies);
    }
    set(headers, [(ACCESS_CONTROL_EXPOSE_HEADERS, READ)]);
    response
}

fn set<const N: usize>(headers: &mut HeaderMap, values: [(http::HeaderName, &'static str); N]) {
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
