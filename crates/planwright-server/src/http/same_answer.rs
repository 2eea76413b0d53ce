//! Answers that a client has already: 304 instead of all of it again.
//!
//! The tag is of what is answered. An answer that has a tag of its own, which says more than its content,
//! keeps it, and so do large ones, which are sent as they are made.

use super::limits::Held;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use planwright_core::digest::Digest;

/// Larger answers have no tag.
const LARGEST: u64 = 4 << 20;

pub(super) async fn layer(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let known = known_tags(request.headers());
    let response = next.run(request).await;
    if !can_be_tagged(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let most = usize::try_from(LARGEST).unwrap_or(usize::MAX);
    let Ok(bytes) = axum::body::to_bytes(body, most).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let tag = format!("W/\"{}\"", Digest::of_bytes(&bytes).hex());
    let Ok(value) = HeaderValue::from_str(&tag) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    parts.headers.insert(ETAG, value);
    if !known.contains(&tag) {
        return Response::from_parts(parts, Body::from(bytes));
    }
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    Response::from_parts(parts, Body::empty())
}

fn known_tags(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().to_owned())
        .collect()
}

fn can_be_tagged(response: &Response) -> bool {
    let headers = response.headers();
    response.status() == StatusCode::OK
        && !headers.contains_key(ETAG)
        && !headers.contains_key(SET_COOKIE)
        && response.extensions().get::<Held>().is_none()
        && response
            .body()
            .size_hint()
            .exact()
            .is_some_and(|size| size > 0 && size <= LARGEST)
}
