//! How a run is to be executed, and the consent that may come with the order.

use crate::run::observer::Observer;
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Reflection, Shown};
use planwright_core::trace::TraceId;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How a run is to be executed.
#[derive(Clone)]
pub struct RunOptions {
    pub by: Principal,
    /// They win over the plan's, and are part of what has to be approved.
    pub variables: Map<String, Value>,
    /// Replaces the plan's own limit.
    pub max_concurrency: Option<u32>,
    /// Budgets and runaway detection.
    pub guards: bool,
    /// Keep executing while only people can move the run on, instead of returning.
    pub linger: bool,
    /// Only begin the run; somebody else goes on with it.
    pub queued: bool,
    pub observers: Vec<Arc<dyn Observer>>,
    /// A yes that is recorded in the same commit as the start of the run, instead of by
    /// [`Engine::approve`](crate::Engine::approve) before.
    pub approval: Option<GivenApproval>,
    /// The trace of the order, so that what follows from it can be found again.
    pub trace: Option<TraceId>,
    /// The run is looked at before it ends, within these bounds. The plan's own wish when absent.
    pub reflection: Option<Reflection>,
}

/// Consent to exactly what was shown, given together with the order to run it.
#[derive(Debug, Clone)]
pub struct GivenApproval {
    pub shown: Shown,
    pub by: Principal,
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

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("by", &self.by)
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}

impl RunOptions {
    pub fn new(by: Principal) -> Self {
        Self {
            by,
            variables: Map::new(),
            max_concurrency: None,
            guards: true,
            linger: false,
            queued: false,
            observers: Vec::new(),
            approval: None,
            trace: None,
            reflection: None,
        }
    }
}
