//! Pages of lists that are plain arrays: the header `Link` of a page leads to the next one.

use super::problem::{HttpResult, Problem, ProblemCode};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use utoipa::IntoParams;

/// The most things on one page, and as many as are on it when the caller does not say.
const MAX_LIMIT: usize = 200;

/// Bytes of one page. A single thing may be larger, and is then alone on its page.
const MAX_BYTES: usize = 4 << 20;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkedParams {
    /// How many things at most; 200 when absent. A page has at most about 4 MiB.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// Where the page before ended: the `Link` of that page has it.
    #[param(max_length = 256)]
    cursor: Option<String>,
}

/// A page that is being written.
#[derive(Debug)]
pub(crate) struct LinkedPage {
    path: String,
    params: LinkedParams,
    limit: usize,
    json: Vec<u8>,
    count: usize,
    last: Option<String>,
    more: bool,
}

impl LinkedPage {
    /// An empty page of the list at this path, and the last thing of the page before.
    pub(crate) fn open(path: String, params: LinkedParams) -> HttpResult<(Self, Option<String>)> {
        let limit = params.limit.unwrap_or(MAX_LIMIT);
        if limit == 0 || limit > MAX_LIMIT {
            return Err(Problem::of(
                ProblemCode::BadParameter,
                format!("`limit` is between 1 and {MAX_LIMIT}"),
            ));
        }
        let after = params.cursor.as_deref().map(|text| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            text.ok_or_else(unknown_cursor)
        });
        let after = after.transpose()?;
        let page = Self {
            path,
            params,
            limit,
            json: b"[".to_vec(),
            count: 0,
            last: None,
            more: false,
        };
        Ok((page, after))
    }

    /// How many bytes there is room for.
    pub(crate) fn room(&self) -> usize {
        MAX_BYTES.saturating_sub(self.json.len())
    }

    /// Writes a thing that goes by this name. False once the page is full: the thing is for the next
    /// one.
    pub(crate) fn put(&mut self, name: impl Display, thing: &impl Serialize) -> HttpResult<bool> {
        if self.count >= self.limit {
            self.more = true;
            return Ok(false);
        }
        let before = self.json.len();
        if self.count > 0 {
            self.json.push(b',');
        }
        serde_json::to_writer(&mut self.json, thing)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        if self.count > 0 && self.json.len() > MAX_BYTES {
            self.json.truncate(before);
            self.more = true;
            return Ok(false);
        }
        self.count += 1;
        self.last = Some(name.to_string());
        Ok(true)
    }

    /// Ends the page though there is more.
    pub(crate) fn break_off(&mut self) {
        self.more = true;
    }

    fn next(&self) -> Option<String> {
        let last = self.last.as_ref().filter(|_| self.more)?;
        let cursor = BASE64_URL_SAFE_NO_PAD.encode(last);
        let limit = self.params.limit.map(|limit| format!("limit={limit}&"));
        let limit = limit.unwrap_or_default();
        Some(format!(
            "<{}?{limit}cursor={cursor}>; rel=\"next\"",
            self.path
        ))
    }
}

impl IntoResponse for LinkedPage {
    fn into_response(mut self) -> Response {
        let next = self
            .next()
            .and_then(|next| HeaderValue::try_from(next).ok());
        self.json.push(b']');
        let mut response = Response::new(Body::from(self.json));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(next) = next {
            headers.insert(LINK, next);
        }
        response
    }
}

/// Returns what comes after the thing with this name; everything when there is none.
pub(crate) fn after<'a, T>(
    things: &'a [T],
    name: Option<&str>,
    is_named: impl Fn(&T, &str) -> bool,
) -> HttpResult<&'a [T]> {
    let Some(name) = name else {
        return Ok(things);
    };
    let place = things.iter().position(|thing| is_named(thing, name));
    let place = place.ok_or_else(unknown_cursor)?;
    Ok(things.get(place + 1..).unwrap_or_default())
}

/// The answer to a cursor that was made up.
pub(crate) fn unknown_cursor() -> Problem {
    Problem::of(
        ProblemCode::BadCursor,
        "`cursor` is not one that this service gave",
    )
}
