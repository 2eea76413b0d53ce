//! The plan that can run: ids fixed, references parsed, edges known.

use super::compile::compile;
use super::finding::Findings;
use super::validate::{ToolNames, missing_inputs};
use super::{
    Bounds, Document, Finding, Graph, ResolveError, Step, StepIx, Subplans, Template, Values,
};
use crate::id::{PlanId, StepId};
use crate::plan::reference::{StepTemplates, read_json_text};
use crate::secret::SecretName;
use crate::tool::Catalog;
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
    /// The parsed outputs, if there is a reference in them.
    pub(super) outputs: Option<Template>,
    /// The plans its steps run, as far as they are known. Not part of the document.
    pub(super) subplans: Subplans,
    pub(super) max_resolved_bytes: usize,
}

impl Plan {
    /// Returns the id of the plan.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// The canonical document: every id present.
    pub fn document(&self) -> &Arc<Document> {
        &self.document
    }

    /// Returns the dependencies between the steps.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.document.steps.len()
    }

    /// Returns whether the plan has no steps.
    pub fn is_empty(&self) -> bool {
        self.document.steps.is_empty()
    }

    /// Returns the step at an index of this plan.
    pub fn step(&self, ix: StepIx) -> &Step {
        &self.document.steps[ix.index()]
    }

    /// Returns the id of the step at an index of this plan.
    pub fn step_id(&self, ix: StepIx) -> &StepId {
        self.step(ix)
            .id
            .as_ref()
            .expect("validation gives every step an id")
    }

    /// Finds a step by its id.
    pub fn find(&self, id: &str) -> Option<StepIx> {
        self.by_id.get(id).copied()
    }

    /// Steps in the order they are written.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = StepIx> + use<> {
        (0..self.len()).map(StepIx::new)
    }

    /// Builds a plan from its structure alone, without any knowledge of tools. Findings that more
    /// knowledge may resolve do not stand in the way; a plan that was once accepted compiles for
    /// ever.
    pub fn compile(document: Document, bounds: &Bounds) -> Result<Self, Vec<Finding>> {
        let mut findings = Findings::default();
        let compiled = compile(document, bounds, &mut findings);
        if findings.is_blocked() {
            return Err(findings.into_vec());
        }
        compiled
            .and_then(|compiled| compiled.into_plan(bounds))
            .ok_or_else(|| findings.into_vec())
    }

    /// The steps whose values the arguments or inputs of `ix` need. What a step runs over reaches
    /// them as `${item}`.
    pub fn referenced_steps(&self, ix: StepIx) -> Vec<StepIx> {
        let Some(StepTemplates {
            args,
            inputs,
            for_each,
            ..
        }) = self.templates.get(&ix)
        else {
            return Vec::new();
        };
        let referenced = args
            .iter()
            .chain(inputs)
            .chain(for_each)
            .flat_map(Template::referenced_steps);
        referenced
            .collect::<BTreeSet<StepIx>>()
            .into_iter()
            .collect()
    }

    /// The inputs of a step that runs a sub-plan, with every reference replaced by its value.
    pub fn resolve_inputs(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Result<Map<String, Value>, ResolveError> {
        match self.inputs_template(ix) {
            None => Ok(self
                .step(ix)
                .plan
                .as_ref()
                .map(|plan| plan.inputs.clone())
                .unwrap_or_default()),
            Some(template) => template.resolve_object_within(values, self.max_resolved_bytes),
        }
    }

    /// The value of a variable, or the default of an input that was given none.
    pub fn variable(&self, name: &str) -> Option<&Value> {
        self.document
            .variables
            .get(name)
            .or_else(|| self.document.input_default(name))
    }

    /// Bytes of one step's arguments once its references are put in.
    pub(crate) fn max_resolved_bytes(&self) -> usize {
        self.max_resolved_bytes
    }

    /// The parsed arguments of a step, if there is a reference in them.
    pub(crate) fn args_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.args.as_ref()
    }

    /// The arguments of a tool step with every reference replaced by its value.
    pub fn resolve_args(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Result<Map<String, Value>, ResolveError> {
        match self.args_template(ix) {
            None => Ok(self.step(ix).args.clone()),
            Some(template) => template.resolve_object_within(values, self.max_resolved_bytes),
        }
    }

    /// The parsed inputs of a step that runs a sub-plan, if there is a reference in them.
    pub(crate) fn inputs_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.inputs.as_ref()
    }

    /// The parsed arguments of a step's `undo`, if there is a reference in them.
    pub fn undo_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.undo.as_ref()
    }

    /// The steps whose values have to be at hand before `ix` can be decided on, asked or called.
    pub fn needed_steps(&self, ix: StepIx) -> Vec<StepIx> {
        let mut needed: BTreeSet<StepIx> = self.steps_of_expressions(ix).collect();
        if let Some(StepTemplates {
            args,
            inputs,
            for_each,
            message,
            prompt,
            target,
            ..
        }) = self.templates.get(&ix)
        {
            let texts = args
                .iter()
                .chain(inputs)
                .chain(for_each)
                .chain(message)
                .chain(prompt)
                .chain(target);
            texts.for_each(|template| needed.extend(template.referenced_steps()));
        }
        if self.step(ix).agent.is_some() {
            // An executor is told what the steps before it came to.
            needed.extend(self.graph.dependencies(ix));
        }
        needed.into_iter().collect()
    }

    /// Resolves the value the step runs once per element of, list or not; `None` if it runs once.
    pub fn resolve_for_each(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Option<Result<Value, ResolveError>> {
        let template = self.templates.get(&ix)?.for_each.as_ref()?;
        let resolved = template.resolve(values, self.max_resolved_bytes);
        let is_reference = matches!(template, Template::Reference(_));
        Some(resolved.map(|value| {
            // Many servers answer with a list as text.
            let text = value.as_str().filter(|_| is_reference);
            let list = text.and_then(read_json_text).filter(Value::is_array);
            list.unwrap_or(value)
        }))
    }

    /// The question of an `input` step, its references replaced.
    pub fn resolve_message(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Result<Option<String>, ResolveError> {
        let Some(template) = self
            .templates
            .get(&ix)
            .and_then(|templates| templates.message.as_ref())
        else {
            return Ok(None);
        };
        self.resolve_text(template, values).map(Some)
    }

    /// The prompt of a `think` step or the instruction of an `agent` step, its references replaced.
    pub fn resolve_prompt(&self, ix: StepIx, values: &dyn Values) -> Result<String, ResolveError> {
        if let Some(template) = self
            .templates
            .get(&ix)
            .and_then(|templates| templates.prompt.as_ref())
        {
            return self.resolve_text(template, values);
        }
        let step = self.step(ix);
        let think = step.think.as_deref().map(|think| &think.prompt);
        let agent = || step.agent.as_deref().map(|agent| &agent.instruction);
        Ok(think.or_else(agent).cloned().unwrap_or_default())
    }

    /// Resolves the target of an `agent` step.
    pub fn resolve_target(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Result<Option<String>, ResolveError> {
        if let Some(template) = self
            .templates
            .get(&ix)
            .and_then(|templates| templates.target.as_ref())
        {
            return self.resolve_text(template, values).map(Some);
        }
        Ok(self
            .step(ix)
            .agent
            .as_deref()
            .and_then(|agent| agent.target.clone()))
    }

    /// The parsed prompt or instruction of a step, if there is a reference in it.
    pub(crate) fn prompt_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.prompt.as_ref()
    }

    /// The parsed question of a step, if there is a reference in it.
    pub(crate) fn message_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.message.as_ref()
    }

    /// The parsed target of a step, if there is a reference in it.
    pub(crate) fn target_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.target.as_ref()
    }

    /// The parsed list that a step runs over.
    pub(crate) fn for_each_template(&self, ix: StepIx) -> Option<&Template> {
        self.templates.get(&ix)?.for_each.as_ref()
    }

    fn resolve_text(
        &self,
        template: &Template,
        values: &dyn Values,
    ) -> Result<String, ResolveError> {
        Ok(match template.resolve(values, self.max_resolved_bytes)? {
            Value::String(text) => text,
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => other.to_string(),
        })
    }

    /// The arguments of a step's `undo` with every reference replaced by its value; nothing if it
    /// has no `undo`.
    pub fn resolve_undo_args(
        &self,
        ix: StepIx,
        values: &dyn Values,
    ) -> Option<Result<Map<String, Value>, ResolveError>> {
        let undo = self.step(ix).undo.as_ref()?;
        Some(
            match self
                .templates
                .get(&ix)
                .and_then(|templates| templates.undo.as_ref())
            {
                None => Ok(undo.args.clone()),
                Some(template) => template.resolve_object_within(values, self.max_resolved_bytes),
            },
        )
    }

    /// The values a run starts with: defaults of the inputs, and the plan's variables over them.
    pub fn initial_variables(&self) -> Map<String, Value> {
        let properties = self
            .document
            .inputs
            .as_ref()
            .and_then(|schema| schema.get("properties")?.as_object());
        let defaults = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())));
        defaults.chain(self.document.variables.clone()).collect()
    }

    /// The required inputs that nothing gives a value yet.
    pub fn missing_inputs(&self) -> Vec<String> {
        let schema = self.document.inputs.as_ref();
        schema
            .map(|schema| missing_inputs(schema, &self.document.variables))
            .unwrap_or_default()
    }

    /// Lists the tools the plan and its sub-plans need and no server has, by the names they use,
    /// each once.
    pub fn missing_tools(&self, catalog: &Catalog) -> Vec<String> {
        let below = self.all_subplans();
        let plans = std::iter::once(self).chain(below.values().map(|subplan| &*subplan.plan));
        let missing: BTreeSet<String> = plans
            .flat_map(|plan| plan.own_missing_tools(catalog))
            .collect();
        missing.into_iter().collect()
    }

    fn own_missing_tools(&self, catalog: &Catalog) -> Vec<String> {
        let may_be_missing = |step: &&Step| step.optional || step.skip;
        let steps = self
            .document
            .steps
            .iter()
            .filter(|step| !may_be_missing(step));
        let named = steps.filter_map(|step| step.tool.as_deref());
        let optional: ToolNames<'_> = {
            let steps = self.document.steps.iter().filter(may_be_missing);
            steps.filter_map(|step| step.tool.as_deref()).collect()
        };
        let required = self.document.tools_required.iter().map(String::as_str);
        // A tool that only optional steps and those left out use may be missing, though it is in
        // the scope.
        let required = required.filter(|name| !optional.matches(name));
        let names: BTreeSet<&str> = named.chain(required).collect();
        let is_missing = |name: &&str| catalog.lacks(name);
        names
            .into_iter()
            .filter(is_missing)
            .map(str::to_owned)
            .collect()
    }

    /// Lists features that this version validates but cannot execute, in plan order. What a
    /// sub-plan needs is the need of the step that runs it.
    pub fn unsupported_features(&self) -> Vec<(StepIx, &'static str)> {
        let mut found: Vec<(StepIx, &'static str)> = self
            .indices()
            .flat_map(|ix| {
                self.unsupported_in(ix)
                    .into_iter()
                    .map(move |what| (ix, what))
            })
            .collect();
        let mut seen = BTreeSet::new();
        for ix in self.indices() {
            let Some(plan) = self
                .step(ix)
                .plan
                .as_ref()
                .filter(|plan| seen.insert(&plan.id))
            else {
                continue;
            };
            let Some(subplan) = self.subplans.get(&plan.id) else {
                continue;
            };
            let below = subplan.plan.all_subplans();
            for plan in
                std::iter::once(&subplan.plan).chain(below.values().map(|below| &below.plan))
            {
                found.extend(
                    plan.indices()
                        .flat_map(|inner| plan.unsupported_in(inner))
                        .map(|what| (ix, what)),
                );
            }
        }
        found
    }

    fn unsupported_in(&self, ix: StepIx) -> Vec<&'static str> {
        let step = self.step(ix);
        if step.skip {
            return Vec::new();
        }
        // What a person answers is held against the schema; expressions about calls have nothing to
        // look at.
        let asks = step.input.is_some();
        let options = [
            (asks && step.expect.is_some(), "expect of an input"),
            (
                asks && !step.constraints.is_empty(),
                "constraints of an input",
            ),
        ];
        options
            .into_iter()
            .filter_map(|(used, name)| used.then_some(name))
            .collect()
    }

    /// The secrets that the call of a step is given.
    pub fn secrets(&self, ix: StepIx) -> Vec<SecretName> {
        self.args_template(ix)
            .map(Template::secrets)
            .unwrap_or_default()
    }

    /// Every secret the plan names.
    pub fn all_secrets(&self) -> BTreeSet<SecretName> {
        self.templates
            .values()
            .flat_map(StepTemplates::all)
            .flat_map(Template::secrets)
            .collect()
    }
}
