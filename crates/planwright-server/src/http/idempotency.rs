//! A request that is repeated with its `Idempotency-Key` is answered again and done once.
//!
//! The key is claimed before the request is done, and the commit that does it says so: after a crash
//! the same request is done if nothing of it was, and answered with what it changed otherwise.

use super::auth::{Caller, is_always_admitted};
use super::body;
use super::problem::{Problem, ProblemCode};
use super::routes::answers_secret;
use super::state::Http;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
use planwright_engine::for_request;
use planwright_engine::port::{Asking, Claim, MAX_ANSWERS, MAX_DECISIONS, RequestClaim};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The header that names a request.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The most characters of a key.
const MAX_KEY: usize = 255;

/// Larger answers are not kept. None of those to a POST is.
const MAX_ANSWER: usize = 8 << 20;

/// Headers that belong to an answer and not to its delivery.
const HEADERS: [HeaderName; 3] = [CONTENT_TYPE, ETAG, LOCATION];

/// An answer as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

pub(super) async fn layer(State(http): State<Http>, request: Request, next: Next) -> Response {
    let key = match key(&request) {
        Ok(None) => return next.run(request).await,
        Ok(Some(key)) => key,
        Err(problem) => return problem.into_response(),
    };
    match once(&http, key, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

/// The key of a request that has one and changes something. An answer that holds a secret is never kept.
fn key(request: &Request) -> Result<Option<String>, Problem> {
    if request.method() != Method::POST || answers_secret(request) {
        return Ok(None);
    }
    let mut given = request.headers().get_all(&KEY).iter();
    let (Some(value), more) = (given.next(), given.next()) else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|text| {
        more.is_none()
            && (1..=MAX_KEY).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let bad = || {
        Problem::of(
            ProblemCode::BadKey,
            format!("an Idempotency-Key has 1 to {MAX_KEY} visible characters"),
        )
    };
    text.map(|text| Some(text.to_owned())).ok_or_else(bad)
}

async fn once(http: &Http, key: String, request: Request, next: Next) -> Result<Response, Problem> {
    let decides = is_always_admitted(http, &request);
    let (parts, body) = request.into_parts();
    let Some(caller) = parts.extensions.get::<Caller>() else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let principal = Digest::of_parts(&[
        caller.principal.kind.as_str().as_bytes(),
        caller.principal.name.as_bytes(),
    ]);
    let place = parts
        .uri
        .path_and_query()
        .map_or("", |place| place.as_str())
        .to_owned();
    let kind = parts
        .headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes)
        .to_owned();
    let mut carrier = Request::new(body);
    carrier.extensions_mut().insert(caller.clone());
    let bytes = body::read(carrier, http).await?;
    let asking = Asking {
        principal,
        key: Digest::of_parts(&[principal.as_bytes(), place.as_bytes(), key.as_bytes()]),
        request: Digest::of_parts(&[&kind, &bytes]),
        owner: http.service.engine.owner().clone(),
        limit: if decides { MAX_DECISIONS } else { MAX_ANSWERS },
    };
    let Some(working) = http.working_on.begin(asking.key) else {
        return Err(being_done());
    };
    let now = http.service.engine.now();
    match http.service.answers.claim(&asking, now).await? {
        Claim::Fresh => {}
        Claim::Answered(kept) => return again(&kept),
        Claim::InFlight => return Err(being_done()),
        Claim::Changed(stream) => return Err(already_done(http, stream).await),
        Claim::Interrupted => {
            return Err(Problem::of(
                ProblemCode::RequestInterrupted,
                "the request with this Idempotency-Key was interrupted",
            )
            .hint("look whether it was done; if not, repeat it with another key"));
        }
        Claim::OtherRequest => {
            return Err(Problem::of(
                ProblemCode::KeyReused,
                "this Idempotency-Key was used for another request",
            ));
        }
        Claim::TooMany => {
            let words = "too many Idempotency-Keys of this principal are kept";
            return Err(Problem::later(ProblemCode::TooManyKeys, words, 60)
                .hint("repeat it without a key, or when some of them are a day old"));
        }
    }
    // Regardless of what becomes of the connection, the request is done and its answer kept.
    let http = http.clone();
    let request = Request::from_parts(parts, Body::from(bytes));
    let done = tokio::spawn(async move {
        let _working = working;
        let response = for_request(asking.claim(), next.run(request)).await;
        keep(&http, &asking.claim(), response).await
    });
    done.await.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service failed while it answered this request",
        ))
    })
}

fn being_done() -> Problem {
    Problem::of(
        ProblemCode::RequestInProgress,
        "the request with this Idempotency-Key is being done",
    )
    .hint("ask again in a moment")
}

/// The request changed something and its answer was lost: what it changed is there to look at.
async fn already_done(http: &Http, stream: StreamName) -> Problem {
    let words = "the request with this Idempotency-Key was done, but the service stopped before it could answer";
    match stream {
        StreamName::Plan(plan) => Problem::of(
            ProblemCode::AnswerLost,
            format!("{words}: it changed plan `{plan}`"),
        )
        .hint(format!("GET /plan/{plan} shows what came of it"))
        .done(Some(plan.to_string()), None),
        StreamName::Run(run) => {
            // A plan that cannot be found is no reason to keep the run back.
            let plan = http.service.engine.journals().plan_of_run(&run).await.ok();
            let problem = Problem::of(
                ProblemCode::AnswerLost,
                format!("{words}: it changed run `{run}`"),
            );
            let problem = match &plan {
                Some(plan) => {
                    problem.hint(format!("GET /plan/{plan}/runs/{run} shows what came of it"))
                }
                None => problem,
            };
            problem.done(plan.map(|plan| plan.to_string()), Some(run.to_string()))
        }
    }
}

/// The keys whose requests this process works on: each has one at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkingOn(Arc<Mutex<HashSet<Digest>>>);

/// One of them, until it is dropped.
struct Working(WorkingOn, Digest);

impl WorkingOn {
    fn begin(&self, key: Digest) -> Option<Working> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key).then(|| Working(self.clone(), key))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut keys = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.1);
    }
}

/// Keeps what was done. A request that changed nothing may be tried again under the same key, and
/// what failed on the service's side after a change is never answered with that failure again.
async fn keep(http: &Http, claim: &RequestClaim, response: Response) -> Result<Response, Problem> {
    let status = response.status();
    let answers = &http.service.answers;
    if status.is_server_error() {
        if let Err(error) = answers.release(claim).await {
            // A client that asks again finds out then whether anything was changed.
            tracing::warn!(%error, "the claim of a failed request stays");
        }
        return Ok(response);
    }
    if status.is_client_error() && answers.release(claim).await? {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, MAX_ANSWER)
        .await
        .unwrap_or_default();
    let headers = HEADERS.iter().filter_map(|name| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    });
    let kept = Kept {
        status: status.as_u16(),
        headers: headers.collect(),
        body: BASE64_STANDARD.encode(&bytes),
    };
    let kept = serde_json::to_vec(&kept).unwrap_or_default();
    if let Err(error) = answers.keep(claim, kept).await {
        // The change stands and says so: this answer is true, and a later one names what changed.
        tracing::warn!(%error, "an answer could not be kept");
    }
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// An answer that was given before.
fn again(kept: &[u8]) -> Result<Response, Problem> {
    let unreadable = || {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the answer that was kept cannot be read",
        )
    };
    let kept: Kept = serde_json::from_slice(kept).map_err(|_| unreadable())?;
    let body: Bytes = BASE64_STANDARD
        .decode(&kept.body)
        .map_err(|_| unreadable())?
        .into();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(kept.status).map_err(|_| unreadable())?;
    for (name, value) in kept.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}
