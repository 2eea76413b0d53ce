//! The problem document of RFC 9457, and the layer that gives every error its form.

use super::code::ProblemCode;
use crate::http::openapi::ProblemCodeShape;
use crate::observe::TraceId;
use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use planwright_core::plan::Finding;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// What a route returns.
pub type HttpResult<T> = Result<T, Problem>;

/// Why a request was not done. Nothing was changed, unless it says otherwise.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The name of this kind of problem: `urn:planwright:problem:` and its code.
    #[serde(rename = "type")]
    #[schema(value_type = String, pattern = "^urn:planwright:problem:[a-z_]+$")]
    kind: ProblemType,
    /// What a program goes by. The texts may change, a code does not.
    #[schema(value_type = ProblemCodeShape)]
    pub code: &'static str,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
    /// What may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(flatten)]
    more: Box<ProblemDetails>,
}

/// The code of a problem as the URI that its type is.
#[derive(Debug, Clone, Copy)]
struct ProblemType(&'static str);

impl Serialize for ProblemType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:planwright:problem:{}", self.0))
    }
}

/// What not every problem has to say.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProblemDetails {
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// What is wrong with the plan, when that is the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<planwright_api::FindingShape>)]
    findings: Vec<Finding>,
    /// The plan that the request changed, when its answer was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    /// The run that the request began or changed, when its answer was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(skip)]
    retry_after: Option<u64>,
    #[serde(skip)]
    allow: Option<String>,
}

impl Problem {
    /// A problem of which clients learn nothing but its status and the words.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::of(ProblemCode::of_status(status), detail).with_status(status)
    }

    /// A problem with a code of its own.
    pub fn of(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self::with_code(code.as_str(), code.status(), detail)
    }

    /// A problem with the code of an error of the engine.
    pub(super) fn with_code(
        code: &'static str,
        status: StatusCode,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind: ProblemType(code),
            code,
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
            more: Box::default(),
        }
    }

    /// The same under another status.
    #[must_use]
    pub(in crate::http) fn with_status(self, status: StatusCode) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            ..self
        }
    }

    /// The methods that can be used instead.
    pub(in crate::http) fn not_allowed(methods: &str) -> Self {
        let mut problem = plain(StatusCode::METHOD_NOT_ALLOWED);
        problem.more.allow = Some(methods.to_owned());
        problem
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// Come again after this many seconds.
    pub fn later(code: ProblemCode, detail: impl Into<String>, seconds: u64) -> Self {
        Self::of(code, detail).retry(seconds)
    }

    /// Sets the header `Retry-After`.
    #[must_use]
    pub(super) fn retry(mut self, seconds: u64) -> Self {
        self.more.retry_after = Some(seconds);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names what the request has changed, although it is answered with a problem.
    #[must_use]
    pub(in crate::http) fn done(mut self, plan: Option<String>, run: Option<String>) -> Self {
        self.more.plan_id = plan;
        self.more.run_id = run;
        self
    }

    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.more.findings = findings;
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.more.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(methods) = self
            .more
            .allow
            .as_deref()
            .and_then(|methods| HeaderValue::from_str(methods).ok())
        {
            headers.insert(ALLOW, methods);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"planwright\""),
            );
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Marks an answer with the status of an error that is no problem document.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct OwnForm;

/// Gives every error its instance and trace, and those of the framework the same form as ours.
pub(in crate::http) async fn layer(request: Request, next: Next) -> Response {
    let trace = request
        .extensions()
        .get::<TraceId>()
        .map(ToString::to_string);
    let instance = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if !failed || response.extensions().get::<OwnForm>().is_some() {
        return response;
    }
    let mut problem = response
        .extensions()
        .get::<Problem>()
        .cloned()
        .unwrap_or_else(|| plain(status));
    problem.more.instance = Some(instance);
    problem.more.trace_id = trace;
    let mut answer = problem.into_response();
    // What the framework added, as the methods that are allowed, stays.
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE && name != http::header::CONTENT_LENGTH {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}

fn plain(status: StatusCode) -> Problem {
    let detail = match status {
        StatusCode::NOT_FOUND => "there is nothing here",
        StatusCode::METHOD_NOT_ALLOWED => {
            "this cannot be done here; the header `Allow` says what can"
        }
        StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than is read here",
        StatusCode::REQUEST_TIMEOUT => "the request did not arrive in time",
        _ => status
            .canonical_reason()
            .unwrap_or("the request was not done"),
    };
    Problem::new(status, detail)
}
