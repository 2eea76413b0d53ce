//! The answer that carries a stream of events.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use std::convert::Infallible;
use tokio::sync::mpsc;

/// Sends every piece put into the queue, until the last sender is gone. Nothing on the way keeps or
/// gathers it.
pub(crate) fn stream_response(mut pieces: mpsc::Receiver<Bytes>) -> Response {
    let body = futures::stream::poll_fn(move |context| {
        pieces
            .poll_recv(context)
            .map(|piece| piece.map(Ok::<_, Infallible>))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}
