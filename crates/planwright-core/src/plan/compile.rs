//! From a document to its structure: ids, references, edges, order. Needs no knowledge of any tool.
//!
//! It never stops at the first mistake: everything that can be found is found, so that an author fixes a plan once.

use super::expression::Expression;
use super::fields::check_fields;
use super::finding::Findings;
use super::names::{Meaning, Names, TooMuchWork, Upstream};
use super::nearest::{did_you_mean, nearest};
use super::reference::{Head, Written, is_name};
use super::template::{Malformed, TemplateParser};
use super::{Action, Bounds, Code, Document, Finding, Graph, Plan, Root, Step, StepIx, Template};
use crate::digest::Digest;
use crate::id::{PlanId, StepId};
use std::collections::{BTreeMap, BTreeSet};

/// The parsed texts of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StepTemplates {
    pub(crate) args: Option<Template>,
    pub(crate) undo: Option<Template>,
    /// Prompts, instructions, lists: what the actions other than tool calls are made of.
    pub(crate) other: Vec<Template>,
}

impl StepTemplates {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Template> {
        self.args.iter().chain(&self.undo).chain(&self.other)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Template> {
        self.args.iter_mut().chain(&mut self.undo).chain(&mut self.other)
    }
}

/// What is known about a document's structure, sound or not.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) document: Document,
    pub(crate) by_id: BTreeMap<StepId, StepIx>,
    pub(crate) names: Names,
    pub(crate) templates: BTreeMap<StepIx, StepTemplates>,
    /// Which steps' values are used by another step.
    pub(crate) used: Vec<bool>,
    /// `None` if there are cycles.
    pub(crate) graph: Option<Graph>,
}

impl Compiled {
    pub(crate) fn into_plan(self, bounds: &Bounds) -> Option<Plan> {
        let id = self.document.id.clone()?;
        let max_resolved_bytes = bounds.max_resolved_bytes;
        let Self { document, by_id, templates, graph, names: _, used: _ } = self;
        Some(Plan { id, document, by_id, graph: graph?, templates, max_resolved_bytes })
    }

    pub(crate) fn step_id(&self, ix: StepIx) -> Option<&StepId> {
        self.document.steps[ix.index()].id.as_ref()
    }
}

/// Compiles a document. `None` if it is too large to look at.
pub(crate) fn compile(mut document: Document, bounds: &Bounds, findings: &mut Findings) -> Option<Compiled> {
    if document.steps.len() > bounds.max_steps {
        let message =
            format!("the plan has {} steps, at most {} are allowed", document.steps.len(), bounds.max_steps);
        findings.add(Finding::new(Code::TooLarge, "/steps", message));
        return None;
    }
    document.number_steps();
    if document.id.is_none() {
        document.id = Some(derived_id(&document));
    }
    check_fields(&document, bounds, findings);
    let mut compiled = Compiled {
        by_id: index_ids(&document, findings),
        names: Names::of(&document),
        templates: BTreeMap::new(),
        used: vec![false; document.steps.len()],
        graph: None,
        document,
    };
    for step in &compiled.document.steps {
        check_result_name(step, &compiled, findings);
    }
    let mut edges = declared_edges(&mut compiled, findings);
    let shared = parse_references(&mut compiled, &mut edges, findings);
    let count: usize = edges.iter().map(BTreeSet::len).sum();
    if count > bounds.max_edges {
        let message = format!("the plan has {count} edges, at most {} are allowed", bounds.max_edges);
        findings.add(Finding::new(Code::TooLarge, "/steps", message));
        return None;
    }
    compiled.graph = build_graph(&compiled, &mut edges, findings);
    if let Err(TooMuchWork) = resolve_shared(&mut compiled, edges, &shared, findings) {
        let message = "too many steps share their result names with others";
        findings.add(Finding::new(Code::TooLarge, "/steps", message));
        return None;
    }
    Some(compiled)
}

/// The id of a document that came without one: the same document gets the same id.
fn derived_id(document: &Document) -> PlanId {
    let value = serde_json::to_value(document).expect("documents have only string keys");
    let digest = Digest::of_json(&value);
    let entropy =
        digest.as_bytes().iter().take(8).fold(0_u64, |entropy, byte| entropy << 8 | u64::from(*byte));
    PlanId::mint(entropy)
}

pub(crate) fn step_pointer(ix: usize) -> String {
    format!("/steps/{ix}")
}

fn index_ids(document: &Document, findings: &mut Findings) -> BTreeMap<StepId, StepIx> {
    let mut by_id = BTreeMap::new();
    for (index, step) in document.steps.iter().enumerate() {
        let Some(id) = &step.id else { continue };
        if let Some(first) = by_id.get(id) {
            let first: &StepIx = first;
            let message = format!("the id `{id}` belongs to step {} already", first.index() + 1);
            let finding = Finding::new(Code::DuplicateId, format!("/steps/{index}/id"), message);
            findings.add(finding.of_step(Some(id)).suggest(Some("give every step its own id".to_owned())));
        } else {
            by_id.insert(id.clone(), StepIx::new(index));
        }
    }
    by_id
}

fn check_result_name(step: &Step, compiled: &Compiled, findings: &mut Findings) {
    let (Some(name), Some(id)) = (&step.result, &step.id) else { return };
    let index = compiled.by_id.get(id).map_or(0, |ix| ix.index());
    let pointer = format!("/steps/{index}/result");
    if !is_name(name) || name == "steps" || name == "secret" {
        let message = format!("the result name {name:?} cannot be used in a reference");
        let hint = "use letters, digits, `_` and `-`; `steps` and `secret` are taken";
        let finding = Finding::new(Code::BadName, pointer, message).of_step(Some(id));
        findings.add(finding.suggest(Some(hint.to_owned())));
    } else if compiled.names.is_variable(name) {
        let message = format!("the variable `{name}` hides this result: `${{{name}}}` is the variable");
        let hint = format!("use another name, or `${{steps.{id}}}`");
        findings.add(Finding::new(Code::HiddenName, pointer, message).of_step(Some(id)).suggest(Some(hint)));
    } else if let Some(other) = compiled.by_id.get(name.as_str())
        && other.index() != index
    {
        let message = format!("`${{{name}}}` is this result and no longer the step `{name}`");
        let hint = format!("use another name, or `${{steps.{name}}}` for the step");
        findings.add(Finding::new(Code::HiddenName, pointer, message).of_step(Some(id)).suggest(Some(hint)));
    }
}

/// The edges of `dependsOn`. Dependencies listed twice are listed once afterwards.
fn declared_edges(compiled: &mut Compiled, findings: &mut Findings) -> Vec<BTreeSet<StepIx>> {
    let Compiled { document, by_id, .. } = compiled;
    let mut edges = Vec::with_capacity(document.steps.len());
    for (index, step) in document.steps.iter_mut().enumerate() {
        let mut seen = BTreeSet::new();
        step.depends_on.retain(|dependency| seen.insert(dependency.clone()));
        let mut list = BTreeSet::new();
        for (position, dependency) in step.depends_on.iter().enumerate() {
            let pointer = format!("/steps/{index}/dependsOn/{position}");
            match by_id.get(dependency) {
                Some(ix) if ix.index() == index => {
                    let message = format!("step `{dependency}` depends on itself");
                    findings
                        .add(Finding::new(Code::SelfDependency, pointer, message).of_step(step.id.as_ref()));
                }
                Some(ix) => {
                    list.insert(*ix);
                }
                None => {
                    let known = || by_id.keys().map(ToString::to_string);
                    let suggestion = findings.hint(|| did_you_mean(&nearest(dependency.as_str(), known())));
                    let message = format!("there is no step `{dependency}` to depend on");
                    let finding = Finding::new(Code::UnknownDependency, pointer, message);
                    findings.add(finding.of_step(step.id.as_ref()).suggest(suggestion));
                }
            }
        }
        edges.push(list);
    }
    edges
}

/// A reference to a result name that several steps produce.
struct Shared {
    step: StepIx,
    name: Box<str>,
}

/// Parses every text that may hold references, and adds the edges they make.
fn parse_references(
    compiled: &mut Compiled,
    edges: &mut [BTreeSet<StepIx>],
    findings: &mut Findings,
) -> Vec<Shared> {
    let Compiled { document, by_id, names, templates, used, .. } = compiled;
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
        };
        let parsed = reader.read();
        if parsed != StepTemplates::default() {
            templates.insert(StepIx::new(index), parsed);
        }
    }
    shared
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
    /// Whether the step's own value may be used: it exists once the step is undone.
    own_value: bool,
}

impl StepReader<'_> {
    fn read(&mut self) -> StepTemplates {
        let step = self.step;
        let at = step_pointer(self.ix.index());
        let mut parsed = StepTemplates::default();
        let mut other = Vec::new();
        match step.action() {
            Some(Action::Tool { args, .. }) => {
                parsed.args = self.parse(|parser| parser.object(args, &format!("{at}/args")));
            }
            Some(Action::Think(think)) => {
                other.push(self.text(&think.prompt, &format!("{at}/think/prompt")));
            }
            Some(Action::Agent(agent)) => {
                other.push(self.text(&agent.instruction, &format!("{at}/agent/instruction")));
                if let Some(target) = &agent.target {
                    other.push(self.text(target, &format!("{at}/agent/target")));
                }
            }
            Some(Action::Input(input)) => {
                if let Some(message) = &input.message {
                    other.push(self.text(message, &format!("{at}/input/message")));
                }
            }
            Some(Action::Plan(plan)) => {
                other.extend(self.parse(|parser| parser.object(&plan.inputs, &format!("{at}/plan/inputs"))));
            }
            None => {}
        }
        if let Some(list) = &step.for_each {
            other.push(self.parse(|parser| parser.value(list, &format!("{at}/forEach"))));
        }
        parsed.other =
            other.into_iter().filter(|template| !matches!(template, Template::Literal(_))).collect();
        if let Some(undo) = &step.undo {
            self.own_value = true;
            parsed.undo = self.parse(|parser| parser.object(&undo.args, &format!("{at}/undo/args")));
            self.own_value = false;
        }
        self.expressions();
        parsed
    }

    fn text(&mut self, text: &str, pointer: &str) -> Template {
        self.parse(|parser| parser.text(text, pointer))
    }

    fn parse<T>(&mut self, read: impl FnOnce(&mut TemplateParser<'_>) -> T) -> T {
        let mut problems = Vec::new();
        let parsed = {
            let mut root = |written: &Written, pointer: &str| self.root(written, pointer);
            let mut malformed = |problem: Malformed| problems.push(problem);
            read(&mut TemplateParser { root: &mut root, malformed: &mut malformed })
        };
        for Malformed { pointer, text, error } in problems {
            let shown: String = text.chars().take(60).collect();
            let message = format!("a reference in {shown:?} cannot be read: {error}");
            let hint = "write `$${` for a literal `${`".to_owned();
            let finding = Finding::new(Code::MalformedReference, pointer, message);
            self.findings.add(finding.of_step(self.step.id.as_ref()).suggest(Some(hint)));
        }
        parsed
    }

    fn root(&mut self, written: &Written, pointer: &str) -> Root {
        let name = match &written.head {
            Head::Secret(name) => return Root::Secret(name.clone()),
            Head::Step(id) => {
                if let Some(&ix) = self.by_id.get(&**id) {
                    return self.step_root(ix, written, pointer);
                }
                let known = || self.by_id.keys().map(ToString::to_string);
                let suggestion = self.findings.hint(|| did_you_mean(&nearest(id, known())));
                self.unresolved(written, pointer, format!("there is no step `{id}`"), suggestion);
                return Root::Variable(format!("steps.{id}").into());
            }
            Head::Name(name) => name,
        };
        match self.names.meaning(name, self.by_id) {
            Meaning::Variable => {}
            Meaning::Step(ix) => return self.step_root(ix, written, pointer),
            Meaning::OneOfSeveral => self.shared.push(Shared { step: self.ix, name: name.clone() }),
            Meaning::Nothing if self.step.for_each.is_some() && is_loop_name(name) => {}
            Meaning::Nothing => {
                let known = || self.names.all(self.by_id);
                let suggestion = self.findings.hint(|| did_you_mean(&nearest(name, known())));
                let message = format!("no variable, result or step is called `{name}`");
                self.unresolved(written, pointer, message, suggestion);
            }
        }
        Root::Variable(name.clone())
    }

    fn unresolved(&mut self, written: &Written, pointer: &str, message: String, suggestion: Option<String>) {
        let message = format!("`${{{}}}` refers to nothing: {message}", written.source);
        let fallback = || Some("define it in `variables`, or write `$${` for a literal `${`".to_owned());
        let finding = Finding::new(Code::UnresolvedName, pointer, message).of_step(self.step.id.as_ref());
        self.findings.add(finding.suggest(suggestion.or_else(fallback)));
    }

    fn step_root(&mut self, ix: StepIx, written: &Written, pointer: &str) -> Root {
        if ix != self.ix {
            self.edges.insert(ix);
            self.used[ix.index()] = true;
        } else if !self.own_value {
            let message = format!("`${{{}}}` is the value of this very step", written.source);
            let finding = Finding::new(Code::SelfDependency, pointer, message);
            self.findings.add(finding.of_step(self.step.id.as_ref()));
        }
        Root::Step(ix)
    }

    /// Conditions make edges too. One that cannot be read makes none, and is reported by validation.
    fn expressions(&mut self) {
        let step = self.step;
        for source in step.when.iter().chain(&step.expect).chain(&step.constraints) {
            let Ok(expression) = Expression::parse(source) else { continue };
            for name in &expression.names() {
                let ix = match name.strip_prefix("steps.") {
                    Some(id) => self.by_id.get(id).copied(),
                    None if name == "result" || name == "args" || step.args.contains_key(name) => None,
                    None => match self.names.meaning(name, self.by_id) {
                        Meaning::Step(ix) => Some(ix),
                        Meaning::OneOfSeveral => {
                            self.shared.push(Shared { step: self.ix, name: name.as_str().into() });
                            None
                        }
                        Meaning::Variable | Meaning::Nothing => None,
                    },
                };
                if let Some(ix) = ix.filter(|&ix| ix != self.ix) {
                    self.edges.insert(ix);
                    self.used[ix.index()] = true;
                }
            }
        }
    }
}

/// The names a step that runs once per element sees for the element and its number.
pub(crate) fn is_loop_name(name: &str) -> bool {
    name == "item" || name == "index"
}

/// Builds the graph. Every cycle found is reported and cut, so that one does not hide the next.
fn build_graph(
    compiled: &Compiled,
    edges: &mut [BTreeSet<StepIx>],
    findings: &mut Findings,
) -> Option<Graph> {
    const MAX_CYCLES: usize = 10;
    for _ in 0..MAX_CYCLES {
        let lists = edges.iter().map(|set| set.iter().copied().collect()).collect();
        let mut cycle = match Graph::new(lists) {
            Ok(graph) => return Some(graph).filter(|_| !findings.has(Code::Cycle)),
            Err(cycle) => cycle,
        };
        let first = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
        cycle.rotate_left(first);
        findings.add(cycle_finding(compiled, &cycle));
        for (i, ix) in cycle.iter().enumerate() {
            let next = cycle[(i + 1) % cycle.len()];
            edges[next.index()].remove(ix);
        }
    }
    None
}

fn cycle_finding(compiled: &Compiled, cycle: &[StepIx]) -> Finding {
    let name = |ix: &StepIx| compiled.step_id(*ix).map_or_else(String::new, ToString::to_string);
    let circle: Vec<String> = cycle.iter().chain(cycle.first()).map(name).collect();
    let message = format!("these steps wait for each other: {}", circle.join(" → "));
    let start = cycle.first().copied();
    let pointer = start.map_or_else(|| "/steps".to_owned(), |ix| step_pointer(ix.index()));
    Finding::new(Code::Cycle, pointer, message)
        .of_step(start.and_then(|ix| compiled.step_id(ix)))
        .suggest(Some("remove one of these dependencies or references".to_owned()))
}

/// Decides the references to names that several steps produce, and refuses producers that may run at once.
fn resolve_shared(
    compiled: &mut Compiled,
    mut edges: Vec<BTreeSet<StepIx>>,
    shared: &[Shared],
    findings: &mut Findings,
) -> Result<(), TooMuchWork> {
    let Some(graph) = compiled.graph.take() else { return Ok(()) };
    if compiled.names.shared().next().is_none() {
        compiled.graph = Some(graph);
        return Ok(());
    }
    let mut by_name: BTreeMap<&str, Vec<StepIx>> = BTreeMap::new();
    for Shared { step, name } in shared {
        by_name.entry(name).or_default().push(*step);
    }
    let mut upstream = Upstream::new(&graph);
    let mut chosen: BTreeMap<StepIx, BTreeMap<&str, StepIx>> = BTreeMap::new();
    for (name, steps) in by_name {
        let producers = compiled.names.producers(name);
        for (&step, last) in steps.iter().zip(upstream.last_of(producers, &steps)?) {
            let producer = last.or_else(|| written_before(producers, step));
            let Some(producer) = producer else { continue };
            edges[step.index()].insert(producer);
            compiled.used[producer.index()] = true;
            chosen.entry(step).or_default().insert(name, producer);
        }
    }
    for (step, names) in chosen {
        let Some(templates) = compiled.templates.get_mut(&step) else { continue };
        for template in templates.all_mut() {
            template.each_root_mut(&mut |root| {
                if let Root::Variable(name) = root
                    && let Some(&producer) = names.get(&**name)
                {
                    *root = Root::Step(producer);
                }
            });
        }
    }
    compiled.graph = build_graph(compiled, &mut edges, findings);
    report_clashes(compiled, findings)
}

/// Without an edge that says more, the last producer written before the reference is meant, else the first one.
fn written_before(producers: &[StepIx], step: StepIx) -> Option<StepIx> {
    let before = producers.iter().rev().find(|&&producer| producer < step);
    before.or_else(|| producers.iter().find(|&&producer| producer != step)).copied()
}

fn report_clashes(compiled: &Compiled, findings: &mut Findings) -> Result<(), TooMuchWork> {
    let Some(graph) = &compiled.graph else { return Ok(()) };
    let mut upstream = Upstream::new(graph);
    for (name, producers) in compiled.names.shared() {
        let mut ordered = producers.to_vec();
        ordered.sort_by_key(|&ix| upstream.at(ix));
        // In topological order, producers are a chain if each one's last producer upstream is the one before it.
        let last = upstream.last_of(&ordered, &ordered)?;
        for (pair, last) in ordered.windows(2).zip(&last[1..]) {
            if *last == Some(pair[0]) {
                continue;
            }
            let (one, two) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            let id = |ix| compiled.step_id(ix).map_or_else(String::new, ToString::to_string);
            let message =
                format!("steps `{}` and `{}` may run at once and both set `{name}`", id(one), id(two));
            let finding = Finding::new(Code::ResultClash, format!("/steps/{}/result", two.index()), message);
            let hint = "give them different result names, or make one depend on the other".to_owned();
            findings.add(finding.of_step(compiled.step_id(two)).suggest(Some(hint)));
        }
    }
    Ok(())
}
