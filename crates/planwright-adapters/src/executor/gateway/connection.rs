//! One connection: a request is read within its limits, answered, and the connection closed.

use super::guard::RequestGuard;
use super::reply::Reply;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// The line and the headers of a request, in bytes.
pub(super) const MAX_HEAD: usize = 16 << 10;
/// The arguments of a call, in bytes.
pub(super) const MAX_BODY: usize = 4 << 20;

/// Answers one request. A head that is malformed, too long or late is refused by hyper itself,
/// without a JSON document: 400, 431, or the end of the connection.
pub(super) async fn serve_connection(
    stream: TcpStream,
    guard: Arc<RequestGuard>,
    arrival_limit: Duration,
) -> hyper::Result<()> {
    let deadline = Instant::now() + arrival_limit;
    let service = service_fn(move |request| {
        let guard = Arc::clone(&guard);
        async move {
            let reply = answer_request(&guard, request, deadline).await;
            Ok::<_, Infallible>(encode_reply(&reply))
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(arrival_limit)
        .max_buf_size(MAX_HEAD)
        .keep_alive(false)
        // A client that has closed its side still gets its reply, and a call that was made for a
        // client that is gone is not broken off: it may have had its effect already.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

/// Reads the whole request before it is judged: a connection that is closed with unread bytes is
/// reset, and the client may then lose the reply.
async fn answer_request(
    guard: &RequestGuard,
    request: Request<Incoming>,
    deadline: Instant,
) -> Reply {
    let (head, body) = request.into_parts();
    match read_body(body, deadline).await {
        Ok(body) => guard.answer(&head, &body).await,
        Err(refused) => refused,
    }
}

async fn read_body(body: Incoming, deadline: Instant) -> Result<Bytes, Reply> {
    let bad_request = |message| Reply::error(StatusCode::BAD_REQUEST, message, message);
    // Only a body in chunks has no length beforehand. With one, hyper reads exactly as much.
    let Some(length) = body.size_hint().exact() else {
        return Err(bad_request("give the body with a content-length"));
    };
    if length > MAX_BODY as u64 {
        let message = "the body is too long";
        return Err(Reply::error(
            StatusCode::PAYLOAD_TOO_LARGE,
            message,
            message,
        ));
    }
    match timeout_at(deadline, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => Err(bad_request("the request cannot be read")),
        Err(_) => Err(Reply::error(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the request did not arrive in time",
        )),
    }
}

fn encode_reply(reply: &Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(reply.body.to_string()));
    *response.status_mut() = reply.status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
