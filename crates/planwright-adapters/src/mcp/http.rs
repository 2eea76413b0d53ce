//! Messages over HTTP: one bounded client under the protocol's own transport.

use super::message::{self, MAX_BYTES};
use super::oauth::{Bearer, NoToken};
use super::wire::Wire;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use std::collections::{BTreeMap, HashMap};
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;
const MAX_CONCURRENT: usize = 64;
const SESSION: &str = "mcp-session-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
/// The bytes shown of the body of an error.
const EXCERPT_CHARS: usize = 300;

/// The reason why a request over HTTP has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the server answered {status}{excerpt}")]
    Status { status: StatusCode, excerpt: String },
    #[error("the answer is too large")]
    TooLarge,
    #[error("{0}")]
    Broken(String),
    /// There is no token that the server takes: a person has to sign in. It did not look at the
    /// request.
    #[error("{0}")]
    SignIn(String),
    /// No token could be had just now. The request was not sent, or not looked at.
    #[error("{0}")]
    NotRenewed(String),
}

impl From<NoToken> for HttpError {
    fn from(error: NoToken) -> Self {
        match error {
            NoToken::SignIn(reason) => Self::SignIn(reason),
            NoToken::Failed(reason) => Self::NotRenewed(reason),
        }
    }
}

impl From<HttpError> for StreamableHttpError<HttpError> {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// The protocol's transport over our client.
pub(super) fn transport(
    url: &str,
    (headers, bearer): (&BTreeMap<String, String>, Option<Bearer>),
    wire: &Arc<Wire>,
) -> Result<StreamableHttpClientTransport<BoundedClient>, String> {
    let (url, client) = client_for(url, headers)?;
    let client = BoundedClient {
        client,
        signed: SignedRequests(bearer),
        wire: Arc::clone(wire),
    };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_concurrent_requests(MAX_CONCURRENT)
        .control_request_timeout(Duration::from_secs(2))
        .max_sse_event_size(MAX_BYTES)
        // The machinery would answer calls under way as failed, though their outcome is unknown.
        .reinit_on_expired_session(false);
    let mut retry = FixedInterval::default();
    retry.max_times = Some(3);
    retry.duration = Duration::from_millis(500);
    config.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// A client for the server at this address, which gets these headers with every request.
pub(super) fn client_for(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<(Url, Client), String> {
    let url = checked_url(url)?;
    crate::tls::install_provider();
    let plain = url.scheme() == "http";
    let mut builder = Client::builder()
        .user_agent(concat!("planwright/", env!("CARGO_PKG_VERSION")))
        .default_headers(custom_headers(headers)?)
        .redirect(redirect::Policy::custom(same_origin_only))
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT);
    if plain {
        builder = builder.no_proxy().tls_certs_only([]);
    } else {
        builder = builder.https_only(true);
    }
    let client = builder
        .build()
        .map_err(|error| format!("no HTTP client: {}", chain(&error)))?;
    Ok((url, client))
}

/// Checks the address: a request may hold secrets, so it leaves the machine only encrypted.
fn checked_url(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("its URL cannot be read: {error}"))?;
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']'])
        .to_owned();
    let loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if loopback => Ok(url),
        "http" => {
            Err("its URL is plain http, which is allowed to this machine only: use https".into())
        }
        other => Err(format!("its URL is neither https nor http but `{other}`")),
    }
}

/// The operator's headers, without those the protocol sets itself.
fn custom_headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    const OURS: [&str; 7] = [
        "accept",
        "content-type",
        "content-length",
        "host",
        "connection",
        "transfer-encoding",
        "last-event-id",
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let usable = HeaderName::try_from(name)
            .ok()
            .filter(|name| !OURS.contains(&name.as_str()) && !name.as_str().starts_with("mcp-"));
        // The value may be a secret, so it is not shown.
        let (Some(name), Ok(mut value)) = (usable, HeaderValue::try_from(value)) else {
            return Err(format!("the header {name:?} cannot be sent"));
        };
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// A redirect that keeps the method and the origin, such as to a path with a slash at its end, does
/// no harm.
fn same_origin_only(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let same = attempt
        .previous()
        .last()
        .is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_method && same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// An HTTP client that reads no more than fits.
#[derive(Debug, Clone)]
pub(super) struct BoundedClient {
    client: Client,
    signed: SignedRequests,
    wire: Arc<Wire>,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type PostResult = Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>>;

impl StreamableHttpClient for BoundedClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> PostResult {
        let in_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?;
        let request = self
            .client
            .post(uri.as_ref())
            .header(CONTENT_TYPE, JSON)
            .body(body);
        let response = self.send(request, session_id, custom_headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if !status.is_success() {
            return refused(response, &message, id, in_session).await;
        }
        let Some(id) = id else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        if is_type(&response, EVENT_STREAM) {
            let events = self.events(response, Some(id));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = bounded_body(response).await?;
        let answer = serde_json::from_slice(&body)
            .map_err(|error| HttpError::Broken(format!("the answer is no message: {error}")))?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        let request = self.client.delete(uri.as_ref());
        self.send(request, Some(session_id), custom_headers).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Self::Error>> {
        let mut request = self.client.get(uri.as_ref());
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = self.send(request, session_id, custom_headers).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED || !is_type(&response, EVENT_STREAM)
        {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            return Err(HttpError::Status {
                status: response.status(),
                excerpt: String::new(),
            }
            .into());
        }
        Ok(self.events(response, None))
    }
}

impl BoundedClient {
    async fn send(
        &self,
        request: RequestBuilder,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<Response, HttpError> {
        let mut request = request.header(ACCEPT, format!("{JSON}, {EVENT_STREAM}"));
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        self.signed.send(request).await
    }

    /// The events of an answer. One that is too large ends the stream, and the call it was for.
    fn events(
        &self,
        response: Response,
        id: Option<RequestId>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let wire = Arc::clone(&self.wire);
        let bytes = bytes_of(response).map_err(|error| std::io::Error::other(chain(&error)));
        let logged = (Arc::clone(&self.wire), id.clone());
        let mut size = EventSize::default();
        let bounded = bytes.and_then(move |chunk| {
            let fits = size.fits(&chunk);
            if !fits && let Some(id) = &id {
                wire.too_large(id);
            }
            futures::future::ready(if fits {
                Ok(chunk)
            } else {
                Err(std::io::Error::other(HttpError::TooLarge))
            })
        });
        let (wire, during) = logged;
        let events = SseStream::from_bytes_stream(bounded);
        events
            .filter(move |event| {
                let taken = event
                    .as_ref()
                    .is_ok_and(|event| take_log(&wire, during.as_ref(), event));
                futures::future::ready(!taken)
            })
            .boxed()
    }
}

/// Takes a message of the server's log: only the stream it came on says which call it is about.
fn take_log(wire: &Wire, during: Option<&RequestId>, event: &Sse) -> bool {
    const METHOD: &str = "notifications/message";
    let (Some(id), Some(data)) = (during, &event.data) else {
        return false;
    };
    if !data.contains(METHOD) || message::measure(data.as_bytes()).is_err() {
        return false;
    }
    let Ok(said) = serde_json::from_str::<Value>(data) else {
        return false;
    };
    if said["method"] != METHOD {
        return false;
    }
    wire.pass_log(Some(id), &said["params"]);
    true
}

/// Counts the bytes of the event that is being received.
#[derive(Debug, Default)]
pub(super) struct EventSize {
    bytes: usize,
    line_is_empty: bool,
}

impl EventSize {
    pub(super) fn fits(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            self.bytes += 1;
            match byte {
                b'\n' if self.line_is_empty => self.bytes = 0,
                b'\n' => self.line_is_empty = true,
                b'\r' => {}
                _ => self.line_is_empty = false,
            }
            if self.bytes > MAX_BYTES {
                return false;
            }
        }
        true
    }
}

/// Requests that carry the token of a person's sign-in, if there is one.
#[derive(Debug, Clone)]
pub(super) struct SignedRequests(pub(super) Option<Bearer>);

impl SignedRequests {
    /// Sends a request. A server that refuses a token has not looked at the request, so it is sent
    /// once more with another token, if there is one.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        let Some(bearer) = &self.0 else {
            return deliver(request).await;
        };
        let again = request.try_clone();
        let token = bearer.token().await?;
        let response = deliver(request.bearer_auth(&token)).await?;
        let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(response);
        };
        let other = bearer.token_instead_of(&token).await?;
        deliver(again.bearer_auth(other)).await
    }
}

async fn deliver(request: RequestBuilder) -> Result<Response, HttpError> {
    request.send().await.map_err(|error| {
        if error.is_connect() || error.is_builder() {
            HttpError::Unreachable(chain(&error))
        } else {
            HttpError::Broken(chain(&error))
        }
    })
}

/// An answer that is no success may still hold the server's own error. It belongs to the request,
/// regardless of the number it has.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    id: Option<RequestId>,
    in_session: bool,
) -> PostResult {
    let status = response.status();
    let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let body = bounded_body(response).await.unwrap_or_default();
    if in_session && status == StatusCode::BAD_REQUEST && says_session_is_lost(&body) {
        return Err(StreamableHttpError::SessionExpired);
    }
    let discovers = matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::DiscoverRequest(_)));
    if let Some(id) = id.filter(|_| !unauthorized) {
        if let Ok(ServerJsonRpcMessage::Error(error)) = serde_json::from_slice(&body) {
            let answer = ServerJsonRpcMessage::error(error.error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        if discovers && status.is_client_error() {
            let error = ErrorData::new(ErrorCode::INVALID_REQUEST, format!("HTTP {status}"), None);
            let answer = ServerJsonRpcMessage::error(error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    let text: String = String::from_utf8_lossy(&body)
        .trim()
        .chars()
        .take(EXCERPT_CHARS)
        .collect();
    let excerpt = if text.is_empty() {
        text
    } else {
        format!(": {text}")
    };
    Err(HttpError::Status { status, excerpt }.into())
}

/// Returns whether a server that refuses a request in a session says that it does not know the
/// session. The protocol has a status for that, 404, and several libraries use another: a server that
/// was started again knows no session, and was not even initialized. None of them looks at the
/// request before it says so.
fn says_session_is_lost(body: &[u8]) -> bool {
    const WORDS: [&str; 6] = [
        "no valid session",
        "session not found",
        "invalid session",
        "unknown session",
        "session expired",
        "server not initialized",
    ];
    let said = serde_json::from_slice::<Value>(body).ok();
    let said = said.as_ref().and_then(|said| {
        let error = said.get("error")?;
        error.get("message").unwrap_or(error).as_str()
    });
    said.is_some_and(|said| {
        let said = said.to_ascii_lowercase();
        WORDS.iter().any(|words| said.contains(words))
    })
}

pub(super) async fn bounded_body(response: Response) -> Result<Vec<u8>, HttpError> {
    let mut bytes = std::pin::pin!(bytes_of(response));
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(|error| HttpError::Broken(chain(&error)))?;
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(HttpError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    message::measure(&body).map_err(|_| HttpError::TooLarge)?;
    Ok(body)
}

pub(super) fn bytes_of(
    response: Response,
) -> impl Stream<Item = reqwest::Result<bytes::Bytes>> + Send + 'static {
    futures::stream::try_unfold(response, |mut response| async move {
        Ok(response.chunk().await?.map(|chunk| (chunk, response)))
    })
}

pub(super) fn is_type(response: &Response, mime: &str) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|given| {
        given
            .as_bytes()
            .to_ascii_lowercase()
            .starts_with(mime.as_bytes())
    })
}

/// Describes an error down to the first cause, without the URL, which may hold a secret.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let causes: Vec<String> = std::iter::successors(error.source(), |error| (*error).source())
        .map(ToString::to_string)
        .collect();
    if causes.is_empty() {
        "the request failed".into()
    } else {
        causes.join(": ")
    }
}
