//! What a plan is: the document people write, and the checked form that can run.
//!
//! A [`Document`] is what was read. [`validate`] reports everything that is wrong with it at once and, if the
//! structure is sound, gives a [`Plan`]: ids fixed, references parsed, edges known.

mod document;
mod graph;
mod reference;
mod template;

pub use document::{
    Action, Agent, Budget, Context, Document, Input, Limits, OnFailure, Retry, Step, SubPlan, Think, Undo,
};
pub use graph::{Graph, StepIx};
pub use reference::{PathSegment, Reference, Root};
pub use template::{ResolveError, Template, Values};

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
    /// The parsed arguments of the steps that have references; the others are sent as they are written.
    templates: BTreeMap<StepIx, Template>,
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

    /// The steps whose values the arguments of `ix` need.
    pub fn referenced_steps(&self, ix: StepIx) -> Vec<StepIx> {
        self.templates.get(&ix).map(Template::referenced_steps).unwrap_or_default()
    }

    /// The arguments of a tool step with every reference replaced by its value.
    pub fn resolve_args(&self, ix: StepIx, values: &dyn Values) -> Result<Map<String, Value>, ResolveError> {
        match self.templates.get(&ix) {
            None => Ok(self.step(ix).args.clone()),
            Some(template) => template.resolve_object(values),
        }
    }
}

/// Up to three of `names` that a person who wrote `name` may have meant.
pub(crate) fn nearest(_name: &str, _names: impl IntoIterator<Item = String>) -> Vec<String> {
    Vec::new()
}
