//! The values of a plan that are known before anything runs.
//!
//! What is not known yet is named by where it comes from, as in `‹content of step look›`: two late
//! values never look alike. The brackets are spelt out in texts of the plan that such words are put
//! into, so that a plan cannot forge them.

use super::{PathSegment, Plan, Reference, Root, Segment, StepIx, Template, Values};
use crate::text::{reveal_hidden, spell_brackets};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A part of a step's arguments that is only known once another step has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatePart {
    /// JSON pointer into the arguments.
    pub pointer: String,
    /// The words that stand there.
    pub words: String,
}

/// The values of a plan before it runs: its variables, and the inputs it would be given.
#[derive(Debug, Clone, Copy)]
pub struct KnownValues<'a> {
    plan: &'a Plan,
    /// Inputs from the plan that this one is a part of.
    given: Option<&'a Map<String, Value>>,
    element: Option<Element<'a>>,
}

/// One element of a list that a step runs over.
#[derive(Debug, Clone, Copy)]
struct Element<'a> {
    item: &'a Value,
    index: &'a Value,
}

/// A step's arguments as they would be sent; what is not known yet is named by its source.
pub fn known_args(plan: &Plan, ix: StepIx) -> Value {
    KnownValues::of(plan).args(ix)
}

impl<'a> KnownValues<'a> {
    /// The values of a plan that is started by itself.
    pub fn of(plan: &'a Plan) -> Self {
        Self {
            plan,
            given: None,
            element: None,
        }
    }

    /// The values of a sub-plan that is given these inputs.
    #[must_use]
    pub fn with_inputs(self, given: &'a Map<String, Value>) -> Self {
        Self {
            given: Some(given),
            ..self
        }
    }

    /// A step's arguments, or what a model, an executor or a sub-plan would be given.
    pub fn args(&self, ix: StepIx) -> Value {
        let step = self.plan.step(ix);
        if step.think.is_some() || step.agent.is_some() {
            return self.work(ix);
        }
        let (written, template) = match &step.plan {
            Some(child) => (&child.inputs, self.plan.inputs_template(ix)),
            None => (&step.args, self.plan.args_template(ix)),
        };
        match template {
            None => Value::Object(written.clone()),
            Some(template) => self.fill(ix, template),
        }
    }

    /// The arguments of the call that takes a step back.
    pub fn undo_args(&self, ix: StepIx) -> Option<Value> {
        let undo = self.plan.step(ix).undo.as_deref()?;
        Some(match self.plan.undo_template(ix) {
            None => Value::Object(undo.args.clone()),
            Some(template) => self.fill(ix, template),
        })
    }

    /// The parts of a step's arguments that are named by their source.
    pub fn late_parts(&self, ix: StepIx) -> Vec<LatePart> {
        let mut parts = Vec::new();
        let template = self.plan.args_template(ix);
        if let Some(template) = template.or_else(|| self.plan.inputs_template(ix)) {
            self.collect_late(ix, template, &mut String::new(), &mut parts);
        }
        parts
    }

    /// The parts of its undo's arguments that are named by their source.
    pub fn late_undo_parts(&self, ix: StepIx) -> Vec<LatePart> {
        let mut parts = Vec::new();
        if let Some(template) = self.plan.undo_template(ix) {
            self.collect_late(ix, template, &mut String::new(), &mut parts);
        }
        parts
    }

    /// Returns the list that the step runs over, if it is known before anything runs.
    pub fn elements(&self, ix: StepIx) -> Option<Vec<Value>> {
        match self.plan.resolve_for_each(ix, self)?.ok()? {
            Value::Array(list) => Some(list),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }

    /// The arguments for the first elements of a list.
    pub fn element_args(&self, ix: StepIx, list: &[Value], limit: usize) -> Vec<Value> {
        let shown = list.iter().take(limit).zip(0_u32..);
        shown
            .map(|(item, index)| match self.plan.args_template(ix) {
                None => Value::Object(self.plan.step(ix).args.clone()),
                Some(template) => {
                    let index = Value::from(index);
                    let element = Some(Element {
                        item,
                        index: &index,
                    });
                    KnownValues { element, ..*self }.fill(ix, template)
                }
            })
            .collect()
    }

    /// The parts of the arguments that are late for every element of a list that is known.
    pub fn late_element_parts(&self, ix: StepIx, list: &[Value]) -> Vec<LatePart> {
        let index = Value::from(0);
        let element = list.first().map(|item| Element {
            item,
            index: &index,
        });
        KnownValues { element, ..*self }.late_parts(ix)
    }

    /// The question that an `input` step asks.
    pub fn message(&self, ix: StepIx) -> Option<String> {
        let written = self.plan.step(ix).input.as_deref()?.message.clone()?;
        Some(match self.plan.message_template(ix) {
            Some(template) => as_text(self.fill(ix, template)),
            None => spell_brackets(&written).into_owned(),
        })
    }

    /// Says in words what the step runs over: a list that is written in the plan is left out.
    pub fn list_source(&self, ix: StepIx) -> Option<String> {
        let written = self.plan.step(ix).for_each.as_ref()?;
        Some(match self.plan.for_each_template(ix) {
            Some(Template::Reference(reference)) => self.late_words(ix, reference),
            Some(Template::Literal(_) | Template::List(_)) => "a list in the plan".to_owned(),
            Some(template @ (Template::Text(_) | Template::Object(_))) => {
                as_text(self.fill(ix, template))
            }
            None => as_text(written.clone()),
        })
    }

    /// Describes what a model or an executor would be told, and what it could do.
    fn work(&self, ix: StepIx) -> Value {
        let step = self.plan.step(ix);
        if step.think.is_some() {
            return json!({"prompt": self.prompt(ix)});
        }
        let Some(agent) = step.agent.as_deref() else {
            return Value::Null;
        };
        let document = self.plan.document();
        let mut work = json!({
            "instruction": self.prompt(ix),
            "tools": document.agent_tools(),
            "maxCalls": agent.max_calls(),
        });
        match &agent.executor {
            Some(executor) => work["executor"] = json!(executor),
            None => work["maxTurns"] = json!(agent.max_turns()),
        }
        let tokens = agent.max_tokens.or(document.limits.budget.tokens);
        if let Some(tokens) = tokens {
            work["maxTokens"] = json!(tokens);
        }
        work
    }

    /// The prompt of a `think` step or the instruction of an `agent` step.
    pub fn prompt(&self, ix: StepIx) -> String {
        if let Some(template) = self.plan.prompt_template(ix) {
            return as_text(self.fill(ix, template));
        }
        let step = self.plan.step(ix);
        let think = step.think.as_deref().map(|think| &think.prompt);
        let agent = || step.agent.as_deref().map(|agent| &agent.instruction);
        let written = think.or_else(agent).map(String::as_str).unwrap_or_default();
        spell_brackets(written).into_owned()
    }

    /// The target of an `agent` step.
    pub fn target(&self, ix: StepIx) -> Option<String> {
        let written = self.plan.step(ix).agent.as_deref()?.target.clone()?;
        Some(match self.plan.target_template(ix) {
            Some(template) => as_text(self.fill(ix, template)),
            None => spell_brackets(&written).into_owned(),
        })
    }

    fn fill(&self, ix: StepIx, template: &Template) -> Value {
        match template {
            Template::Literal(value) => value.clone(),
            Template::Reference(reference) => self.fill_reference(ix, reference, template),
            Template::Text(segments) => {
                let is_known = segments.iter().all(|segment| match segment {
                    Segment::Text(_) => true,
                    Segment::Reference(reference) => is_variable(&reference.root),
                });
                if is_known && let Some(value) = self.resolve(template) {
                    return value;
                }
                let texts = segments
                    .iter()
                    .map(|segment| self.segment_text(ix, segment));
                Value::String(texts.collect())
            }
            Template::List(items) => {
                Value::Array(items.iter().map(|item| self.fill(ix, item)).collect())
            }
            Template::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, field)| (key.clone(), self.fill(ix, field)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    fn fill_reference(&self, ix: StepIx, reference: &Reference, template: &Template) -> Value {
        match &reference.root {
            // What is sent is never shown; what is shown says which secret it is.
            Root::Secret(_) => Value::String(format!("${{{}}}", reference.source)),
            Root::Variable(_) => match self.resolve(template) {
                Some(value) => value,
                None => Value::String(self.late_words(ix, reference)),
            },
            Root::Step(_) => Value::String(self.late_words(ix, reference)),
        }
    }

    fn segment_text(&self, ix: StepIx, segment: &Segment) -> String {
        match segment {
            Segment::Text(text) => spell_brackets(text).into_owned(),
            Segment::Reference(reference) => {
                let template = Template::Reference(reference.clone());
                let value = self.fill_reference(ix, reference, &template);
                let is_late = matches!(reference.root, Root::Step(_));
                let text = as_text(value);
                if is_late || self.resolve(&template).is_none() {
                    text
                } else {
                    spell_brackets(&text).into_owned()
                }
            }
        }
    }

    /// Names a value that is not known yet by where it comes from.
    fn late_words(&self, ix: StepIx, reference: &Reference) -> String {
        let path = path_text(&reference.path);
        match &reference.root {
            Root::Step(step) => {
                let step = self.plan.step_id(*step);
                if path.is_empty() {
                    format!("‹result of step {step}›")
                } else {
                    format!("‹{path} of step {step}›")
                }
            }
            Root::Variable(name) if matches!(&**name, "item" | "index") => {
                let part = if path.is_empty() {
                    String::new()
                } else {
                    format!("{path} of ")
                };
                let word = if &**name == "item" {
                    "one element"
                } else {
                    "the number of one element"
                };
                match self.plan.for_each_template(ix) {
                    Some(Template::Reference(list)) if list.root != reference.root => {
                        let list = self.late_words(ix, list);
                        let list = list.trim_start_matches('‹').trim_end_matches('›');
                        format!("‹{part}{word} of {list}›")
                    }
                    Some(_) | None => format!("‹{part}{word} of the list›"),
                }
            }
            Root::Variable(name) => {
                let name = reveal_hidden(name);
                if path.is_empty() {
                    format!("‹input {name}›")
                } else {
                    format!("‹{path} of input {name}›")
                }
            }
            Root::Secret(_) => format!("${{{}}}", reference.source),
        }
    }

    fn collect_late(
        &self,
        ix: StepIx,
        template: &Template,
        pointer: &mut String,
        parts: &mut Vec<LatePart>,
    ) {
        let late = |reference: &Reference| match &reference.root {
            Root::Step(_) => true,
            Root::Secret(_) => false,
            Root::Variable(_) => self
                .resolve(&Template::Reference(reference.clone()))
                .is_none(),
        };
        let mut add = |reference: &Reference| {
            if late(reference) {
                parts.push(LatePart {
                    pointer: pointer.clone(),
                    words: self.late_words(ix, reference),
                });
            }
        };
        match template {
            Template::Literal(_) => {}
            Template::Reference(reference) => add(reference),
            Template::Text(segments) => {
                for segment in segments {
                    if let Segment::Reference(reference) = segment {
                        add(reference);
                    }
                }
            }
            Template::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect_late_at(ix, item, &index.to_string(), (pointer, parts));
                }
            }
            Template::Object(fields) => {
                for (key, field) in fields {
                    let token = crate::json::pointer_token(key);
                    self.collect_late_at(ix, field, &token, (pointer, parts));
                }
            }
        }
    }

    fn collect_late_at(
        &self,
        ix: StepIx,
        template: &Template,
        token: &str,
        (pointer, parts): (&mut String, &mut Vec<LatePart>),
    ) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(token);
        self.collect_late(ix, template, pointer, parts);
        pointer.truncate(length);
    }

    /// The value of a template that refers to variables only.
    fn resolve(&self, template: &Template) -> Option<Value> {
        template.resolve(self, usize::MAX).ok()
    }
}

impl Values for KnownValues<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        let element = || match (name, &self.element) {
            ("item", Some(element)) => Some(element.item),
            ("index", Some(element)) => Some(element.index),
            _ => None,
        };
        let given = self.given.and_then(|given| given.get(name));
        given.or_else(|| self.plan.variable(name)).or_else(element)
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }
}

fn is_variable(root: &Root) -> bool {
    matches!(root, Root::Variable(_))
}

fn path_text(path: &[PathSegment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            PathSegment::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&reveal_hidden(name));
            }
            PathSegment::Index(index) => {
                write!(text, "[{index}]").expect("writing to a string cannot fail");
            }
        }
    }
    text
}

fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => other.to_string(),
    }
}
