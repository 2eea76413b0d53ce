//! An approval that comes with another order.

use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use std::collections::BTreeMap;

/// Consent to exactly what was shown, given together with the order to run it.
#[derive(Debug, Clone)]
pub struct GivenApproval {
    /// The version or digest that the approver saw.
    pub shown: Shown,
    /// The approver.
    pub by: Principal,
    /// The way the approver was recognised.
    pub assurance: Assurance,
    /// What holds for arguments that are only known later, by step. The policy says so for the
    /// others.
    pub late: BTreeMap<String, LateChoice>,
}

impl GivenApproval {
    /// A yes without choices of its own.
    pub fn new(shown: Shown, by: Principal, assurance: Assurance) -> Self {
        Self {
            shown,
            by,
            assurance,
            late: BTreeMap::new(),
        }
    }
}
