//! The tools of a conversation: those of the servers it may use, and plans.

use crate::plan_tools::{PLAN_TOOLS_SERVER, PlanTool, PlanToolCall, PlanTools};
use crate::port::{BoxFuture, Call, CallError, Outcome, Tools};
use planwright_core::id::RunId;
use planwright_core::tool::{Catalog, KnownTool};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Other tools, only those of some servers, with the plan tools among them if they are wanted.
#[derive(Debug, Clone)]
pub struct ConversationTools {
    inner: Arc<dyn Tools>,
    /// Absent: the tools of all servers.
    servers: Option<BTreeSet<String>>,
    plans: Option<(PlanTools, Vec<Arc<KnownTool>>)>,
}

impl ConversationTools {
    /// Offers all of these tools.
    pub fn new(inner: Arc<dyn Tools>) -> Self {
        Self {
            inner,
            servers: None,
            plans: None,
        }
    }

    /// Only the tools of these servers.
    #[must_use]
    pub fn only(mut self, servers: BTreeSet<String>) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Offers the plan tools too.
    #[must_use]
    pub fn with_plans(mut self, plans: PlanTools) -> Self {
        self.plans = Some((plans, PlanTool::ALL.map(PlanTool::known_tool).to_vec()));
        self
    }
}

impl Tools for ConversationTools {
    fn catalog(&self) -> Catalog {
        let all = self.inner.catalog();
        if self.servers.is_none() && self.plans.is_none() {
            return all;
        }
        let wanted = |tool: &&Arc<KnownTool>| {
            let taken = self.plans.is_some() && tool.name.server == PLAN_TOOLS_SERVER;
            !taken
                && self
                    .servers
                    .as_ref()
                    .is_none_or(|servers| servers.contains(&tool.name.server))
        };
        let plans = self.plans.iter().flat_map(|(_, tools)| tools);
        all.iter().filter(wanted).chain(plans).cloned().collect()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let Some((plans, _)) = self
            .plans
            .as_ref()
            .filter(|_| call.tool.server == PLAN_TOOLS_SERVER)
        else {
            return self.inner.call(call);
        };
        let Some(tool) = PlanTool::from_name(&call.tool.tool) else {
            let unknown = CallError::Unavailable(format!("there is no tool `{}`", call.tool));
            return Box::pin(std::future::ready(Err(unknown)));
        };
        let plans = plans.clone();
        Box::pin(async move {
            let order = PlanToolCall {
                tool,
                args: call.args,
                key: call.idempotency_key,
                again: call.attempt > 1,
                cancelled: call.cancelled,
            };
            Ok(Box::pin(plans.call(&order)).await)
        })
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.inner.server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.inner.serial_writes(server)
    }

    fn release(&self, top_run: &RunId) {
        self.inner.release(top_run);
    }
}
