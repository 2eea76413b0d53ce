//! Reading what a request brings: bodies, ids in paths, and queries, each with an answer that says
//! what is wrong.

use super::auth::Caller;
use super::problem::{Problem, ProblemCode};
use super::state::Http;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Query, Request};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use planwright_core::json::{INTEGER_TOO_LARGE, parse_strict, with_whole_numbers};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// The bytes of a JSON body, whose media type is the one that is read here.
#[derive(Debug)]
pub(crate) struct JsonBytes(pub Bytes);

impl FromRequest<Http> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, http: &Http) -> Result<Self, Problem> {
        let kind = media_type(request.headers());
        if kind.as_deref() != Some("application/json") {
            return Err(unsupported_type("application/json"));
        }
        Ok(Self(read(request, http).await?))
    }
}

/// Bytes of a body that comes without a token.
const MAX_STRANGERS_BODY: usize = 4 << 10;

/// The time within which all of it has to arrive.
const STRANGERS_TIME: Duration = Duration::from_secs(5);

/// The whole body, of any content type.
pub(crate) async fn read(request: Request, http: &Http) -> Result<Bytes, Problem> {
    if request.extensions().get::<Caller>().is_some() {
        let settings = &http.settings;
        return read_within(request, settings.max_body_bytes, settings.stall_timeout).await;
    }
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let address = address.map(|ConnectInfo(peer)| peer.ip());
    let reading = read_within(request, MAX_STRANGERS_BODY, STRANGERS_TIME);
    http.strangers.wait_for_body(address, reading).await
}

async fn read_within(request: Request, limit: usize, time: Duration) -> Result<Bytes, Problem> {
    let reading = axum::body::to_bytes(request.into_body(), limit);
    match tokio::time::timeout(time, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(match too_large(&error) {
            true => Problem::of(
                ProblemCode::BodyTooLarge,
                format!("the body is larger than the {limit} bytes that are read here"),
            ),
            false => Problem::of(ProblemCode::BadBody, "the body did not arrive whole"),
        }),
        Err(_) => Err(Problem::of(
            ProblemCode::BodyTooSlow,
            "the body did not arrive in time",
        )),
    }
}

fn too_large(error: &axum::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The media type without its parameters, in lower case. A character set other than UTF-8 is
/// another type.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return None;
    };
    let value = value.to_str().ok()?.to_ascii_lowercase();
    let (kind, parameters) = value.split_once(';').unwrap_or((&value, ""));
    let charset = parameters
        .split(';')
        .find_map(|parameter| parameter.trim().strip_prefix("charset="));
    match charset.map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8") => Some(kind.trim().to_owned()),
        Some(_) => None,
    }
}

pub(crate) fn unsupported_type(wanted: &str) -> Problem {
    Problem::of(
        ProblemCode::UnsupportedType,
        format!("the body has to be {wanted}"),
    )
    .hint(format!("send the header Content-Type: {wanted}"))
}

/// A JSON body of this shape and nothing besides.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Http> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, http: &Http) -> Result<Self, Problem> {
        let JsonBytes(bytes) = JsonBytes::from_request(request, http).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body of this shape, or none at all.
#[derive(Debug)]
pub(crate) struct OptionalBody<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<Http> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, http: &Http) -> Result<Self, Problem> {
        let kind = media_type(request.headers());
        let typed = request.headers().contains_key(CONTENT_TYPE);
        let bytes = read(request, http).await?;
        if bytes.is_empty() && (!typed || kind.as_deref() == Some("application/json")) {
            return Ok(Self(T::default()));
        }
        if kind.as_deref() != Some("application/json") {
            return Err(unsupported_type("application/json"));
        }
        parse(&bytes).map(Self)
    }
}

/// The value, if it is JSON without doubled keys. The parser bounds how deep it goes.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, Problem> {
    parse_strict(bytes).map_err(|error| {
        let code = if error.message == INTEGER_TOO_LARGE {
            ProblemCode::NumberTooLarge
        } else {
            ProblemCode::BadJson
        };
        Problem::of(
            code,
            format!(
                "the body is no JSON: {} at line {}, column {}",
                error.message, error.line, error.column
            ),
        )
    })
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = json(bytes)?;
    if !value.is_object() {
        return Err(Problem::of(
            ProblemCode::BadBody,
            "the body has to be a JSON object",
        ));
    }
    read_value(value).map_err(|error| {
        Problem::of(
            ProblemCode::BadBody,
            format!("the body does not fit: {error}"),
        )
    })
}

/// Reads a part of a body. A whole number may be written as `5.0`: for JSON Schema that is an integer
/// too.
pub(crate) fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value.clone())
        .or_else(|_| serde_json::from_value(with_whole_numbers(value)))
}

/// One id in the path.
#[derive(Debug)]
pub(crate) struct PathId<T>(pub T);

impl<S: Send + Sync, T> FromRequestParts<S> for PathId<T>
where
    T: FromStr<Err: std::fmt::Display>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| bad_path())?;
        id(&text).map(Self)
    }
}

/// A plan's id and a step of it in the path.
#[derive(Debug)]
pub(crate) struct PathStep<T>(pub T, pub String);

impl<S: Send + Sync, T> FromRequestParts<S> for PathStep<T>
where
    T: FromStr<Err: std::fmt::Display>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((text, step)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| bad_path())?;
        Ok(Self(id(&text)?, step))
    }
}

fn bad_path() -> Problem {
    Problem::of(ProblemCode::BadId, "the path is not valid UTF-8")
}

pub(crate) fn id<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error| {
        Problem::of(
            ProblemCode::BadId,
            format!("the id in the path cannot be one: {error}"),
        )
    })
}

/// The query of this shape and nothing besides.
#[derive(Debug)]
pub(crate) struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(bad_query(&error)),
        }
    }
}

/// A query that cannot be read: which parameter, and what is wrong with it.
pub(crate) fn bad_query(error: &QueryRejection) -> Problem {
    let words = error.body_text();
    let about = words.strip_prefix("Failed to deserialize query string: ");
    Problem::of(ProblemCode::BadParameter, about.unwrap_or(&words))
}
