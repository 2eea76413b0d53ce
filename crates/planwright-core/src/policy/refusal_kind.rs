//! Kinds and codes of the refusals of policy.

use super::{GrantRefusal, PolicyDenial};
use crate::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};

impl ClassifiedError for PolicyDenial {
    fn class(&self) -> ErrorClass {
        ErrorKind::Forbidden.with_code("policy_denied")
    }

    fn hint(&self) -> Option<Hint> {
        Some(Hint::ExplainPolicy)
    }
}

impl ClassifiedError for GrantRefusal {
    fn class(&self) -> ErrorClass {
        match self {
            Self::MayNot { .. } => ErrorKind::Forbidden.with_code("may_not_grant"),
            Self::NeverApproves { .. } => ErrorKind::Forbidden.with_code("never_approves"),
            Self::NeverAdministers => ErrorKind::Forbidden.with_code("never_administers"),
            Self::NotAPrincipal => ErrorKind::Forbidden.with_code("not_a_principal"),
            Self::Name(_) => ErrorKind::Invalid.with_code("bad_principal_name"),
        }
    }
}
