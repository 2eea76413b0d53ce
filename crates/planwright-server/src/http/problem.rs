//! Errors as RFC 9457 problem documents. The HTTP status of every error of the engine is decided
//! here and nowhere else.

use crate::observe::TraceId;
use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use planwright_core::plan::{Finding, ReadPlanError};
use planwright_core::policy::PolicyDenial;
use planwright_core::review::{CommentRefusal, Refusal as ReviewRefusal};
use planwright_core::run::Refusal;
use planwright_engine::port::{AcquireError, AppendError, ArtifactError, ModelError, StoreError};
use planwright_engine::{
    CheckCriteriaError, CommandError, CreateError, LoadError, ReviewError, StartRunError,
    UndoRunError, with_causes,
};
use serde::Serialize;
use std::error::Error;
use utoipa::ToSchema;

/// What a route returns.
pub type HttpResult<T> = Result<T, Problem>;

/// Why a request was not done. Nothing was changed, unless it says otherwise.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A page about this kind of problem, or `about:blank`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
    /// What may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(flatten)]
    more: Box<ProblemDetails>,
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
    #[serde(skip)]
    retry_after: Option<u64>,
    #[serde(skip)]
    allow: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
            more: Box::default(),
        }
    }

    /// The same under another status.
    #[must_use]
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            ..self
        }
    }

    /// The methods that can be used instead.
    pub(super) fn not_allowed(methods: &str) -> Self {
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

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// Come again after this many seconds.
    pub fn later(status: StatusCode, detail: impl Into<String>, seconds: u64) -> Self {
        Self::new(status, detail).retry(seconds)
    }

    fn retry(mut self, seconds: u64) -> Self {
        self.more.retry_after = Some(seconds);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.more.findings = findings;
        self
    }

    /// The status, and the error with all that it has to say about its causes.
    fn caused(status: StatusCode, error: &dyn Error) -> Self {
        Self::new(status, with_causes(error))
    }

    /// The world failed. What exactly is for the operator's log, not for the caller.
    fn fault(error: &dyn Error) -> Self {
        tracing::error!(error = %Self::caused(StatusCode::INTERNAL_SERVER_ERROR, error).detail, "a request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service could not do this; its log says why",
        )
    }

    fn damaged(error: &dyn Error) -> Self {
        Self::caused(StatusCode::INTERNAL_SERVER_ERROR, error).hint(
            "other plans are not affected; planwright verify lists everything that is damaged",
        )
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

/// Gives every error its instance and trace, and those of the framework the same form as ours.
pub(super) async fn layer(request: Request, next: Next) -> Response {
    let trace = request
        .extensions()
        .get::<TraceId>()
        .map(ToString::to_string);
    let instance = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
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

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { .. } => Self::damaged(&error),
            StoreError::Failed(_) => Self::fault(&error),
        }
    }
}

impl From<ArtifactError> for Problem {
    fn from(error: ArtifactError) -> Self {
        match error {
            ArtifactError::Missing(_) | ArtifactError::Changed(_) => Self::damaged(&error),
            ArtifactError::Io(_) => Self::fault(&error),
        }
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NoSuchPlan(_) | LoadError::NoSuchRun(_) => {
                Self::caused(StatusCode::NOT_FOUND, &error)
            }
            LoadError::Store(error) => error.into(),
            LoadError::Damaged { .. } | LoadError::Plan(_) => Self::damaged(&error),
        }
    }
}

impl From<AppendError> for Problem {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Conflict { .. } | AppendError::Duplicate { .. } => {
                Self::conflict("another caller changed this plan at the same moment")
                    .hint("look at it again and repeat the request")
            }
            AppendError::Fenced { .. } => Self::caused(StatusCode::CONFLICT, &error),
            AppendError::Store(error) => error.into(),
        }
    }
}

impl From<AcquireError> for Problem {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Held { run, .. } => {
                Self::conflict(format!("another process executes {run}"))
            }
            AcquireError::NoSuchRun(_) => Self::caused(StatusCode::NOT_FOUND, &error),
            AcquireError::Store(error) => error.into(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::UnknownStep(_) => StatusCode::NOT_FOUND,
            Refusal::BadInput { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::MayNotAnswer(_)
            | Refusal::MayNotApprove(_)
            | Refusal::MayNot { .. }
            | Refusal::FourEyes(_) => StatusCode::FORBIDDEN,
            Refusal::RunEnded { .. }
            | Refusal::NotExecuting
            | Refusal::NotPaused
            | Refusal::CannotPause { .. }
            | Refusal::NothingToApprove { .. }
            | Refusal::NothingToResolve { .. }
            | Refusal::NothingToAnswer { .. }
            | Refusal::OtherQuestion { .. }
            | Refusal::CannotStart { .. }
            | Refusal::CannotSkip { .. }
            | Refusal::NotInFlight { .. }
            | Refusal::InFlight { .. }
            | Refusal::Stale { .. }
            | Refusal::ApprovalExpired { .. }
            | Refusal::NotEnded { .. }
            | Refusal::NothingToUndo
            | Refusal::NothingToReflectOn { .. }
            | Refusal::AlreadyUndone { .. } => StatusCode::CONFLICT,
        };
        Self::caused(status, &refusal)
    }
}

impl From<ReviewRefusal> for Problem {
    fn from(refusal: ReviewRefusal) -> Self {
        match refusal {
            ReviewRefusal::Decision(refusal) => refusal.into(),
            ReviewRefusal::Deleted => Self::caused(StatusCode::NOT_FOUND, &refusal),
            ReviewRefusal::Exists(ref id) => {
                let hint = format!("PATCH /plan/{id} makes a new version of it");
                Self::caused(StatusCode::CONFLICT, &refusal).hint(hint)
            }
            ReviewRefusal::FourEyes(_)
            | ReviewRefusal::PolicyAsks(_)
            | ReviewRefusal::MayNotRevoke { .. } => Self::caused(StatusCode::FORBIDDEN, &refusal),
            ReviewRefusal::NothingToDecide(_)
            | ReviewRefusal::NothingToRevoke(_)
            | ReviewRefusal::Rejected
            | ReviewRefusal::NotApproved
            | ReviewRefusal::Changed { .. }
            | ReviewRefusal::Executing
            | ReviewRefusal::Conflict { .. }
            | ReviewRefusal::Draft
            | ReviewRefusal::NotADraft(_)
            | ReviewRefusal::NoSteps
            | ReviewRefusal::Fallback
            | ReviewRefusal::TooManyVersions(_)
            | ReviewRefusal::ChangesRequested
            | ReviewRefusal::PlanExpired
            | ReviewRefusal::Archived
            | ReviewRefusal::NotArchived
            | ReviewRefusal::NotOver(_)
            | ReviewRefusal::OpenThreads { .. } => Self::caused(StatusCode::CONFLICT, &refusal),
            ReviewRefusal::NoSuchVersion(_) => Self::caused(StatusCode::NOT_FOUND, &refusal),
            ReviewRefusal::ReasonTooLong(_) => {
                Self::caused(StatusCode::UNPROCESSABLE_ENTITY, &refusal)
            }
            ReviewRefusal::Comment(refusal) => refusal.into(),
            ReviewRefusal::Expired { .. } => Self::caused(StatusCode::CONFLICT, &refusal).hint(
                "look at the plan again and approve it again: an approval has to be used in time",
            ),
            ReviewRefusal::Revoked { .. } => Self::caused(StatusCode::CONFLICT, &refusal).hint(
                "a person with the role of approver has to look at the plan and approve it again",
            ),
            ReviewRefusal::NotEnough { .. } => Self::caused(StatusCode::CONFLICT, &refusal)
                .hint("another person has to approve it too"),
        }
    }
}

impl From<CommentRefusal> for Problem {
    fn from(refusal: CommentRefusal) -> Self {
        let status = match refusal {
            CommentRefusal::NoSuchComment(_) | CommentRefusal::NoSuchStep(_) => {
                StatusCode::NOT_FOUND
            }
            CommentRefusal::MayNotResolve(_) => StatusCode::FORBIDDEN,
            CommentRefusal::TooMany | CommentRefusal::Already(_) | CommentRefusal::Duplicate(_) => {
                StatusCode::CONFLICT
            }
            CommentRefusal::Empty
            | CommentRefusal::TooLong { .. }
            | CommentRefusal::ReplyWithStep => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::caused(status, &refusal)
    }
}

impl From<ReviewError> for Problem {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Load(error) => error.into(),
            ReviewError::Refused(refusal) => refusal.into(),
            ReviewError::Invalid(findings) => invalid(findings),
            ReviewError::MissingTools(_) => missing_tools(&error),
            ReviewError::Denied(denied) => denied.into(),
            ReviewError::Edit(ref edit) => {
                let hint = edit.hint();
                Self {
                    hint,
                    ..Self::caused(StatusCode::UNPROCESSABLE_ENTITY, &error)
                }
            }
            ReviewError::BadChoice(_) | ReviewError::OtherPlan { .. } => {
                Self::caused(StatusCode::UNPROCESSABLE_ENTITY, &error)
            }
            ReviewError::Artifact(error) => error.into(),
            ReviewError::Append(error) => error.into(),
        }
    }
}

impl From<StartRunError> for Problem {
    fn from(error: StartRunError) -> Self {
        match error {
            StartRunError::Load(error) => error.into(),
            StartRunError::Invalid(findings) => invalid(findings),
            StartRunError::MissingTools(_) => missing_tools(&error),
            StartRunError::Refused(refusal) => refusal.into(),
            StartRunError::Denied(denied) => denied.into(),
            StartRunError::BadChoice(_)
            | StartRunError::Unsupported(_)
            | StartRunError::MissingExecutor(_) => {
                Self::caused(StatusCode::UNPROCESSABLE_ENTITY, &error)
            }
            StartRunError::UnknownStep(_) => Self::caused(StatusCode::NOT_FOUND, &error),
            StartRunError::Edited { .. } => Self::caused(StatusCode::CONFLICT, &error)
                .hint("cancel the run and start the new version, or fork it to keep its results"),
            StartRunError::Changed { .. } | StartRunError::ToolsChanged { .. } => {
                Self::caused(StatusCode::CONFLICT, &error)
                    .hint("look at the plan again and approve what it does now")
            }
            StartRunError::NothingToResume(_)
            | StartRunError::AlreadyExecuting { .. }
            | StartRunError::Ended { .. }
            | StartRunError::BeingUndone { .. }
            | StartRunError::ChildRun { .. } => Self::caused(StatusCode::CONFLICT, &error),
            StartRunError::Stopping => {
                Self::caused(StatusCode::SERVICE_UNAVAILABLE, &error).retry(5)
            }
            StartRunError::Artifact(error) => error.into(),
            StartRunError::Acquire(error) => error.into(),
            StartRunError::Append(error) => error.into(),
        }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Load(error) => error.into(),
            CommandError::Refused(refusal) => refusal.into(),
            CommandError::RefusedElsewhere(reason) => Self::conflict(reason),
            CommandError::NoAnswer(_) => {
                Self::caused(StatusCode::SERVICE_UNAVAILABLE, &error).retry(5)
            }
            CommandError::Acquire(error) => error.into(),
            CommandError::Append(error) => error.into(),
            CommandError::Artifact(error) => error.into(),
        }
    }
}

impl From<UndoRunError> for Problem {
    fn from(error: UndoRunError) -> Self {
        match error {
            UndoRunError::Load(error) => error.into(),
            UndoRunError::Refused(refusal) => refusal.into(),
            UndoRunError::Start(error) => error.into(),
            UndoRunError::NotApproved | UndoRunError::Plan(_) => {
                Self::caused(StatusCode::CONFLICT, &error)
            }
            UndoRunError::Value(_) => Self::damaged(&error),
        }
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::NoGoal | CreateError::GoalTooLong { .. } => {
                Self::caused(StatusCode::BAD_REQUEST, &error)
            }
            CreateError::Prompt(_) => Self::fault(&error),
            CreateError::NoSuchStep(_) => Self::caused(StatusCode::UNPROCESSABLE_ENTITY, &error),
            CreateError::NothingInScope(_) => {
                Self::caused(StatusCode::CONFLICT, &error).hint("`anyTool` plans with all tools")
            }
            CreateError::Executing(_) | CreateError::OutcomeUnknown(_) => {
                Self::caused(StatusCode::CONFLICT, &error)
            }
            CreateError::Cancelled(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping")
            }
            CreateError::Failed(failed) => match failed.cause {
                Some(cause) => cause.into(),
                None => Self::new(StatusCode::BAD_GATEWAY, failed.to_string())
                    .hint("say the goal in other words, or post a plan with steps"),
            },
            CreateError::Review(error) => error.into(),
        }
    }
}

impl From<CheckCriteriaError> for Problem {
    fn from(error: CheckCriteriaError) -> Self {
        match error {
            CheckCriteriaError::Load(error) => error.into(),
            CheckCriteriaError::NoCriteria => Self::caused(StatusCode::CONFLICT, &error),
            CheckCriteriaError::Refused(refusal) => refusal.into(),
            CheckCriteriaError::Append(error) => error.into(),
        }
    }
}

/// What a provider says is told to the caller: it is bounded, and holds neither the prompt nor a
/// key.
impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Self {
        match &error {
            ModelError::NotConfigured { .. } => {
                Self::new(StatusCode::CONFLICT, format!("no model is configured ({error})"))
                    .hint("the operator names one under [models] in planwright.toml; planwright models shows what is there")
            }
            ModelError::Unknown { known, .. } if known.is_empty() => Self::caused(StatusCode::BAD_REQUEST, &error),
            ModelError::Unknown { known, .. } => {
                Self::caused(StatusCode::BAD_REQUEST, &error).hint(format!("there are {}", known.join(", ")))
            }
            ModelError::NoKey { .. } => Self::caused(StatusCode::CONFLICT, &error),
            ModelError::Refused { .. }
            | ModelError::Unavailable { .. }
            | ModelError::TimedOut { .. }
            | ModelError::Unreadable { .. } => Self::caused(StatusCode::BAD_GATEWAY, &error),
            ModelError::Cancelled => Self::later(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping", 5),
        }
    }
}

impl From<PolicyDenial> for Problem {
    fn from(denied: PolicyDenial) -> Self {
        Self::caused(StatusCode::FORBIDDEN, &denied)
            .hint("the plan's `policy` says which rule decided about each step, and why")
    }
}

/// The text is no plan at all.
impl From<ReadPlanError> for Problem {
    fn from(error: ReadPlanError) -> Self {
        let problem = Self::bad_request(error.to_string());
        match error.suggestion.clone() {
            Some(suggestion) => problem.hint(suggestion),
            None => problem,
        }
        .findings(vec![error.into_finding()])
    }
}

fn invalid(findings: Vec<Finding>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the plan is not valid").findings(findings)
}

fn missing_tools(error: &dyn Error) -> Problem {
    Problem::caused(StatusCode::CONFLICT, error).hint("GET /tools lists what there is")
}
