//! Fetches a URL.

use super::off_thread::parse;
use super::server::SERVER;
use crate::outbound::{AllowList, Range, Refused, build_client, describe_failure, find_refusal};
use planwright_core::run::CallEffect;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, CallError, Outcome};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) const NAME: &str = "http_get";

const DEFAULT_MAX_BYTES: usize = 4 << 20;
const LARGEST_MAX_BYTES: usize = 16 << 20;
const MAX_REDIRECTS: usize = 5;
/// For everything, redirects included.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The bytes shown of the body of an error.
const EXCERPT_CHARS: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    max_bytes: Option<usize>,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Fetches an http or https URL of a host the operator allows, and returns the text of the answer. A status of 400 \
         or more is a failure. An answer larger than `maxBytes` is an error: it is never cut.",
        json!({
            "type": "object",
            "properties": {
                "url": { "type": "string", "minLength": 1, "maxLength": 8192 },
                "headers": {
                    "type": "object", "maxProperties": 100,
                    "additionalProperties": { "type": "string", "maxLength": 8192 },
                },
                "maxBytes": {
                    "type": "integer", "minimum": 1, "maximum": LARGEST_MAX_BYTES, "default": DEFAULT_MAX_BYTES,
                },
            },
            "required": ["url"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({
        "type": "object",
        "properties": {
            "status": { "type": "integer", "minimum": 100, "maximum": 399 },
            "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            "body": { "type": "string" },
        },
        "required": ["status", "headers", "body"],
        "additionalProperties": false,
    }))
    .with_annotations(Annotations { open_world_hint: Some(true), ..Annotations::read_only() })
}

/// The tool with its connections.
#[derive(Debug)]
pub(super) struct HttpGet {
    allow: AllowList,
    /// One client for each range, with and without TLS. Made when first needed: a machine without
    /// certificates can still fetch plain http, and a plan that fetches nothing pays nothing.
    clients: [OnceLock<Client>; 4],
}

impl HttpGet {
    pub(super) fn new(allow: &[String]) -> Self {
        Self {
            allow: AllowList::new(allow),
            clients: Default::default(),
        }
    }

    pub(super) async fn run(self: Arc<Self>, mut call: Call) -> Outcome {
        let args: Args = parse(std::mem::take(&mut call.args))?;
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => Err(CallError::Cancelled),
            outcome = tokio::time::timeout(TIMEOUT, self.fetch(args)) => outcome.unwrap_or_else(|_| {
                Err(failed("http_timeout", format!("no answer within {} s", TIMEOUT.as_secs()), true))
            }),
        }
    }

    async fn fetch(&self, args: Args) -> Outcome {
        let max_bytes = args
            .max_bytes
            .unwrap_or(DEFAULT_MAX_BYTES)
            .min(LARGEST_MAX_BYTES);
        let mut headers = request_headers(&args.headers)?;
        let mut url = Url::parse(&args.url).map_err(|error| {
            failed(
                "invalid_args",
                format!("the URL cannot be read: {error}"),
                false,
            )
        })?;
        for _ in 0..=MAX_REDIRECTS {
            let range = self
                .allow
                .check(&url)
                .map_err(|refused| forbidden(&refused))?;
            let request = self
                .client(range, url.scheme() == "https")?
                .get(url.clone())
                .headers(headers.clone());
            let response = request
                .send()
                .await
                .map_err(|error| unanswered(&url, &error))?;
            let Some(next) = redirected(&url, &response)? else {
                return answer(&url, response, max_bytes).await;
            };
            // What was meant for one server, such as a key in a header, is not for another.
            if next.origin() != url.origin() {
                headers.clear();
            }
            url = next;
        }
        Err(failed(
            "too_many_redirects",
            format!("more than {MAX_REDIRECTS} redirects"),
            false,
        ))
    }

    fn client(&self, range: Range, tls: bool) -> Result<&Client, CallError> {
        let slot = &self.clients[usize::from(range == Range::Private) + 2 * usize::from(tls)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let client = build_client(range, tls, None).map_err(|error| {
            CallError::Unavailable(format!("no {SERVER}.{NAME}: {}", describe_failure(&error)))
        })?;
        Ok(slot.get_or_init(|| client))
    }
}

/// The caller's headers, without those that change what the request is or whom it is for.
fn request_headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, CallError> {
    const OURS: [&str; 7] = [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "upgrade",
        "te",
        "proxy-authorization",
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let usable = HeaderName::try_from(name)
            .ok()
            .filter(|name| !OURS.contains(&name.as_str()));
        // The value may be a secret, so it is not shown.
        let (Some(name), Ok(value)) = (usable, HeaderValue::try_from(value)) else {
            return Err(failed(
                "invalid_args",
                format!("the header {name:?} cannot be sent"),
                false,
            ));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

fn redirected(url: &Url, response: &Response) -> Result<Option<Url>, CallError> {
    use StatusCode as S;
    let redirects = [
        S::MOVED_PERMANENTLY,
        S::FOUND,
        S::SEE_OTHER,
        S::TEMPORARY_REDIRECT,
        S::PERMANENT_REDIRECT,
    ];
    let Some(location) = response
        .headers()
        .get(LOCATION)
        .filter(|_| redirects.contains(&response.status()))
    else {
        return Ok(None);
    };
    let next = location
        .to_str()
        .ok()
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| {
            failed(
                "http_error",
                format!("{} redirects to no usable URL", shown(url)),
                false,
            )
        })?;
    if url.scheme() == "https" && next.scheme() != "https" {
        return Err(failed(
            "forbidden_host",
            format!("{} redirects from https to {}", shown(url), next.scheme()),
            false,
        ));
    }
    Ok(Some(next))
}

async fn answer(url: &Url, mut response: Response, max_bytes: usize) -> Outcome {
    let status = response.status();
    let failure = status.is_client_error() || status.is_server_error();
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| unanswered(url, &error))?
    {
        if body.len() + chunk.len() > max_bytes {
            if failure {
                break;
            }
            let message = format!(
                "the answer of {} is larger than {max_bytes} bytes",
                shown(url)
            );
            return Err(failed("too_large", message, false));
        }
        body.extend_from_slice(&chunk);
    }
    if failure {
        let excerpt: String = String::from_utf8_lossy(&body)
            .trim()
            .chars()
            .take(EXCERPT_CHARS)
            .collect();
        let retryable = status.is_server_error()
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
            );
        let colon = if excerpt.is_empty() { "" } else { ": " };
        return Err(failed(
            "http_status",
            format!("{} answered {status}{colon}{excerpt}", shown(url)),
            retryable,
        ));
    }
    let body = String::from_utf8(body).map_err(|_| {
        failed(
            "not_utf8",
            format!("the answer of {} is not UTF-8 text", shown(url)),
            false,
        )
    })?;
    Ok(
        json!({ "status": status.as_u16(), "headers": header_values(response.headers()), "body": body }),
    )
}

/// Each header once; several values are joined, as HTTP allows.
fn header_values(headers: &HeaderMap) -> Map<String, Value> {
    let join = |name| {
        let values: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()))
            .collect();
        Value::String(values.join(", "))
    };
    headers
        .keys()
        .map(|name| (name.as_str().to_owned(), join(name)))
        .collect()
}

fn unanswered(url: &Url, error: &reqwest::Error) -> CallError {
    if let Some(refused) = find_refusal(error) {
        return forbidden(refused);
    }
    failed(
        "http_error",
        format!("{} gave no answer: {}", shown(url), describe_failure(error)),
        true,
    )
}

fn forbidden(refused: &Refused) -> CallError {
    failed("forbidden_host", refused.to_string(), false)
}

/// The URL without its query, which may hold a secret.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn failed(code: &str, message: String, retryable: bool) -> CallError {
    CallError::Failed {
        code: code.into(),
        message,
        retryable,
        effect: CallEffect::Unknown,
    }
}
