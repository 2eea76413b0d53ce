//! Guards: what a run may spend. Counted from the journal, so a restart does not reset them.

use super::{Run, RunEvent};
use crate::digest::Digest;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// What a run has spent so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    calls: u64,
    /// Counted only for tools the budget names.
    per_tool: BTreeMap<String, u64>,
    /// Counted only when the budget bounds repeated calls.
    same_call: BTreeMap<Digest, u64>,
}

/// A guard said no. The call never leaves and nothing is charged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardBlock {
    #[error("the budget of {limit} calls is used up")]
    Calls { limit: u64 },
    #[error("`{tool}` may be called {limit} times in this run, and has been")]
    PerTool { tool: String, limit: u64 },
    #[error("the budget of {limit} seconds is used up")]
    Seconds { limit: String },
    #[error("the same call was already made {limit} times: this looks like a runaway")]
    SameCall { limit: u64 },
}

impl Usage {
    pub(super) fn note(&mut self, event: &RunEvent, run: &super::Start, budget: &crate::plan::Budget) {
        let RunEvent::AttemptStarted { tool, call, .. } = event else { return };
        if !run.guards {
            return;
        }
        self.calls += 1;
        for name in [tool.to_string(), tool.tool.clone()] {
            if budget.per_tool.contains_key(&name) {
                *self.per_tool.entry(name).or_default() += 1;
            }
        }
        if budget.same_call.is_some() {
            *self.same_call.entry(*call).or_default() += 1;
        }
    }
}

impl Run {
    /// Whether the guards let one more call leave. Retries count like first calls.
    pub(super) fn check_guards(
        &self,
        tool: &crate::tool::ToolName,
        call: &Digest,
        now: Timestamp,
    ) -> Result<(), GuardBlock> {
        let budget = &self.plan.document().limits.budget;
        if !self.start.guards {
            return Ok(());
        }
        if let Some(limit) = budget.calls.filter(|&limit| self.usage.calls >= limit) {
            return Err(GuardBlock::Calls { limit });
        }
        if !budget.per_tool.is_empty() {
            for name in [tool.to_string(), tool.tool.clone()] {
                let spent = self.usage.per_tool.get(&name).copied().unwrap_or_default();
                if let Some(&limit) = budget.per_tool.get(&name).filter(|&&limit| spent >= limit) {
                    return Err(GuardBlock::PerTool { tool: name, limit });
                }
            }
        }
        if let Some(seconds) = budget.seconds.filter(|&s| now.since(self.start.at).as_secs_f64() >= s) {
            return Err(GuardBlock::Seconds { limit: seconds.to_string() });
        }
        let repeated = self.usage.same_call.get(call).copied().unwrap_or_default();
        if let Some(limit) = budget.same_call.filter(|&limit| repeated >= limit) {
            return Err(GuardBlock::SameCall { limit });
        }
        Ok(())
    }
}
