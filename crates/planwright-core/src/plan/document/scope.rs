//! The tools that a plan may name, and those that its executors may call.

use crate::plan::{Context, Document, bare_name};
use crate::tool::{RUNS_ANYTHING, ToolScope};

impl Document {
    /// The tools that the executors of `agent` steps may call, as the plan names them (tools,
    /// servers and patterns): those it lists, or else those that its steps name and nothing else.
    pub fn agent_tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = if self.tools_required.is_empty() {
            let named = self
                .steps
                .iter()
                .filter(|step| !step.skip)
                .flat_map(|step| {
                    let hinted = step
                        .agent
                        .as_deref()
                        .and_then(|agent| agent.tool.as_deref());
                    step.tool.as_deref().into_iter().chain(hinted)
                });
            named
                .filter(|name| bare_name(name).unwrap_or(name) != RUNS_ANYTHING)
                .collect()
        } else {
            self.tools_required.iter().map(String::as_str).collect()
        };
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    /// Returns whether the plan may name a tool: all of them, unless the author listed some.
    pub fn scope(&self) -> impl Fn(&str) -> bool + '_ {
        let listed = self.required_scope();
        move |name| self.tools_required.is_empty() || listed.holds(name)
    }

    /// The tools that the plan lists.
    pub(crate) fn required_scope(&self) -> ToolScope {
        ToolScope::new(self.tools_required.iter().map(String::as_str))
    }

    /// The tools that the executors of `agent` steps may call.
    pub(crate) fn agent_scope(&self) -> ToolScope {
        ToolScope::new(self.agent_tools())
    }

    /// Adds to the scope what the steps name beyond it. A plan without a scope needs none.
    pub fn widen_scope(&mut self) {
        let named = self.steps.iter().flat_map(|step| {
            let undo = step.undo.as_deref().map(|undo| undo.tool.as_str());
            step.tool.as_deref().into_iter().chain(undo)
        });
        let in_scope = self.scope();
        let beyond: std::collections::BTreeSet<String> = named
            .filter(|name| !in_scope(name))
            .map(str::to_owned)
            .collect();
        drop(in_scope);
        self.tools_required.extend(beyond);
    }

    /// The goal that the executors of `agent` steps are told: it steers what they do, so an
    /// approval covers it. Nothing if no step is worked on by one.
    pub fn goal_for_executors(&self) -> Option<&str> {
        if !self.has_agent_steps() {
            return None;
        }
        self.goal.as_deref().or(self.title.as_deref())
    }

    /// What the planner knew, as the executors of `agent` steps are told: an approval covers it for
    /// the same reason. Nothing if no step is worked on by one, or if nothing was noted down.
    pub fn context_for_executors(&self) -> Option<&Context> {
        let Context {
            tool_outputs,
            notes,
            artifacts,
            stored,
            template: _,
        } = &self.context;
        let is_empty =
            tool_outputs.is_empty() && notes.is_none() && artifacts.is_empty() && stored.is_empty();
        (self.has_agent_steps() && !is_empty).then_some(&self.context)
    }

    /// Returns whether some step is worked on by an executor.
    pub fn has_agent_steps(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.agent.is_some() && !step.skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(scope: &[&str]) -> Document {
        let steps = json!([
            { "id": "a", "tool": "local.read_file" },
            { "id": "b", "tool": "demo.echo", "undo": { "tool": "demo.fail" } },
        ]);
        serde_json::from_value(json!({ "id": "p", "toolsRequired": scope, "steps": steps }))
            .unwrap()
    }

    #[test]
    fn a_scope_that_was_written_down_holds_what_it_lists_by_either_name() {
        let narrow = document(&["read_file", "demo.echo"]);
        let in_scope = narrow.scope();
        assert!(in_scope("local.read_file") && in_scope("demo.echo") && !in_scope("demo.fail"));
        assert!(document(&[]).scope()("demo.fail"));
    }

    #[test]
    fn a_scope_is_widened_by_what_the_steps_name_beyond_it() {
        let mut narrow = document(&["read_file"]);
        narrow.widen_scope();
        assert_eq!(
            narrow.tools_required,
            ["read_file", "demo.echo", "demo.fail"]
        );
        let mut open = document(&[]);
        open.widen_scope();
        assert!(open.tools_required.is_empty());
    }
}
