//! What a plan is: the document people write, and the checked form that can run.
//!
//! A [`Document`] is what was read. [`validate`] reports everything that is wrong with it at once and, if the
//! structure is sound, gives a [`Plan`]: ids fixed, references parsed, edges known.

mod bounds;
mod code;
mod compile;
mod document;
mod expression;
mod fields;
mod finding;
mod graph;
mod import;
mod names;
mod nearest;
mod reference;
mod template;

pub use bounds::Bounds;
pub use code::{Code, error_page};
pub use document::{
    Action, Agent, Budget, Context, Document, Input, Limits, OnFailure, Retry, Step, SubPlan, Think, Undo,
};
pub use finding::{Finding, Severity};
pub use graph::{Graph, StepIx};
pub use import::{Place, ReadPlanError};
pub(crate) use nearest::nearest;
pub use reference::{ParseReferenceError, PathSegment, Reference, Root};
pub use template::{ResolveError, Segment, Template, Values};

use compile::{StepTemplates, compile};
use finding::Findings;

use crate::id::{PlanId, StepId};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A plan whose structure is sound. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    id: PlanId,
    document: Document,
    by_id: BTreeMap<StepId, StepIx>,
    graph: Graph,
    /// The parsed texts of the steps that have references; the others are sent as they are written.
    templates: BTreeMap<StepIx, StepTemplates>,
    max_resolved_bytes: usize,
}

impl Plan {
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// The canonical document: every id present.
    pub fn document(&self) -> &Document {
        &self.document
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn len(&self) -> usize {
        self.document.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.document.steps.is_empty()
    }

    pub fn step(&self, ix: StepIx) -> &Step {
        &self.document.steps[ix.index()]
    }

    pub fn step_id(&self, ix: StepIx) -> &StepId {
        self.step(ix).id.as_ref().expect("validation gives every step an id")
    }

    pub fn find(&self, id: &str) -> Option<StepIx> {
        self.by_id.get(id).copied()
    }

    /// Steps in the order they are written.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = StepIx> + use<> {
        (0..self.len()).map(StepIx::new)
    }

    /// Builds a plan from its structure alone, without any knowledge of tools. Findings that more knowledge may
    /// resolve do not stand in the way; a plan that was once accepted compiles for ever.
    pub fn compile(document: Document, bounds: &Bounds) -> Result<Self, Vec<Finding>> {
        let mut findings = Findings::default();
        let compiled = compile(document, bounds, &mut findings);
        if findings.blocked() {
            return Err(findings.into_vec());
        }
        compiled.and_then(|compiled| compiled.into_plan(bounds)).ok_or_else(|| findings.into_vec())
    }

    /// The steps whose values the arguments of `ix` need.
    pub fn referenced_steps(&self, ix: StepIx) -> Vec<StepIx> {
        let args = self.templates.get(&ix).and_then(|templates| templates.args.as_ref());
        args.map(Template::referenced_steps).unwrap_or_default()
    }

    /// The parsed arguments of a step, if there is a reference in them.
    pub fn args_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.args.as_ref()
    }

    /// The arguments of a tool step with every reference replaced by its value.
    pub fn resolve_args(&self, ix: StepIx, values: &dyn Values) -> Result<Map<String, Value>, ResolveError> {
        match self.args_template(ix) {
            None => Ok(self.step(ix).args.clone()),
            Some(template) => template.resolve_object_within(values, self.max_resolved_bytes),
        }
    }

    /// The arguments of a step's `undo` with every reference replaced by its value; nothing if it has no `undo`.
    pub fn resolve_undo_args(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Option<Result<Map<String, Value>, ResolveError>> {
        let undo = self.step(ix).undo.as_ref()?;
        Some(match self.templates.get(&ix).and_then(|templates| templates.undo.as_ref()) {
            None => Ok(undo.args.clone()),
            Some(template) => template.resolve_object_within(values, self.max_resolved_bytes),
        })
    }
}
