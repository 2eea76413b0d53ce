//! A run on paper: what every step would send, and what consent and the guards would say. Nothing is called.

use crate::digest::Digest;
use crate::plan::{Plan, Reference, Root, Segment, StepIx, Template};
use crate::tool::{Catalog, KnownTool};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What stands where a value is only known once a tool has answered.
pub const PLACEHOLDER: &str = "<tool result>";

/// A run on paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub digest: Digest,
    /// In plan order.
    pub steps: Vec<PreviewStep>,
    pub critical_path: Vec<StepIx>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PreviewStep {
    /// As they would be sent; what is not known yet is [`PLACEHOLDER`].
    pub args: Value,
    pub verdict: Verdict,
    pub reason: String,
}

/// What the default policy says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Whether a call needs consent: read-only tools run, everything else is asked about, what is unknown is denied.
pub fn verdict(tool: Option<&KnownTool>, approval_required: bool) -> (Verdict, &'static str) {
    match tool {
        None => (Verdict::Deny, "the tool is not known"),
        Some(_) if approval_required => (Verdict::Ask, "the plan asks for approval of this step"),
        Some(tool) if tool.is_read_only() => (Verdict::Allow, "the tool is read-only"),
        Some(_) => (Verdict::Ask, "the tool is not read-only"),
    }
}

/// Goes through the plan in dependency order, charging the budget as a run without failures would.
pub fn preview(plan: &Plan, catalog: &Catalog, policy_version: &str) -> Preview {
    let budget = &plan.document().limits.budget;
    let mut steps: Vec<Option<PreviewStep>> = vec![None; plan.len()];
    let mut calls = 0_u64;
    let mut per_tool: BTreeMap<String, u64> = BTreeMap::new();
    for &ix in plan.graph().order() {
        let name = plan.step(ix).action_label();
        let tool = catalog.resolve(name).ok();
        let (mut verdict, mut reason) = match plan.subplan_of(ix) {
            Some(_) => (Verdict::Ask, "it runs another plan"),
            None => self::verdict(tool.map(|tool| &**tool), plan.step(ix).approval_required),
        };
        // A budget may name the tool in full or bare, whatever the step says.
        let names = match tool {
            Some(tool) => vec![tool.name.to_string(), tool.name.tool.clone()],
            None => vec![name.to_owned()],
        };
        let spent = |name: &String| per_tool.get(name).copied().unwrap_or_default();
        if budget.calls.is_some_and(|limit| calls >= limit) {
            (verdict, reason) = (Verdict::Deny, "the plan's budget of calls is used up by then");
        } else if names
            .iter()
            .any(|name| budget.per_tool.get(name).is_some_and(|&limit| spent(name) >= limit))
        {
            (verdict, reason) = (Verdict::Deny, "the plan's budget for this tool is used up by then");
        } else {
            calls += 1;
            for name in names {
                *per_tool.entry(name).or_default() += 1;
            }
        }
        let reason = reason.to_owned();
        steps[ix.index()] = Some(PreviewStep { args: args(plan, ix), verdict, reason });
    }
    Preview {
        digest: plan.digest(catalog, policy_version),
        steps: steps.into_iter().flatten().collect(),
        critical_path: plan.graph().critical_path(super::unit_estimate),
    }
}

fn args(plan: &Plan, ix: StepIx) -> Value {
    if let Some(subplan) = &plan.step(ix).plan {
        return plan
            .inputs_template(ix)
            .map_or_else(|| Value::Object(subplan.inputs.clone()), |t| fill(plan, t));
    }
    match plan.args_template(ix) {
        None => Value::Object(plan.step(ix).args.clone()),
        Some(template) => fill(plan, template),
    }
}

fn fill(plan: &Plan, template: &Template) -> Value {
    match template {
        Template::Literal(value) => value.clone(),
        Template::Reference(reference) if is_variable(&reference.root) => {
            known(plan, template).unwrap_or_else(|| Value::String(PLACEHOLDER.into()))
        }
        // What is sent is never shown; what is shown says which secret it is.
        Template::Reference(Reference { root: Root::Secret(_), source, .. }) => {
            Value::String(format!("${{{source}}}"))
        }
        Template::Reference(_) => Value::String(PLACEHOLDER.into()),
        Template::Text(segments) => {
            let known_text = segments.iter().all(|segment| match segment {
                Segment::Text(_) => true,
                Segment::Reference(reference) => is_variable(&reference.root),
            });
            if known_text && let Some(value) = known(plan, template) {
                return value;
            }
            Value::String(segments.iter().map(|segment| segment_text(plan, segment)).collect())
        }
        Template::List(items) => Value::Array(items.iter().map(|item| fill(plan, item)).collect()),
        Template::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.clone(), fill(plan, field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn segment_text(plan: &Plan, segment: &Segment) -> String {
    match segment {
        Segment::Text(text) => text.clone(),
        Segment::Reference(reference) => match fill(plan, &Template::Reference(reference.clone())) {
            Value::String(text) => text,
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        },
    }
}

fn is_variable(root: &Root) -> bool {
    matches!(root, Root::Variable(_))
}

/// The value of a template that refers to variables only.
fn known(plan: &Plan, template: &Template) -> Option<Value> {
    struct Variables<'a>(&'a Plan);
    impl crate::plan::Values for Variables<'_> {
        fn variable(&self, name: &str) -> Option<&Value> {
            self.0.variable(name)
        }
        fn step(&self, _: StepIx) -> Option<&Value> {
            None
        }
    }
    template.resolve(&Variables(plan), usize::MAX).ok()
}
