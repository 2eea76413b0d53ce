//! A request that is repeated with its `Idempotency-Key` is answered again and done once.

use super::auth::Caller;
use super::body;
use super::problem::Problem;
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
use planwright_engine::port::{Asking, Claim};
use serde::{Deserialize, Serialize};

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

/// The key of a request that has one and changes something.
fn key(request: &Request) -> Result<Option<String>, Problem> {
    if request.method() != Method::POST {
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
        Problem::bad_request(format!(
            "an Idempotency-Key has 1 to {MAX_KEY} visible characters"
        ))
    };
    text.map(|text| Some(text.to_owned())).ok_or_else(bad)
}

async fn once(http: &Http, key: String, request: Request, next: Next) -> Result<Response, Problem> {
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
    let bytes = body::read(Request::new(body), http).await?;
    let asking = Asking {
        principal,
        key: Digest::of_parts(&[principal.as_bytes(), place.as_bytes(), key.as_bytes()]),
        request: Digest::of_parts(&[&kind, &bytes]),
        owner: http.service.engine.owner().clone(),
    };
    let now = http.service.engine.now();
    match http.service.answers.claim(&asking, now).await? {
        Claim::Fresh => {}
        Claim::Answered(kept) => return again(&kept),
        Claim::InFlight => {
            return Err(
                Problem::conflict("the request with this Idempotency-Key is being done")
                    .hint("ask again in a moment"),
            );
        }
        Claim::Interrupted => {
            return Err(
                Problem::conflict("the request with this Idempotency-Key was interrupted")
                    .hint("look whether it was done; if not, repeat it with another key"),
            );
        }
        Claim::OtherRequest => {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "this Idempotency-Key was used for another request",
            ));
        }
        Claim::TooMany => {
            let words = "too many Idempotency-Keys of this principal are kept";
            return Err(Problem::later(StatusCode::TOO_MANY_REQUESTS, words, 60));
        }
    }
    // Regardless of what becomes of the connection, the request is done and its answer kept.
    let http = http.clone();
    let request = Request::from_parts(parts, Body::from(bytes));
    let done = tokio::spawn(async move {
        let response = next.run(request).await;
        keep(&http, &asking.key, response).await
    });
    done.await.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service failed while it answered this request",
        ))
    })
}

/// Keeps what was done. What was refused changed nothing and may be tried again under the same key.
async fn keep(http: &Http, key: &Digest, response: Response) -> Result<Response, Problem> {
    // The same holds where a provider or the service itself could not answer.
    let unavailable =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status());
    if response.status().is_client_error() || unavailable {
        http.service.answers.forget(key).await?;
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
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: BASE64_STANDARD.encode(&bytes),
    };
    let kept = serde_json::to_vec(&kept).unwrap_or_default();
    http.service.answers.keep(key, kept).await?;
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
