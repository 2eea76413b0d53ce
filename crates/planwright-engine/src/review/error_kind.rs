//! Kinds, codes and next steps of the errors of reviews.

use super::missing_executor::MissingExecutor;
use super::plans::ReviewError;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::plan::Finding;

impl ClassifiedError for ReviewError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Load(error) => error.class(),
            Self::Refused(refusal) => refusal.class(),
            Self::Invalid(_) => ErrorKind::Invalid.with_code("plan_invalid"),
            Self::Edit(error) => error.class(),
            Self::OtherPlan { .. } => ErrorKind::Invalid.with_code("other_plan"),
            Self::MissingTools(_) => ErrorKind::Invalid.with_code("missing_tools"),
            Self::Denied(denial) => denial.class(),
            Self::BadChoice(_) => ErrorKind::Invalid.with_code("bad_late_choice"),
            Self::StoredTooMuch { .. } => ErrorKind::Forbidden.with_code("stored_too_much"),
            Self::Artifact(error) => error.class(),
            Self::Append(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Load(error) => error.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::Edit(error) => error.hint(),
            Self::OtherPlan { .. } => Some(Hint::ImportAsNewPlan),
            Self::MissingTools(_) => Some(Hint::ListTools),
            Self::Denied(denial) => denial.hint(),
            Self::StoredTooMuch { .. } => Some(Hint::RaiseStoredBytes),
            Self::Artifact(error) => error.hint(),
            Self::Append(error) => error.hint(),
            // The findings and the text of a bad choice say what to change.
            Self::Invalid(_) | Self::BadChoice(_) => None,
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Invalid(findings) => findings,
            _ => &[],
        }
    }
}

impl ClassifiedError for MissingExecutor {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoModel { .. } => ErrorKind::Invalid.with_code("step_without_model"),
            Self::Model { .. } => ErrorKind::Invalid.with_code("step_model_unusable"),
            Self::NoExecutor { .. } => ErrorKind::Invalid.with_code("step_without_executor"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoModel { .. } | Self::Model { .. } => Some(Hint::ListModels),
            Self::NoExecutor { executor, .. } => Some(Hint::TrustExecutor {
                executor: executor.clone(),
            }),
        }
    }
}
