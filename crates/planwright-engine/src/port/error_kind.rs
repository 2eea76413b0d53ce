//! Kinds, codes and next steps of the errors of ports.

use super::RetainError;
use super::{
    AcquireError, AppendError, ArtifactError, BrokerError, ModelError, SecretError, StillRunning,
    StoreError,
};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::journal::StreamName;

impl ClassifiedError for StoreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Damaged { .. } => ErrorKind::Damaged.with_code("journal_damaged"),
            Self::Sealed { .. } => ErrorKind::Conflict.with_code("journal_sealed"),
            Self::Busy(_) => ErrorKind::Unavailable.with_code("store_busy"),
            Self::Unreachable(_) => ErrorKind::Unavailable.with_code("store_unreachable"),
            Self::Full => ErrorKind::Unavailable.with_code("store_full"),
            Self::ReadOnly => ErrorKind::Unavailable.with_code("store_read_only"),
            Self::NotAdopted(_) => ErrorKind::Forbidden.with_code("store_not_adopted"),
            Self::Lost(_) => ErrorKind::Unavailable.with_code("store_lost"),
            Self::Failed(_) => ErrorKind::Unavailable.with_code("store_failed"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Damaged {
                stream: StreamName::Run(run),
                ..
            } => Some(Hint::RepairRun(run.clone())),
            Self::Damaged { .. } => Some(Hint::ListDamage),
            Self::Sealed { stream, .. } => Some(Hint::RestoreJournal(stream.clone())),
            Self::Busy(_) => Some(Hint::FindStoreHolder),
            Self::Full => Some(Hint::FreeSpace),
            Self::Unreachable(_) | Self::ReadOnly => Some(Hint::DiagnoseStore),
            Self::NotAdopted(_) => Some(Hint::AdoptStore),
            Self::Lost(_) | Self::Failed(_) => Some(Hint::CheckStore),
        }
    }
}

impl ClassifiedError for BrokerError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable(_) => ErrorKind::Unavailable.with_code("broker_unreachable"),
            Self::Refused(_) => ErrorKind::Unavailable.with_code("broker_refused"),
            Self::Unreadable(_) => ErrorKind::Invalid.with_code("notice_unreadable"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        None
    }
}

impl ClassifiedError for RetainError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Changed(_) => ErrorKind::Conflict.with_code("concurrent_change"),
            Self::NotSealed(_) => ErrorKind::Conflict.with_code("journal_not_sealed"),
            Self::BadFile { .. } => ErrorKind::Damaged.with_code("sealed_file_damaged"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Changed(_) => Some(Hint::Repeat),
            Self::NotSealed(_) => None,
            Self::BadFile { .. } => Some(Hint::ListDamage),
            Self::Store(error) => error.hint(),
        }
    }
}

impl ClassifiedError for StillRunning {
    fn class(&self) -> ErrorClass {
        ErrorKind::Conflict.with_code("call_still_running")
    }

    fn hint(&self) -> Option<Hint> {
        Some(Hint::Text(self.advice.clone()))
    }
}

impl ClassifiedError for ArtifactError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Missing(_) => ErrorKind::Damaged.with_code("artifact_missing"),
            Self::Changed(_) => ErrorKind::Damaged.with_code("artifact_changed"),
            Self::Full => ErrorKind::Unavailable.with_code("store_full"),
            Self::Io(_) => ErrorKind::Unavailable.with_code("artifact_store_failed"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Missing(_) | Self::Changed(_) => Some(Hint::ListDamage),
            Self::Full => Some(Hint::FreeSpace),
            Self::Io(_) => Some(Hint::DiagnoseStore),
        }
    }
}

impl ClassifiedError for AppendError {
    fn class(&self) -> ErrorClass {
        match self {
            // Both say that another writer was first; which index noticed it is a detail of the
            // store.
            Self::Conflict { .. } | Self::Duplicate { .. } => {
                ErrorKind::Conflict.with_code("concurrent_change")
            }
            Self::Fenced { .. } => ErrorKind::Conflict.with_code("run_taken_over"),
            Self::Unclaimed => ErrorKind::Conflict.with_code("request_taken_over"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Conflict { .. } | Self::Duplicate { .. } => Some(Hint::Repeat),
            Self::Unclaimed => Some(Hint::Repeat),
            Self::Fenced { .. } => Some(Hint::FollowRun),
            Self::Store(error) => error.hint(),
        }
    }
}

impl ClassifiedError for AcquireError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Held { .. } => ErrorKind::Conflict.with_code("run_held"),
            Self::NoSuchRun(_) => ErrorKind::NotFound.with_code("unknown_run"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Held { .. } => Some(Hint::FollowRun),
            Self::NoSuchRun(_) => Some(Hint::ListPlans),
            Self::Store(error) => error.hint(),
        }
    }
}

impl ClassifiedError for ModelError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotConfigured { .. } => ErrorKind::Conflict.with_code("model_not_configured"),
            Self::Unknown { .. } => ErrorKind::Invalid.with_code("model_unknown"),
            Self::NoKey { .. } => ErrorKind::Conflict.with_code("model_without_key"),
            Self::Refused { .. } => ErrorKind::Unavailable.with_code("model_refused"),
            Self::Unavailable { .. } => ErrorKind::Unavailable.with_code("model_unavailable"),
            Self::TimedOut { .. } => ErrorKind::Unavailable.with_code("model_timed_out"),
            Self::Unreadable { .. } => ErrorKind::Unavailable.with_code("model_unreadable"),
            Self::Cancelled => ErrorKind::Unavailable.with_code("model_cancelled"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotConfigured { .. } => Some(Hint::ConfigureModel),
            Self::Unknown { name, known } => Some(Hint::ChooseModel {
                name: name.clone(),
                known: known.clone(),
            }),
            Self::Refused { .. }
            | Self::Unavailable { .. }
            | Self::TimedOut { .. }
            | Self::Unreadable { .. } => Some(Hint::CheckModels),
            // The message of a missing key names the place where it is looked for.
            Self::NoKey { .. } | Self::Cancelled => None,
        }
    }
}

impl ClassifiedError for SecretError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Missing { .. } => ErrorKind::NotFound.with_code("secret_missing"),
            Self::Unreadable { .. } => ErrorKind::Unavailable.with_code("secret_unreadable"),
            Self::Unusable { .. } => ErrorKind::Invalid.with_code("secret_unusable"),
        }
    }
}
