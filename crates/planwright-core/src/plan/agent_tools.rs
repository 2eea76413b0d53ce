//! The tools that the executors of a plan may call.

use super::{Document, bare_name};

/// The tool that runs anything: an executor gets it only if the plan lists it by name.
const RUNS_ANYTHING: &str = "run_command";

impl Document {
    /// The tools that the executors of `agent` steps may call, by the names the plan uses: those it lists, or else those
    /// that its steps name and nothing else.
    pub fn agent_tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = if self.tools_required.is_empty() {
            let named = self.steps.iter().filter(|step| !step.skip).flat_map(|step| {
                let hinted = step.agent.as_deref().and_then(|agent| agent.tool.as_deref());
                step.tool.as_deref().into_iter().chain(hinted)
            });
            named.filter(|name| bare_name(name).unwrap_or(name) != RUNS_ANYTHING).collect()
        } else {
            self.tools_required.iter().map(String::as_str).collect()
        };
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    /// Whether some step is worked on by an executor.
    pub fn has_agents(&self) -> bool {
        self.steps.iter().any(|step| step.agent.is_some() && !step.skip)
    }
}
