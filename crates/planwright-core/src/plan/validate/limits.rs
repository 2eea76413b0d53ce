//! Limits that are in range but make no sense for this plan.

use super::tools::ToolNames;
use crate::json::pointer_token;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::{Code, Finding};
use crate::text::{did_you_mean, nearest_names};
use std::collections::BTreeSet;

pub(super) fn check(compiled: &Compiled, findings: &mut Findings) {
    let document = &compiled.document;
    if document.steps.is_empty() {
        findings.add(Finding::new(
            Code::NoSteps,
            "/steps",
            "the plan has no steps and completes at once",
        ));
        return;
    }
    let budget = &document.limits.budget;
    let nothing = [
        ("calls", budget.calls == Some(0)),
        ("seconds", budget.seconds == Some(0.0)),
    ];
    for (name, _) in nothing.into_iter().filter(|(_, nothing)| *nothing) {
        let message = format!("a budget of 0 {name} lets no step run");
        findings.add(Finding::new(
            Code::PointlessLimit,
            format!("/limits/budget/{name}"),
            message,
        ));
    }
    // An agent may call what no step names.
    if document.steps.iter().any(|step| step.agent.is_some()) {
        return;
    }
    let used: BTreeSet<&str> = document
        .steps
        .iter()
        .filter_map(|step| step.tool.as_deref())
        .collect();
    let names: ToolNames<'_> = used.iter().copied().collect();
    for name in budget.per_tool.keys().filter(|name| !names.matches(name)) {
        let message = format!("the budget is for `{name}`, which no step uses");
        let pointer = format!("/limits/budget/perTool/{}", pointer_token(name));
        let near = findings.hint(|| {
            did_you_mean(&nearest_names(
                name,
                used.iter().map(|&tool| tool.to_owned()),
            ))
        });
        findings.add(Finding::new(Code::PointlessLimit, pointer, message).suggest(near));
    }
}
