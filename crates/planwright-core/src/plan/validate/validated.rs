//! Runs all checks over a document, and over the plans it runs.

use super::{expressions, inputs, limits, notations, subplans, tools};
use crate::plan::compile::{Compiled, compile};
use crate::plan::finding::Findings;
use crate::plan::{Bounds, Code, Document, Finding, KnownPlans, Plan};
use crate::tool::Catalog;

/// The findings of validation, and the plan if it can be kept.
#[derive(Debug)]
pub struct ValidationReport {
    /// The plan, unless a finding [blocks the import](Code::blocks_import). It may still have
    /// errors that keep it from running.
    pub plan: Option<Plan>,
    /// Errors first.
    pub findings: Vec<Finding>,
}

impl ValidationReport {
    /// Returns whether nothing stands in the way of running the plan.
    pub fn is_sound(&self) -> bool {
        self.plan.is_some() && !self.findings.iter().any(Finding::is_error)
    }
}

/// Checks a document against itself and against the tools there are. No other plan is known.
pub fn validate(document: Document, catalog: &Catalog, bounds: &Bounds) -> ValidationReport {
    validate_with(document, catalog, &KnownPlans::default(), bounds)
}

/// Checks a document against itself, the tools there are, and the plans it runs.
pub fn validate_with(
    document: Document,
    catalog: &Catalog,
    plans: &KnownPlans,
    bounds: &Bounds,
) -> ValidationReport {
    subplans::Walk::new(plans, catalog, bounds).validate(document)
}

impl subplans::Walk<'_> {
    pub(super) fn validate(&mut self, document: Document) -> ValidationReport {
        let mut findings = Findings::default();
        let Some(compiled) = compile(document, self.bounds, &mut findings) else {
            return ValidationReport {
                plan: None,
                findings: findings.into_vec(),
            };
        };
        tools::check(&compiled, self.catalog, self.known, &mut findings);
        expressions::check(&compiled, &mut findings);
        inputs::check(&compiled, &mut findings);
        limits::check(&compiled, &mut findings);
        notations::check(&compiled, &mut findings);
        unused_results(&compiled, &mut findings);
        let subplans = self.check(&compiled, &mut findings);
        let plan = if findings.is_blocked() {
            None
        } else {
            compiled.into_plan(self.bounds)
        };
        let plan = plan.map(|mut plan| {
            plan.set_subplans(subplans);
            plan
        });
        ValidationReport {
            plan,
            findings: findings.into_vec(),
        }
    }
}

/// Reports result names that no step uses. The last steps of a plan are left out: their values are
/// what the plan is for.
fn unused_results(compiled: &Compiled, findings: &mut Findings) {
    let Some(graph) = &compiled.graph else { return };
    for (index, step) in compiled.document.steps.iter().enumerate() {
        let Some(name) = &step.result else { continue };
        let ix = crate::plan::StepIx::new(index);
        if !compiled.used[index] && !graph.dependants(ix).is_empty() {
            let message = format!("no step uses the result `{name}`");
            let finding = Finding::new(
                Code::UnusedResult,
                format!("/steps/{index}/result"),
                message,
            );
            findings.add(finding.of_step(step.id.as_ref()));
        }
    }
}
