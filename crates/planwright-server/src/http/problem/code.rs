//! The codes of refusals that only the service knows: what a request is, and not what a plan says.
//!
//! Errors of the engine bring their own codes. Both stand in `docs/errors/codes.md`, which the OpenAPI
//! document lists and a test compares with this table.

use http::StatusCode;

/// Declares the codes with their words and statuses, so that none of the three can drift apart.
macro_rules! problem_codes {
    ($($(#[$doc:meta])* $Variant:ident = $word:literal, $status:ident;)+) => {
        /// Why a request was not done, in a word that stays. No client has to read the sentences.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemCode {
            $($(#[$doc])* $Variant,)+
        }

        impl ProblemCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// Returns the word that other programs know.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)+
                }
            }

            /// Returns the status of an answer with this code.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$Variant => StatusCode::$status,)+
                }
            }
        }
    };
}

problem_codes! {
    /// The request cannot be read as it is, for a reason that its detail says.
    BadRequest = "bad_request", BAD_REQUEST;
    BadJson = "bad_json", BAD_REQUEST;
    BadBody = "bad_body", BAD_REQUEST;
    BadParameter = "bad_parameter", BAD_REQUEST;
    BadCursor = "bad_cursor", BAD_REQUEST;
    BadId = "bad_id", BAD_REQUEST;
    BadKey = "bad_idempotency_key", BAD_REQUEST;
    BadPatch = "bad_patch", BAD_REQUEST;
    PlanUnreadable = "plan_unreadable", BAD_REQUEST;
    GoalMissing = "goal_missing", BAD_REQUEST;
    GoalTooLong = "goal_too_long", BAD_REQUEST;
    Unauthorized = "unauthorized", UNAUTHORIZED;
    SignInRefused = "sign_in_refused", UNAUTHORIZED;
    Forbidden = "forbidden", FORBIDDEN;
    NotPermitted = "not_permitted", FORBIDDEN;
    HostRefused = "host_refused", FORBIDDEN;
    OriginRefused = "origin_refused", FORBIDDEN;
    NotFound = "not_found", NOT_FOUND;
    PlanDeleted = "plan_deleted", NOT_FOUND;
    UnknownRun = "unknown_run", NOT_FOUND;
    UnknownStep = "unknown_step", NOT_FOUND;
    UnknownComment = "unknown_comment", NOT_FOUND;
    NoValue = "no_value", NOT_FOUND;
    NothingSent = "nothing_sent", NOT_FOUND;
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE;
    BodyTooSlow = "body_too_slow", REQUEST_TIMEOUT;
    Conflict = "conflict", CONFLICT;
    NoRun = "no_run", CONFLICT;
    NoSession = "no_session", CONFLICT;
    SubPlanNotBegun = "sub_plan_not_begun", CONFLICT;
    RunNotEnded = "run_not_ended", CONFLICT;
    NothingToAnswer = "nothing_to_answer", CONFLICT;
    BeingUndone = "being_undone", CONFLICT;
    PatchTestFailed = "patch_test_failed", CONFLICT;
    RequestInProgress = "request_in_progress", CONFLICT;
    RequestInterrupted = "request_interrupted", CONFLICT;
    AnswerLost = "answer_lost", CONFLICT;
    StateChanged = "state_changed", PRECONDITION_FAILED;
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE;
    AddressTooLong = "address_too_long", URI_TOO_LONG;
    UnsupportedType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE;
    Unprocessable = "unprocessable", UNPROCESSABLE_ENTITY;
    FixedId = "edit_fixed_id", UNPROCESSABLE_ENTITY;
    PatchPathMissing = "patch_path_missing", UNPROCESSABLE_ENTITY;
    PatchInside = "patch_inside", UNPROCESSABLE_ENTITY;
    BadLateChoice = "bad_late_choice", UNPROCESSABLE_ENTITY;
    PolicyUnreadable = "policy_unreadable", UNPROCESSABLE_ENTITY;
    NumberTooLarge = "number_too_large", UNPROCESSABLE_ENTITY;
    KeyReused = "key_reused", UNPROCESSABLE_ENTITY;
    StateNeeded = "state_needed", PRECONDITION_REQUIRED;
    TooManyRequests = "too_many_requests", TOO_MANY_REQUESTS;
    TooManyKeys = "too_many_keys", TOO_MANY_REQUESTS;
    TooManyAnswers = "too_many_answers", TOO_MANY_REQUESTS;
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE;
    Internal = "internal_error", INTERNAL_SERVER_ERROR;
    JournalDamaged = "journal_damaged", INTERNAL_SERVER_ERROR;
    BadGateway = "bad_gateway", BAD_GATEWAY;
    ModelTimedOut = "model_timed_out", BAD_GATEWAY;
    Unavailable = "unavailable", SERVICE_UNAVAILABLE;
    TooBusy = "too_busy", SERVICE_UNAVAILABLE;
    NoIdentityProvider = "identity_provider_unavailable", SERVICE_UNAVAILABLE;
    TooManyStreams = "too_many_streams", SERVICE_UNAVAILABLE;
    TooManyTickets = "too_many_tickets", SERVICE_UNAVAILABLE;
}

impl ProblemCode {
    /// The code of an answer of which nothing but its status is known: the first that has it.
    pub(super) fn of_status(status: StatusCode) -> Self {
        let mut all = Self::ALL.iter().copied();
        match all.find(|code| code.status() == status) {
            Some(code) => code,
            None if status.is_server_error() => Self::Internal,
            None => Self::BadRequest,
        }
    }
}
