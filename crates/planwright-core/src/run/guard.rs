//! Guards: what a run may spend. Counted from the journal, so a restart does not reset them.

use super::{CallFate, Run, RunEvent, Spent};
use crate::digest::Digest;
use crate::policy::{Cap, ToolPattern};
use crate::time::Timestamp;
use crate::tool::{FoldedName, ToolName};
use std::collections::BTreeMap;

/// The spending of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    calls: u64,
    /// Calls of each tool. Counted also without guards: the operator's caps hold regardless of what
    /// the caller says.
    per_tool: BTreeMap<ToolName, CallsOf>,
    /// Counted only when something bounds repeated calls.
    same_call: BTreeMap<Digest, u64>,
    /// Tokens that models read and wrote.
    tokens: u64,
    /// Milliseconds in which the runs before this one were executed.
    millis_before: u64,
}

/// The number of calls of one tool.
#[derive(Debug, Clone)]
struct CallsOf {
    calls: u64,
    /// Folded once, so that looking for look-alikes is cheap.
    name: FoldedName,
}

/// A guard said no. The call never leaves and nothing is charged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardBlock {
    /// The budget of calls is used up.
    #[error("the budget of {limit} calls is used up")]
    Calls {
        /// The limit that was reached.
        limit: u64,
    },
    /// The plan lets the tool be called no more.
    #[error("`{tool}` has reached its limit of {limit} per run")]
    PerTool {
        /// The tool that is called.
        tool: String,
        /// The limit that was reached.
        limit: u64,
    },
    /// The operator lets the tools of this pattern be called no more.
    #[error("the operator lets `{pattern}` be called {limit} times in a run, and it has been")]
    Cap {
        /// The pattern of their names.
        pattern: String,
        /// The limit that was reached.
        limit: u64,
    },
    /// The budget of time is used up.
    #[error("the budget of {limit} seconds is used up")]
    Seconds {
        /// The limit that was reached.
        limit: String,
    },
    /// The budget of tokens is used up.
    #[error("the budget of {limit} tokens is used up")]
    Tokens {
        /// The limit that was reached.
        limit: u64,
    },
    /// The same call was made too often.
    #[error("the same call was already made {limit} times: this looks like a runaway")]
    SameCall {
        /// The limit that was reached.
        limit: u64,
    },
}

impl Usage {
    /// Takes over the spending of the runs that a run goes on from.
    pub(super) fn after(spent: Option<&Spent>) -> Self {
        let Some(spent) = spent else {
            return Self::default();
        };
        let named = |(name, &calls): (&String, &u64)| {
            let tool = ToolName::try_from(name.clone()).ok()?;
            let folded = FoldedName::new(&tool);
            Some((
                tool,
                CallsOf {
                    calls,
                    name: folded,
                },
            ))
        };
        Self {
            calls: spent.calls,
            per_tool: spent.per_tool.iter().filter_map(named).collect(),
            same_call: spent.same_call.clone(),
            tokens: spent.tokens,
            millis_before: spent.millis,
        }
    }

    /// Adds up the spending of this run and those before it, if it was executed for so long.
    pub(super) fn spent(&self, executed: std::time::Duration) -> Spent {
        let millis = u64::try_from(executed.as_millis()).unwrap_or(u64::MAX);
        Spent {
            calls: self.calls,
            tokens: self.tokens,
            millis: self.millis_before.saturating_add(millis),
            per_tool: self
                .per_tool
                .iter()
                .map(|(tool, spent)| (tool.to_string(), spent.calls))
                .collect(),
            same_call: self.same_call.clone(),
        }
    }

    /// One more call.
    pub(super) fn note(
        &mut self,
        tool: &ToolName,
        call: &Digest,
        run: &super::Start,
        budget: &crate::plan::Budget,
    ) {
        if run.guards {
            self.calls += 1;
        }
        match self.per_tool.get_mut(tool) {
            Some(spent) => spent.calls += 1,
            None => {
                self.per_tool.insert(
                    tool.clone(),
                    CallsOf {
                        calls: 1,
                        name: FoldedName::new(tool),
                    },
                );
            }
        }
        let operators = run.consent.as_deref().and_then(|consent| consent.same_call);
        if budget.same_call.is_some() || operators.is_some() {
            *self.same_call.entry(*call).or_default() += 1;
        }
    }

    /// Calls of all tools that a pattern names, look-alikes included.
    fn of(&self, pattern: &ToolPattern) -> u64 {
        let matching = self
            .per_tool
            .values()
            .filter(|spent| pattern.matches_alike(&spent.name));
        matching.map(|spent| spent.calls).sum()
    }

    fn check_repeated(&self, call: &Digest, limit: Option<u64>) -> Result<(), GuardBlock> {
        let repeated = self.same_call.get(call).copied().unwrap_or_default();
        match limit.filter(|&limit| repeated >= limit) {
            Some(limit) => Err(GuardBlock::SameCall { limit }),
            None => Ok(()),
        }
    }
}

impl Run {
    /// Charges what an entry spends. Steps that are worked on by models call nothing themselves;
    /// what their executors call is charged when it is decided on.
    pub(super) fn note_usage(&mut self, event: &RunEvent) {
        let budget = &self.plan.document().limits.budget;
        if let RunEvent::AttemptStarted {
            step, tool, call, ..
        } = event
            && !self
                .find(step.as_str())
                .is_some_and(|ix| self.definition(ix).is_for_model())
        {
            self.usage.note(tool, call, &self.start, budget);
        }
        if let RunEvent::AgentTurn { calls, .. } = event {
            for call in calls {
                if let (CallFate::Run(_), Some(tool), Some(digest)) =
                    (&call.fate, &call.name, &call.digest)
                {
                    self.usage.note(tool, digest, &self.start, budget);
                }
            }
        }
        if let RunEvent::ModelUsed { used, .. } = event {
            self.usage.tokens = self.usage.tokens.saturating_add(used.usage.total());
        }
    }

    /// Tokens that models read and wrote for this run.
    pub fn tokens(&self) -> u64 {
        self.usage.tokens
    }

    /// Returns whether a model may be asked once more, after `more` tokens that are not in the
    /// journal yet.
    pub(super) fn check_tokens(&self, more: u64) -> Result<(), GuardBlock> {
        let limit = self
            .plan
            .document()
            .limits
            .budget
            .tokens
            .filter(|_| self.start.guards);
        match limit.filter(|&limit| self.usage.tokens.saturating_add(more) >= limit) {
            Some(limit) => Err(GuardBlock::Tokens { limit }),
            None => Ok(()),
        }
    }

    /// Checks that the guards let one more call leave. Retries count like first calls. The plan's
    /// own budget can be switched off by the caller that starts the run; the operator's caps
    /// cannot.
    pub(super) fn check_guards(
        &self,
        tool: &ToolName,
        call: &Digest,
        caps: &[Cap],
        now: Timestamp,
    ) -> Result<(), GuardBlock> {
        self.check_guards_after(&self.usage, tool, call, caps, now)
    }

    /// The same after what `usage` says was spent.
    pub(super) fn check_guards_after(
        &self,
        usage: &Usage,
        tool: &ToolName,
        call: &Digest,
        caps: &[Cap],
        now: Timestamp,
    ) -> Result<(), GuardBlock> {
        for cap in caps {
            if usage.of(&cap.pattern) >= cap.limit {
                return Err(GuardBlock::Cap {
                    pattern: cap.pattern.to_string(),
                    limit: cap.limit,
                });
            }
        }
        let operators = self
            .start
            .consent
            .as_deref()
            .and_then(|consent| consent.same_call);
        usage.check_repeated(call, operators)?;
        if self.start.guards {
            self.check_budget(usage, tool, call, now)
        } else {
            Ok(())
        }
    }

    fn check_budget(
        &self,
        usage: &Usage,
        tool: &ToolName,
        call: &Digest,
        now: Timestamp,
    ) -> Result<(), GuardBlock> {
        let budget = &self.plan.document().limits.budget;
        if let Some(limit) = budget.calls.filter(|&limit| usage.calls >= limit) {
            return Err(GuardBlock::Calls { limit });
        }
        if !budget.per_tool.is_empty() {
            self.check_per_tool(usage, tool)?;
        }
        self.check_seconds(now)?;
        usage.check_repeated(call, budget.same_call)
    }

    /// Returns whether the run may begin anything more.
    pub(super) fn check_seconds(&self, now: Timestamp) -> Result<(), GuardBlock> {
        let seconds = self
            .plan
            .document()
            .limits
            .budget
            .seconds
            .filter(|_| self.start.guards);
        let before = std::time::Duration::from_millis(self.usage.millis_before);
        let executed = now.since(self.start.at).saturating_add(before);
        if let Some(seconds) = seconds.filter(|&s| executed.as_secs_f64() >= s) {
            return Err(GuardBlock::Seconds {
                limit: seconds.to_string(),
            });
        }
        Ok(())
    }

    /// A budget may name the tool in full, bare, or as hosts write it. One that cannot be read
    /// allows nothing.
    fn check_per_tool(&self, usage: &Usage, tool: &ToolName) -> Result<(), GuardBlock> {
        let folded = FoldedName::new(tool);
        for (name, &limit) in &self.plan.document().limits.budget.per_tool {
            let blocked = match ToolPattern::parse(name) {
                Ok(pattern) => pattern.matches_alike(&folded) && usage.of(&pattern) >= limit,
                Err(_) => true,
            };
            if blocked {
                return Err(GuardBlock::PerTool {
                    tool: name.clone(),
                    limit,
                });
            }
        }
        Ok(())
    }
}
