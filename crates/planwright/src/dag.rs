//! A plan as people see it in a terminal: one line per step, grouped by level.

use crate::printer::line;
use planwright_core::plan::{Plan, StepIx};
use planwright_core::run::Run;

/// The steps of a plan, each with a mark for where it stands in `run`.
pub(crate) fn render(plan: &Plan, run: Option<&Run>) -> String {
    let title = |ix: StepIx| line(plan.step(ix).title.as_deref().unwrap_or_default());
    let widest = plan.indices().map(|ix| title(ix).chars().count()).max().unwrap_or(0).min(60);
    let tool = |ix: StepIx| format!("[{}]", line(plan.step(ix).action_label()));
    let tool_width = plan.indices().map(|ix| tool(ix).chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (number, level) in plan.graph().levels().iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for &ix in level {
            let mark = mark(run.map_or("pending", |run| run.step(ix).name()));
            let mut row = format!("{mark} {}. {:widest$}  {:tool_width$}", plan.step_id(ix), title(ix), tool(ix));
            if level.len() > 1 {
                row.push_str("  ∥");
            }
            let after: Vec<String> =
                plan.graph().dependencies(ix).iter().map(|&d| plan.step_id(d).to_string()).collect();
            if !after.is_empty() {
                row.push_str("  ← after: ");
                row.push_str(&after.join(", "));
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
    }
    text
}

/// The mark of a step's state.
pub(crate) fn mark(state: &str) -> &'static str {
    match state {
        "running" | "retry_due" => "◉",
        "completed" => "●",
        "failed" => "✗",
        "denied" => "⊘",
        "skipped" => "–",
        "blocked" => "◌",
        "cancelled" => "⊗",
        "awaiting_approval" | "awaiting_input" => "◇",
        "outcome_unknown" => "?",
        "undone" => "↶",
        _ => "○",
    }
}
