//! The options with which a run is executed, and the consent that may come with the order.

use crate::context::{Observer, StepClaims};
use crate::review::given_approval::GivenApproval;
use planwright_core::policy::LateChoice;
use planwright_core::principal::Principal;
use planwright_core::run::Reflection;
use planwright_core::trace::TraceId;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The options with which a run is executed.
#[derive(Clone)]
pub struct RunOptions {
    /// The principal that starts or resumes the run.
    pub by: Principal,
    /// They win over the plan's, and are part of what has to be approved.
    pub variables: Map<String, Value>,
    /// Replaces the plan's own limit.
    pub max_concurrency: Option<u32>,
    /// Budgets and runaway detection.
    pub guards: bool,
    /// Keep executing while only people can move the run on, instead of returning.
    pub linger: bool,
    /// Only begin the run, and say that it waits for one of so many others to end.
    pub queued: Option<u32>,
    /// Callbacks for this run alone.
    pub observers: Vec<Arc<dyn Observer>>,
    /// A yes that is recorded in the same commit as the start of the run, instead of by
    /// [`Plans::approve`](crate::Plans::approve) before.
    pub approval: Option<GivenApproval>,
    /// What has to hold for arguments that are only known later, by step. The order is refused
    /// unless exactly that was agreed to: an approval without it would let the run be wider.
    pub late: BTreeMap<String, LateChoice>,
    /// The trace of the order, so that what follows from it can be found again. The plan's own when
    /// absent: what an order for a plan led to is one story.
    pub trace: Option<TraceId>,
    /// The run is looked at before it ends, within these bounds. The plan's own wish when absent.
    pub reflection: Option<Reflection>,
    /// A client makes the calls of the run, one by one: only steps that it claims are started.
    pub stepwise: Option<Arc<StepClaims>>,
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
    /// Makes options with guards and without everything optional.
    pub fn new(by: Principal) -> Self {
        Self {
            by,
            variables: Map::new(),
            max_concurrency: None,
            guards: true,
            linger: false,
            queued: None,
            observers: Vec::new(),
            approval: None,
            late: BTreeMap::new(),
            trace: None,
            reflection: None,
            stepwise: None,
        }
    }
}
