//! Reads the texts of a step that may hold references, and binds each reference to what it stands
//! for.
//!
//! A reference to a step makes an edge by itself. References to a result name that several steps
//! produce are only collected here: which producer is meant depends on edges that are not all known
//! yet.

use super::names::{Meaning, Names};
use super::parse::{Head, Written, suggest_spelling};
use super::template::{Malformed, TemplateParser};
use super::{Root, Template};
use crate::id::StepId;
use crate::plan::compile::Compiled;
use crate::plan::expression::Expression;
use crate::plan::finding::Findings;
use crate::plan::{Action, Code, Finding, Step, StepIx};
use crate::secret::SecretName;
use crate::text::{did_you_mean, nearest_names};
use std::collections::{BTreeMap, BTreeSet};

/// The notation of a reference.
const FORMS: &str =
    "a reference is `${step}`, `${step.field}`, `${step.list[0]}` or `${step[\"odd key\"]}`";
/// The names that a suggestion offers.
const MAX_NAMES: usize = 8;

/// The parsed texts of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StepTemplates {
    pub(crate) args: Option<Template>,
    pub(crate) undo: Option<Template>,
    /// The inputs of a sub-plan.
    pub(crate) inputs: Option<Template>,
    /// The list the step runs once per element of.
    pub(crate) for_each: Option<Template>,
    /// The question to a person.
    pub(crate) message: Option<Template>,
    /// The prompt of a model or the instruction of an executor.
    pub(crate) prompt: Option<Template>,
    /// The target of an executor.
    pub(crate) target: Option<Template>,
    /// The steps that names in `when`, `expect` and `constraints` stand for.
    pub(crate) names: BTreeMap<Box<str>, StepIx>,
}

impl StepTemplates {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Template> {
        self.args
            .iter()
            .chain(&self.undo)
            .chain(&self.for_each)
            .chain(&self.message)
            .chain(&self.inputs)
            .chain(&self.prompt)
            .chain(&self.target)
    }

    pub(in crate::plan) fn all_mut(&mut self) -> impl Iterator<Item = &mut Template> {
        let texts = self
            .args
            .iter_mut()
            .chain(&mut self.undo)
            .chain(&mut self.for_each);
        let texts = texts.chain(&mut self.message).chain(&mut self.inputs);
        texts.chain(&mut self.prompt).chain(&mut self.target)
    }
}

/// A reference to a result name that several steps produce.
pub(in crate::plan) struct Shared {
    pub(in crate::plan) step: StepIx,
    pub(in crate::plan) name: Box<str>,
}

/// Parses every text that may hold references, and adds the edges they make.
pub(in crate::plan) fn parse_references(
    compiled: &mut Compiled,
    edges: &mut [BTreeSet<StepIx>],
    findings: &mut Findings,
) -> Vec<Shared> {
    let Compiled {
        document,
        by_id,
        names,
        templates,
        used,
        ..
    } = compiled;
    let mut shared = Vec::new();
    for (index, step) in document.steps.iter().enumerate() {
        let mut reader = StepReader {
            step,
            ix: StepIx::new(index),
            by_id,
            names,
            edges: &mut edges[index],
            used,
            shared: &mut shared,
            findings,
            own_value: false,
            only_sent: false,
        };
        let parsed = reader.read();
        if parsed != StepTemplates::default() {
            templates.insert(StepIx::new(index), parsed);
        }
    }
    shared
}

/// Parses the outputs of the plan. They are read when every step is done, so they make no edges.
pub(in crate::plan) fn parse_outputs(compiled: &mut Compiled, findings: &mut Findings) {
    let Compiled {
        document,
        by_id,
        names,
        used,
        ..
    } = compiled;
    let mut shared = Vec::new();
    let mut reader = StepReader {
        step: &Step::default(),
        // Behind all steps, so that every one of them may be referred to.
        ix: StepIx::new(document.steps.len()),
        by_id,
        names,
        edges: &mut BTreeSet::new(),
        used,
        shared: &mut shared,
        findings,
        own_value: false,
        only_sent: false,
    };
    let outputs = reader.parse(|parser| parser.object(&document.outputs, "/outputs"));
    for Shared { name, .. } in shared {
        let message = format!("several steps have the result name `{name}`");
        let hint = "name the step that is meant: `${steps.<id>}`".to_owned();
        let finding = Finding::new(Code::UnresolvedName, "/outputs", message);
        findings.add(finding.suggest(Some(hint)));
    }
    compiled.outputs = outputs;
}

struct StepReader<'a> {
    step: &'a Step,
    ix: StepIx,
    by_id: &'a BTreeMap<StepId, StepIx>,
    names: &'a Names,
    edges: &'a mut BTreeSet<StepIx>,
    used: &'a mut [bool],
    shared: &'a mut Vec<Shared>,
    findings: &'a mut Findings,
    /// True if the step's own value may be used: it exists once the step is undone.
    own_value: bool,
    /// True if what is read is sent to a tool and kept nowhere.
    only_sent: bool,
}

impl StepReader<'_> {
    fn read(&mut self) -> StepTemplates {
        let step = self.step;
        let at = format!("/steps/{}", self.ix.index());
        let mut parsed = StepTemplates::default();
        match step.action() {
            Some(Action::Tool { args, .. }) => {
                self.only_sent = true;
                parsed.args = self.parse(|parser| parser.object(args, &format!("{at}/args")));
                self.only_sent = false;
            }
            Some(Action::Think(think)) => {
                parsed.prompt = self.referring(&think.prompt, &format!("{at}/think/prompt"));
            }
            Some(Action::Agent(agent)) => {
                parsed.prompt =
                    self.referring(&agent.instruction, &format!("{at}/agent/instruction"));
                if let Some(target) = &agent.target {
                    parsed.target = self.referring(target, &format!("{at}/agent/target"));
                }
            }
            Some(Action::Input(input)) => {
                if let Some(message) = &input.message {
                    parsed.message = Some(self.text(message, &format!("{at}/input/message")));
                }
            }
            Some(Action::Plan(plan)) => {
                parsed.inputs =
                    self.parse(|parser| parser.object(&plan.inputs, &format!("{at}/plan/inputs")));
            }
            None => {}
        }
        if let Some(list) = &step.for_each {
            parsed.for_each =
                Some(self.parse(|parser| parser.value(list, &format!("{at}/forEach"))));
        }
        if let Some(undo) = &step.undo {
            (self.own_value, self.only_sent) = (true, true);
            parsed.undo =
                self.parse(|parser| parser.object(&undo.args, &format!("{at}/undo/args")));
            (self.own_value, self.only_sent) = (false, false);
        }
        parsed.names = self.expressions();
        parsed
    }

    /// A text that has markers; the others are sent as they are written.
    fn referring(&mut self, text: &str, pointer: &str) -> Option<Template> {
        text.contains("${").then(|| self.text(text, pointer))
    }

    fn text(&mut self, text: &str, pointer: &str) -> Template {
        self.parse(|parser| parser.text(text, pointer))
    }

    fn parse<T>(&mut self, read: impl FnOnce(&mut TemplateParser<'_>) -> T) -> T {
        let mut problems = Vec::new();
        let parsed = {
            let mut root = |written: &Written, pointer: &str| self.root(written, pointer);
            let mut malformed = |problem: Malformed| problems.push(problem);
            read(&mut TemplateParser {
                root: &mut root,
                malformed: &mut malformed,
            })
        };
        for Malformed {
            pointer,
            text,
            error,
        } in problems
        {
            let shown: String = text.chars().take(60).collect();
            let message = format!("a reference in {shown:?} cannot be read: {error}");
            let hint = match suggest_spelling(&text, error.offset) {
                Some(spelling) => format!("write `{spelling}`"),
                None => FORMS.to_owned(),
            };
            let finding = Finding::new(Code::MalformedReference, pointer, message);
            self.findings
                .add(finding.of_step(self.step.id.as_ref()).suggest(Some(hint)));
        }
        parsed
    }

    fn root(&mut self, written: &Written, pointer: &str) -> Root {
        let name = match &written.head {
            Head::Secret(name) => {
                self.check_secret(name, written, pointer);
                return Root::Secret(name.clone());
            }
            Head::Step(id) => {
                if let Some(&ix) = self.by_id.get(&**id) {
                    return self.step_root(ix, written, pointer);
                }
                let known = || self.by_id.keys().map(ToString::to_string);
                let suggestion = self
                    .findings
                    .hint(|| did_you_mean(&nearest_names(id, known())));
                self.unresolved(
                    written,
                    pointer,
                    format!("there is no step `{id}`"),
                    suggestion,
                );
                return Root::Variable(format!("steps.{id}").into());
            }
            Head::Name(name) => name,
        };
        match self.names.meaning(name, self.by_id) {
            Meaning::Variable => {}
            Meaning::Step(ix) => return self.step_root(ix, written, pointer),
            Meaning::OneOfSeveral => self.shared.push(Shared {
                step: self.ix,
                name: name.clone(),
            }),
            Meaning::Nothing if self.step.for_each.is_some() && is_loop_name(name) => {}
            Meaning::Nothing => {
                let known = || self.names.all(self.by_id);
                let suggestion = self
                    .findings
                    .hint(|| did_you_mean(&nearest_names(name, known())));
                let message = format!("no variable, result or step is called `{name}`");
                self.unresolved(written, pointer, message, suggestion);
            }
        }
        Root::Variable(name.clone())
    }

    fn check_secret(&mut self, name: &str, written: &Written, pointer: &str) {
        let problem = if !self.only_sent {
            "would be stored and shown here: a secret stands in the arguments of a tool only"
        } else if SecretName::new(name).is_none() {
            "is no name for a secret: it has at most 64 ASCII letters, digits, `_` and `-`"
        } else if !written.path.is_empty() {
            "asks for a part of a secret, which is a text without parts"
        } else {
            return;
        };
        let message = format!("`${{{}}}` {problem}", written.source);
        let finding = Finding::new(Code::MisplacedSecret, pointer, message);
        self.findings.add(finding.of_step(self.step.id.as_ref()));
    }

    fn unresolved(
        &mut self,
        written: &Written,
        pointer: &str,
        message: String,
        suggestion: Option<String>,
    ) {
        let message = format!("`${{{}}}` refers to nothing: {message}", written.source);
        let fallback = || self.names_before();
        let finding =
            Finding::new(Code::UnresolvedName, pointer, message).of_step(self.step.id.as_ref());
        let suggestion = suggestion.or_else(fallback);
        self.findings.add(finding.suggest(suggestion));
    }

    /// The steps whose values this one can take, the nearest first.
    fn names_before(&self) -> Option<String> {
        let before: BTreeMap<StepIx, &StepId> = self
            .by_id
            .iter()
            .filter(|(_, ix)| **ix < self.ix)
            .map(|(id, ix)| (*ix, id))
            .collect();
        let nearest = before.values().rev().take(MAX_NAMES);
        let names: Vec<String> = nearest.map(|id| format!("`${{{id}}}`")).collect();
        if names.is_empty() {
            let none = "no step comes before this one: take the value from `variables` or `inputs`";
            return Some(none.to_owned());
        }
        Some(format!("the steps before it are {}", names.join(", ")))
    }

    fn step_root(&mut self, ix: StepIx, written: &Written, pointer: &str) -> Root {
        if ix != self.ix {
            self.edges.insert(ix);
            self.used[ix.index()] = true;
        } else if !self.own_value {
            let message = format!("`${{{}}}` is the value of this very step", written.source);
            let finding = Finding::new(Code::SelfDependency, pointer, message);
            let finding = finding
                .of_step(self.step.id.as_ref())
                .suggest(self.names_before());
            self.findings.add(finding);
        }
        Root::Step(ix)
    }

    /// Conditions make edges too. One that cannot be read makes none, and is reported by
    /// validation.
    fn expressions(&mut self) -> BTreeMap<Box<str>, StepIx> {
        let step = self.step;
        let mut bound = BTreeMap::new();
        // What a call is made with and what it returns hides other names, but only once there is a
        // call.
        let about_call = step
            .expect
            .iter()
            .chain(&step.constraints)
            .map(|source| (source, true));
        for (source, about_call) in step
            .when
            .iter()
            .map(|source| (source, false))
            .chain(about_call)
        {
            let Ok(expression) = Expression::parse(source) else {
                continue;
            };
            for name in &expression.names() {
                if about_call
                    && (name == "result" || name == "args" || step.args.contains_key(name))
                {
                    continue;
                }
                let ix = match name.strip_prefix("steps.") {
                    Some(id) => self.by_id.get(id).copied(),
                    None => match self.names.meaning(name, self.by_id) {
                        Meaning::Step(ix) => Some(ix),
                        Meaning::OneOfSeveral => {
                            self.shared.push(Shared {
                                step: self.ix,
                                name: name.as_str().into(),
                            });
                            None
                        }
                        Meaning::Variable | Meaning::Nothing => None,
                    },
                };
                if let Some(ix) = ix.filter(|&ix| ix != self.ix) {
                    self.edges.insert(ix);
                    self.used[ix.index()] = true;
                    bound.insert(name.as_str().into(), ix);
                }
            }
        }
        bound
    }
}

/// The names a step that runs once per element sees for the element and its number.
pub(crate) fn is_loop_name(name: &str) -> bool {
    name == "item" || name == "index"
}
