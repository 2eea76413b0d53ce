//! Errors of the engine and the core as problems.

use super::code::ProblemCode;
use super::document::Problem;
use super::next_step::format_next_step;
use super::status::{is_logged_only, status_of_class};
use planwright_core::error::ClassifiedError;
use planwright_core::plan::ReadPlanError;
use planwright_core::policy::PolicyDenial;
use planwright_core::review::{CommentRefusal, ReviewRefusal};
use planwright_core::run::Refusal;
use planwright_engine::passes::SignInError;
use planwright_engine::passkeys::PasskeyError;
use planwright_engine::port::{AcquireError, AppendError, ArtifactError, ModelError, StoreError};
use planwright_engine::{
    CheckCriteriaError, CommandError, CreateError, LoadError, ReviewError, StartRunError,
    UndoRunError, WorkersError, with_causes,
};

impl Problem {
    /// Makes the problem that an error is: its status by kind and code, its next step in the words
    /// of the API.
    fn classified(error: &dyn ClassifiedError) -> Self {
        let class = error.class();
        let answer = status_of_class(class);
        if is_logged_only(class) {
            tracing::error!(error = %with_causes(error), "a request failed");
            return Self::with_code(
                class.code,
                answer.status,
                "the service could not do this; its log says why",
            );
        }
        let mut problem = Self::with_code(class.code, answer.status, describe(error))
            .findings(error.findings().to_vec());
        problem.hint = error.hint().as_ref().and_then(format_next_step);
        match answer.retry_after {
            Some(seconds) => problem.retry(seconds),
            None => problem,
        }
    }
}

/// Formats the detail: the error together with its causes, but for a few that speak to others.
fn describe(error: &dyn ClassifiedError) -> String {
    match error.code() {
        // The error itself speaks of heads and keys, for the log.
        "concurrent_change" => "another caller changed this plan at the same moment".to_owned(),
        // A client did not cancel: the service cancels when it stops.
        "model_cancelled" | "planning_cancelled" => "the service is stopping".to_owned(),
        "model_not_configured" => format!("no model is configured ({error})"),
        _ => with_causes(error),
    }
}

/// Lets `?` turn these errors into problems.
macro_rules! problems_from {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self::classified(&error)
            }
        }
    )*};
}

problems_from!(
    StoreError,
    SignInError,
    PasskeyError,
    ArtifactError,
    LoadError,
    AppendError,
    AcquireError,
    Refusal,
    ReviewRefusal,
    CommentRefusal,
    ReviewError,
    StartRunError,
    CommandError,
    UndoRunError,
    CheckCriteriaError,
    WorkersError,
    // The message of a provider reaches the caller: it is bounded, and holds neither the prompt nor
    // a key.
    ModelError,
    PolicyDenial,
);

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        // The rounds before the model failed say nothing about its failure.
        if let CreateError::Failed(failed) = &error
            && let Some(cause) = &failed.cause
        {
            return Self::classified(cause);
        }
        Self::classified(&error)
    }
}

/// The text is no plan at all.
impl From<ReadPlanError> for Problem {
    fn from(error: ReadPlanError) -> Self {
        let problem = Self::of(ProblemCode::PlanUnreadable, error.to_string());
        match error.suggestion.clone() {
            Some(suggestion) => problem.hint(suggestion),
            None => problem,
        }
        .findings(vec![error.into_finding()])
    }
}
