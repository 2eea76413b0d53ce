//! The plan that can run: ids fixed, references parsed, edges known.

use super::binding::StepTemplates;
use super::compile::compile;
use super::finding::Findings;
use super::validate::{ToolNames, missing_inputs};
use super::{Action, Bounds, Document, Finding, Graph, ResolveError, Step, StepIx, Template, Values};
use crate::id::{PlanId, StepId};
use crate::secret::SecretName;
use crate::tool::{Catalog, ResolveToolError};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A plan whose structure is sound. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(super) id: PlanId,
    /// Shared, because the journal entry that proposes the plan holds the same one.
    pub(super) document: Arc<Document>,
    pub(super) by_id: BTreeMap<StepId, StepIx>,
    pub(super) graph: Graph,
    /// The parsed texts of the steps that have references; the others are sent as they are written.
    pub(super) templates: BTreeMap<StepIx, StepTemplates>,
    pub(super) max_resolved_bytes: usize,
}

impl Plan {
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// The canonical document: every id present.
    pub fn document(&self) -> &Arc<Document> {
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

    /// The steps whose values the arguments of `ix` need. What a step runs over reaches its arguments as `${item}`.
    pub fn referenced_steps(&self, ix: StepIx) -> Vec<StepIx> {
        let Some(StepTemplates { args, for_each, .. }) = self.templates.get(&ix) else { return Vec::new() };
        let referenced = args.iter().chain(for_each).flat_map(Template::referenced_steps);
        referenced.collect::<BTreeSet<StepIx>>().into_iter().collect()
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

    /// The steps whose values have to be at hand before `ix` can be decided on, asked or called.
    pub fn needed_steps(&self, ix: StepIx) -> Vec<StepIx> {
        let mut needed: BTreeSet<StepIx> = self.steps_of_expressions(ix).collect();
        if let Some(StepTemplates { args, for_each, message, .. }) = self.templates.get(&ix) {
            for template in args.iter().chain(for_each).chain(message) {
                needed.extend(template.referenced_steps());
            }
        }
        needed.into_iter().collect()
    }

    /// What the step runs once per element of, whatever it turns out to be; nothing if it runs once.
    pub fn resolve_for_each(&self, ix: StepIx, values: &dyn Values) -> Option<Result<Value, ResolveError>> {
        let template = self.templates.get(&ix)?.for_each.as_ref()?;
        Some(template.resolve(values, self.max_resolved_bytes))
    }

    /// The question of an `input` step, its references replaced.
    pub fn resolve_message(&self, ix: StepIx, values: &dyn Values) -> Result<Option<String>, ResolveError> {
        let Some(template) = self.templates.get(&ix).and_then(|templates| templates.message.as_ref()) else {
            return Ok(None);
        };
        Ok(Some(match template.resolve(values, self.max_resolved_bytes)? {
            Value::String(text) => text,
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        }))
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

    /// The values a run starts with: defaults of the inputs, and the plan's variables over them.
    pub fn initial_variables(&self) -> Map<String, Value> {
        let properties =
            self.document.inputs.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let defaults = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())));
        defaults.chain(self.document.variables.clone()).collect()
    }

    /// The required inputs that nothing gives a value yet.
    pub fn missing_inputs(&self) -> Vec<String> {
        let schema = self.document.inputs.as_ref();
        schema.map(|schema| missing_inputs(schema, &self.document.variables)).unwrap_or_default()
    }

    /// The tools the plan cannot do without and nobody has, by the names the plan uses, each once.
    pub fn missing_tools(&self, catalog: &Catalog) -> Vec<String> {
        let steps = self.document.steps.iter().filter(|step| !step.optional);
        let named = steps.filter_map(|step| step.tool.as_deref());
        let optional: ToolNames<'_> = {
            let steps = self.document.steps.iter().filter(|step| step.optional);
            steps.filter_map(|step| step.tool.as_deref()).collect()
        };
        let required = self.document.tools_required.iter().map(String::as_str);
        // A tool that only optional steps use may be missing, though it is in the scope.
        let required = required.filter(|name| !optional.matches(name));
        let names: BTreeSet<&str> = named.chain(required).collect();
        let is_missing = |name: &&str| matches!(catalog.resolve(name), Err(ResolveToolError::Unknown { .. }));
        names.into_iter().filter(is_missing).map(str::to_owned).collect()
    }

    /// What this version reads and validates but cannot execute, in plan order.
    pub fn unsupported(&self) -> Vec<(StepIx, &'static str)> {
        let mut found = Vec::new();
        for ix in self.indices() {
            let step = self.step(ix);
            let action = match step.action() {
                Some(Action::Think(_)) => Some("think"),
                Some(Action::Agent(_)) => Some("agent"),
                Some(Action::Plan(_)) => Some("plan"),
                Some(Action::Tool { .. } | Action::Input(_)) | None => None,
            };
            // What a person answers is held against the schema; expressions about calls have nothing to look at.
            let asks = step.input.is_some();
            let options = [
                (asks && step.expect.is_some(), "expect of an input"),
                (asks && !step.constraints.is_empty(), "constraints of an input"),
            ];
            let used = options.into_iter().filter_map(|(used, name)| used.then_some(name));
            found.extend(action.into_iter().chain(used).map(|name| (ix, name)));
        }
        found
    }

    /// The secrets that the call of a step is given.
    pub fn secrets(&self, ix: StepIx) -> Vec<SecretName> {
        self.args_template(ix).map(Template::secrets).unwrap_or_default()
    }

    /// The secrets that a step's `undo` is given.
    pub fn undo_secrets(&self, ix: StepIx) -> Vec<SecretName> {
        let templates = self.templates.get(&ix);
        templates.and_then(|templates| templates.undo.as_ref()).map(Template::secrets).unwrap_or_default()
    }

    /// Every secret the plan names.
    pub fn all_secrets(&self) -> BTreeSet<SecretName> {
        self.templates.values().flat_map(StepTemplates::all).flat_map(Template::secrets).collect()
    }
}
