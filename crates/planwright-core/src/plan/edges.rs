//! Why steps wait for each other: the edges of a plan with their reasons.

use super::{Plan, StepIx, Template};
use crate::plan::reference::StepTemplates;
use std::collections::BTreeSet;

/// A step that waits for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The step that comes first.
    pub from: StepIx,
    /// The step that waits for it.
    pub to: StepIx,
    /// Every reason for it, in the order of [`EdgeReason`].
    pub reasons: Vec<EdgeReason>,
}

/// The reason a step waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeReason {
    /// It names the other one in `dependsOn`.
    Declared,
    /// What it sends, asks or runs over has a reference to the other one.
    Reference,
    /// An expression of it, as `when`, looks at the value of the other one.
    Expression,
}

impl EdgeReason {
    /// Returns the word for it in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Reference => "reference",
            Self::Expression => "expression",
        }
    }
}

impl Plan {
    /// Returns every edge between two steps, in plan order of the step that waits.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for to in self.indices() {
            let step = self.step(to);
            let looked_at: BTreeSet<StepIx> = self.steps_of_expressions(to).collect();
            let templates = self.templates.get(&to).into_iter();
            let referred: BTreeSet<StepIx> = templates
                .flat_map(StepTemplates::all)
                .flat_map(Template::referenced_steps)
                .collect();
            for &from in self.graph().dependencies(to) {
                let mut reasons = Vec::new();
                if step.depends_on.contains(self.step_id(from)) {
                    reasons.push(EdgeReason::Declared);
                }
                if referred.contains(&from) {
                    reasons.push(EdgeReason::Reference);
                }
                if looked_at.contains(&from) {
                    reasons.push(EdgeReason::Expression);
                }
                edges.push(Edge { from, to, reasons });
            }
        }
        edges
    }
}
