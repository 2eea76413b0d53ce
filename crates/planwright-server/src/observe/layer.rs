//! Around every request: its trace, its figures, and what happens when answering it panics.

use super::TraceId;
use super::prometheus::{GaugeGuard, name};
use crate::http::ProblemCode;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use planwright_core::trace::TraceParent;
use planwright_engine::{Engine, telemetry};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};

const TRACE_HEADER: &str = "x-trace-id";

/// Puts every route of this router into a span, counts it, and gives its answer the id of its
/// trace. Handlers find [`TraceId`] and the [`TraceParent`] of their request among its extensions.
/// It goes on last, around everything else.
pub fn layer<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    engine: &Engine,
    scheme: &'static str,
) -> Router<S> {
    router.layer(middleware::from_fn_with_state(
        (engine.clone(), scheme),
        observe,
    ))
}

async fn observe(
    State((engine, scheme)): State<(Engine, &'static str)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let open = GaugeGuard::one(name::REQUESTS_OPEN);
    // Only the template of a path is a label: paths themselves are endless.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", MatchedPath::as_str)
        .to_owned();
    let method = known_method(request.method());
    let (span, place) = request_span(&engine, (method, &route), (scheme, &request));
    request.extensions_mut().insert(place.trace);
    request.extensions_mut().insert(place);
    let answered = AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .instrument(span.clone())
        .await;
    let mut response = answered.unwrap_or_else(|_| panicked(place.trace));
    let status = response.status();
    let trace = HeaderValue::try_from(place.trace.to_string()).expect("hexadecimal digits");
    response.headers_mut().insert(TRACE_HEADER, trace);
    note(&span, (method, &route), status, started.elapsed());
    drop(open);
    response
}

/// The place in a trace that a caller tells of.
pub(crate) fn told_place(headers: &HeaderMap) -> Option<TraceParent> {
    let value = headers.get("traceparent")?;
    value.to_str().ok()?.parse().ok()
}

/// The span of a request, and its place in a trace: the caller's, if it told of one.
fn request_span(
    engine: &Engine,
    (method, route): (&'static str, &str),
    (scheme, request): (&'static str, &Request),
) -> (Span, TraceParent) {
    let told = told_place(request.headers());
    let span = tracing::info_span!(
        parent: None,
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        url.scheme = scheme,
        url.path = request.uri().path(),
        http.response.status_code = Empty,
        trace_id = Empty,
    );
    if let Some(told) = &told {
        telemetry::adopt(&span, told);
    }
    let minted = || TraceParent::of_name(TraceId::mint(engine.entropy(), engine.entropy()), route);
    let place = telemetry::place(&span).or(told).unwrap_or_else(minted);
    span.record("trace_id", display(place.trace));
    (span, place)
}

fn note(span: &Span, (method, route): (&'static str, &str), status: StatusCode, took: Duration) {
    // A signed number: others are exported as texts.
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let labels = [
        ("http_request_method", method.to_owned()),
        ("http_route", route.to_owned()),
        ("http_response_status_code", status.as_u16().to_string()),
    ];
    metrics::histogram!(name::REQUESTS, &labels).record(took);
    let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    // Those who look after the service ask all the time.
    if matches!(route, "/healthz" | "/readyz" | "/metrics") {
        tracing::debug!(parent: span, method, route, status = status.as_u16(), took_us = took, "answered");
    } else {
        tracing::info!(parent: span, method, route, status = status.as_u16(), took_us = took, "answered");
    }
}

/// A method as a label: anybody can make up others.
fn known_method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "_OTHER",
    }
}

/// The panic itself was told by the hook, masked. The caller learns only where to look.
fn panicked(trace: TraceId) -> Response {
    let code = ProblemCode::Internal.as_str();
    let problem = json!({
        "type": format!("urn:planwright:problem:{code}"),
        "code": code,
        "title": "Internal Server Error",
        "detail": "the service failed while it answered this request",
        "status": 500,
        "traceId": trace.to_string(),
    });
    let headers = [(header::CONTENT_TYPE, "application/problem+json")];
    (
        StatusCode::INTERNAL_SERVER_ERROR,
        headers,
        problem.to_string(),
    )
        .into_response()
}
