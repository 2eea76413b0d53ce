//! How a planner calls tools. It does not know what makes the calls: that belongs to sessions, which
//! execute runs, which in turn have plans written.

use crate::context::Context;
use crate::port::BoxFuture;
use planwright_core::id::PlanId;
use planwright_core::model::WantedCall;
use planwright_core::principal::Principal;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why no call can be made at all.
pub(crate) type LookError = Box<dyn Error + Send + Sync>;

/// Makes the calls of one planner, each judged by policy and journaled.
pub(crate) trait Looking: Send + Sync + fmt::Debug {
    /// Makes a call, and returns what the model is told of it.
    fn call<'a>(&'a mut self, call: &'a WantedCall) -> BoxFuture<'a, Result<String, LookError>>;

    /// Ends it. Returns the plan under which the calls are journaled, if there were any.
    fn close(self: Box<Self>) -> BoxFuture<'static, Option<PlanId>>;
}

/// Makes ready to look around for a person with the tools of some servers. Nothing is journaled
/// before the first call.
pub(crate) type StartLooking = fn(&Arc<Context>, Principal, BTreeSet<String>) -> Box<dyn Looking>;
