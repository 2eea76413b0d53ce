//! A run on paper: what every step would send, and what consent and the guards would say. Nothing
//! is called.

use crate::digest::Digest;
use crate::plan::{Plan, Reference, Root, Segment, StepIx, Template};
use crate::policy::{Policy, Verdict};
use crate::tool::Catalog;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What stands where a value is only known once a tool has answered.
pub const PLACEHOLDER: &str = "<tool result>";

/// A run on paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The digest of what would run.
    pub digest: Digest,
    /// In plan order.
    pub steps: Vec<PreviewStep>,
    /// The steps that decide how long it takes.
    pub critical_path: Vec<StepIx>,
}

/// One step of a run on paper.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewStep {
    /// As they would be sent; what is not known yet is [`PLACEHOLDER`].
    pub args: Value,
    /// The arguments for each element of a step that runs once per element, the first ones, if the
    /// list is known.
    pub items: Option<Vec<Value>>,
    /// The verdict of the policy.
    pub verdict: Verdict,
    /// The reason, in words for people.
    pub reason: String,
}

/// As many elements as are shown: enough to see what happens.
const MAX_ITEMS: usize = 100;

/// Goes through the plan in dependency order, charging the budget as a run without failures would.
pub fn preview(plan: &Plan, catalog: &Catalog, policy: &Policy, policy_version: &str) -> Preview {
    let budget = &plan.document().limits.budget;
    let judged = policy.judge_plan(plan, catalog);
    let mut steps: Vec<Option<PreviewStep>> = vec![None; plan.len()];
    let mut calls = 0_u64;
    let mut per_tool: BTreeMap<String, u64> = BTreeMap::new();
    for &ix in plan.graph().order() {
        if plan.step(ix).skip {
            let verdict = Verdict::Allow;
            let reason = "the step is left out".to_owned();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        if plan.step(ix).think.is_some() || plan.step(ix).agent.is_some() {
            let judgement = &judged.steps[ix.index()].judgement;
            let verdict = judgement.verdict;
            let reason = judgement.explain();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        if plan.step(ix).input.is_some() {
            let verdict = Verdict::Ask;
            let reason = "a person is asked for values".to_owned();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        let list = elements(plan, ix);
        let times = list.as_ref().map_or(1, Vec::len) as u64;
        let name = plan.step(ix).action_label();
        let tool = catalog.resolve(name).ok();
        let judgement = &judged.steps[ix.index()].judgement;
        let mut verdict = judgement.verdict;
        let mut reason = judgement.explain();
        // A budget may name the tool in full or bare, regardless of how the step names it.
        let names = match tool {
            Some(tool) => vec![tool.name.to_string(), tool.name.tool.clone()],
            None => vec![name.to_owned()],
        };
        let spent = |name: &String| per_tool.get(name).copied().unwrap_or_default();
        if budget.calls.is_some_and(|limit| calls + times > limit) {
            (verdict, reason) = (
                Verdict::Deny,
                "the plan's budget of calls is used up by then".to_owned(),
            );
        } else if names.iter().any(|name| {
            budget
                .per_tool
                .get(name)
                .is_some_and(|&limit| spent(name) + times > limit)
        }) {
            (verdict, reason) = (
                Verdict::Deny,
                "the plan's budget for this tool is used up by then".to_owned(),
            );
        } else {
            calls += times;
            for name in names {
                *per_tool.entry(name).or_default() += times;
            }
        }
        let items = list.map(|list| element_args(plan, ix, &list));
        steps[ix.index()] = Some(PreviewStep {
            args: known_args(plan, ix),
            items,
            verdict,
            reason,
        });
    }
    Preview {
        digest: plan.digest(catalog, policy_version),
        steps: steps.into_iter().flatten().collect(),
        critical_path: plan.graph().critical_path(super::unit_estimate),
    }
}

/// What the step runs over, if that is known before anything runs.
fn elements(plan: &Plan, ix: StepIx) -> Option<Vec<Value>> {
    match plan
        .resolve_for_each(
            ix,
            &Variables {
                plan,
                element: None,
            },
        )?
        .ok()?
    {
        Value::Array(list) => Some(list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            None
        }
    }
}

fn element_args(plan: &Plan, ix: StepIx, list: &[Value]) -> Vec<Value> {
    let shown = list.iter().take(MAX_ITEMS).zip(0_u32..);
    shown
        .map(|(item, index)| match plan.args_template(ix) {
            None => Value::Object(plan.step(ix).args.clone()),
            Some(template) => {
                let values = Variables {
                    plan,
                    element: Some((item, Value::from(index))),
                };
                fill(&values, template)
            }
        })
        .collect()
}

/// A step's arguments as they would be sent, with [`PLACEHOLDER`] for what is not known yet.
pub fn known_args(plan: &Plan, ix: StepIx) -> Value {
    let step = plan.step(ix);
    if step.think.is_some() || step.agent.is_some() {
        return known_work(plan, ix);
    }
    let (written, template) = match &step.plan {
        Some(child) => (&child.inputs, plan.inputs_template(ix)),
        None => (&step.args, plan.args_template(ix)),
    };
    match template {
        None => Value::Object(written.clone()),
        Some(template) => fill(
            &Variables {
                plan,
                element: None,
            },
            template,
        ),
    }
}

/// What a model or an executor would be told, and what it could do.
fn known_work(plan: &Plan, ix: StepIx) -> Value {
    let step = plan.step(ix);
    let told = |written: &str| match plan.prompt_template(ix) {
        Some(template) => fill(
            &Variables {
                plan,
                element: None,
            },
            template,
        ),
        None => Value::String(written.to_owned()),
    };
    if let Some(think) = step.think.as_deref() {
        return json!({"prompt": told(&think.prompt)});
    }
    let Some(agent) = step.agent.as_deref() else {
        return Value::Null;
    };
    let mut work = json!({
        "instruction": told(&agent.instruction),
        "tools": plan.document().agent_tools(),
        "maxCalls": agent.max_calls(),
    });
    match &agent.executor {
        Some(executor) => work["executor"] = json!(executor),
        None => work["maxTurns"] = json!(agent.max_turns()),
    }
    let tokens = agent.max_tokens.or(plan.document().limits.budget.tokens);
    if let Some(tokens) = tokens {
        work["maxTokens"] = json!(tokens);
    }
    work
}

fn fill(values: &Variables<'_>, template: &Template) -> Value {
    match template {
        Template::Literal(value) => value.clone(),
        Template::Reference(reference) if is_variable(&reference.root) => {
            known(values, template).unwrap_or_else(|| Value::String(PLACEHOLDER.into()))
        }
        // What is sent is never shown; what is shown says which secret it is.
        Template::Reference(Reference {
            root: Root::Secret(_),
            source,
            ..
        }) => Value::String(format!("${{{source}}}")),
        Template::Reference(_) => Value::String(PLACEHOLDER.into()),
        Template::Text(segments) => {
            let known_text = segments.iter().all(|segment| match segment {
                Segment::Text(_) => true,
                Segment::Reference(reference) => is_variable(&reference.root),
            });
            if known_text && let Some(value) = known(values, template) {
                return value;
            }
            Value::String(
                segments
                    .iter()
                    .map(|segment| segment_text(values, segment))
                    .collect(),
            )
        }
        Template::List(items) => {
            Value::Array(items.iter().map(|item| fill(values, item)).collect())
        }
        Template::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, field)| (key.clone(), fill(values, field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn segment_text(values: &Variables<'_>, segment: &Segment) -> String {
    match segment {
        Segment::Text(text) => text.clone(),
        Segment::Reference(reference) => {
            match fill(values, &Template::Reference(reference.clone())) {
                Value::String(text) => text,
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => other.to_string(),
            }
        }
    }
}

fn is_variable(root: &Root) -> bool {
    matches!(root, Root::Variable(_))
}

/// What is known before anything runs.
struct Variables<'a> {
    plan: &'a Plan,
    element: Option<(&'a Value, Value)>,
}

impl crate::plan::Values for Variables<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        let element = || match (name, &self.element) {
            ("item", Some((item, _))) => Some(*item),
            ("index", Some((_, index))) => Some(index),
            _ => None,
        };
        self.plan.variable(name).or_else(element)
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }
}

/// The value of a template that refers to variables only.
fn known(values: &Variables<'_>, template: &Template) -> Option<Value> {
    template.resolve(values, usize::MAX).ok()
}
