//! From a document to its structure: ids, references, edges, order. Needs no knowledge of any tool.
//!
//! It never stops at the first mistake: everything that can be found is found, so that an author
//! fixes a plan once.

use super::finding::Findings;
use super::validate::check_fields;
use super::{Bounds, Code, Document, Finding, Graph, Plan, Root, Step, StepIx};
use crate::digest::Digest;
use crate::id::{PlanId, StepId};
use crate::plan::reference::{
    Names, Shared, StepTemplates, Template, TooMuchWork, Upstream, is_name, parse_outputs,
    parse_references,
};
use crate::text::{did_you_mean, nearest_names};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The structure of a document, sound or not.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) document: Document,
    pub(crate) by_id: BTreeMap<StepId, StepIx>,
    pub(crate) names: Names,
    pub(crate) templates: BTreeMap<StepIx, StepTemplates>,
    /// The parsed outputs, if there is a reference in them.
    pub(crate) outputs: Option<Template>,
    /// Marks the steps whose values another step or an output uses.
    pub(crate) used: Vec<bool>,
    /// `None` if there are cycles.
    pub(crate) graph: Option<Graph>,
}

impl Compiled {
    pub(crate) fn into_plan(self, bounds: &Bounds) -> Option<Plan> {
        let id = self.document.id.clone()?;
        let max_resolved_bytes = bounds.max_resolved_bytes;
        let Self {
            document,
            by_id,
            templates,
            outputs,
            graph,
            names: _,
            used: _,
        } = self;
        let document = Arc::new(document);
        let subplans = super::Subplans::default();
        Some(Plan {
            id,
            document,
            by_id,
            graph: graph?,
            templates,
            outputs,
            subplans,
            max_resolved_bytes,
        })
    }

    pub(crate) fn step_id(&self, ix: StepIx) -> Option<&StepId> {
        self.document.steps[ix.index()].id.as_ref()
    }
}

/// Compiles a document. `None` if it is too large to look at.
pub(crate) fn compile(
    mut document: Document,
    bounds: &Bounds,
    findings: &mut Findings,
) -> Option<Compiled> {
    if document.steps.len() > bounds.max_steps {
        let message = format!(
            "the plan has {} steps, at most {} are allowed",
            document.steps.len(),
            bounds.max_steps
        );
        findings.add(Finding::new(Code::TooLarge, "/steps", message));
        return None;
    }
    document.number_steps();
    document.identify();
    check_fields(&document, bounds, findings);
    let mut compiled = Compiled {
        by_id: index_ids(&document, findings),
        names: Names::of(&document),
        templates: BTreeMap::new(),
        outputs: None,
        used: vec![false; document.steps.len()],
        graph: None,
        document,
    };
    for step in &compiled.document.steps {
        check_result_name(step, &compiled, findings);
    }
    let mut edges = declared_edges(&mut compiled, findings);
    let shared = parse_references(&mut compiled, &mut edges, findings);
    parse_outputs(&mut compiled, findings);
    let count: usize = edges.iter().map(BTreeSet::len).sum();
    if count > bounds.max_edges {
        let message = format!(
            "the plan has {count} edges, at most {} are allowed",
            bounds.max_edges
        );
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

impl Document {
    /// Gives a document that came without an id one from its content: the same file is the same
    /// plan.
    pub fn identify(&mut self) {
        if self.id.is_some() {
            return;
        }
        // Not the canonical form: it costs ten times as much on large plans, and an id needs to be
        // stable, not to prove.
        let bytes = serde_json::to_vec(self).expect("documents have only string keys");
        let digest = Digest::of_bytes(&bytes);
        let entropy = digest
            .as_bytes()
            .iter()
            .take(8)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        self.id = Some(PlanId::mint(entropy));
    }
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
            let message = format!(
                "the id `{id}` belongs to step {} already",
                first.index() + 1
            );
            let finding = Finding::new(Code::DuplicateId, format!("/steps/{index}/id"), message);
            findings.add(
                finding
                    .of_step(Some(id))
                    .suggest(Some("give every step its own id".to_owned())),
            );
        } else {
            by_id.insert(id.clone(), StepIx::new(index));
        }
    }
    by_id
}

fn check_result_name(step: &Step, compiled: &Compiled, findings: &mut Findings) {
    let (Some(name), Some(id)) = (&step.result, &step.id) else {
        return;
    };
    let index = compiled.by_id.get(id).map_or(0, |ix| ix.index());
    let pointer = || format!("/steps/{index}/result");
    if !is_name(name) || name == "steps" || name == "secret" {
        let message = format!("the result name {name:?} cannot be used in a reference");
        let hint = "use letters, digits, `_` and `-`; `steps` and `secret` are taken";
        let finding = Finding::new(Code::BadName, pointer(), message).of_step(Some(id));
        findings.add(finding.suggest(Some(hint.to_owned())));
    } else if compiled.names.is_variable(name) {
        let message =
            format!("the variable `{name}` hides this result: `${{{name}}}` is the variable");
        let hint = format!("use another name, or `${{steps.{id}}}`");
        findings.add(
            Finding::new(Code::HiddenName, pointer(), message)
                .of_step(Some(id))
                .suggest(Some(hint)),
        );
    } else if let Some(other) = compiled.by_id.get(name.as_str())
        && other.index() != index
    {
        let message = format!("`${{{name}}}` is this result and no longer the step `{name}`");
        let hint = format!("use another name, or `${{steps.{name}}}` for the step");
        findings.add(
            Finding::new(Code::HiddenName, pointer(), message)
                .of_step(Some(id))
                .suggest(Some(hint)),
        );
    }
}

/// The edges of `dependsOn`. Dependencies listed twice are listed once afterwards.
fn declared_edges(compiled: &mut Compiled, findings: &mut Findings) -> Vec<BTreeSet<StepIx>> {
    let Compiled {
        document, by_id, ..
    } = compiled;
    let mut edges = Vec::with_capacity(document.steps.len());
    for (index, step) in document.steps.iter_mut().enumerate() {
        if step.depends_on.len() > 1 {
            let mut seen = BTreeSet::new();
            step.depends_on
                .retain(|dependency| seen.insert(dependency.clone()));
        }
        let mut list = BTreeSet::new();
        for (position, dependency) in step.depends_on.iter().enumerate() {
            let pointer = || format!("/steps/{index}/dependsOn/{position}");
            match by_id.get(dependency) {
                Some(ix) if ix.index() == index => {
                    let message = format!("step `{dependency}` depends on itself");
                    findings.add(
                        Finding::new(Code::SelfDependency, pointer(), message)
                            .of_step(step.id.as_ref()),
                    );
                }
                Some(ix) => {
                    list.insert(*ix);
                }
                None => {
                    let known = || by_id.keys().map(ToString::to_string);
                    let suggestion = findings
                        .hint(|| did_you_mean(&nearest_names(dependency.as_str(), known())));
                    let message = format!("there is no step `{dependency}` to depend on");
                    let finding = Finding::new(Code::UnknownDependency, pointer(), message);
                    findings.add(finding.of_step(step.id.as_ref()).suggest(suggestion));
                }
            }
        }
        edges.push(list);
    }
    edges
}

/// Builds the graph. Every cycle found is reported and cut, so that one does not hide the next.
fn build_graph(
    compiled: &Compiled,
    edges: &mut [BTreeSet<StepIx>],
    findings: &mut Findings,
) -> Option<Graph> {
    const MAX_CYCLES: usize = 10;
    for _ in 0..MAX_CYCLES {
        let lists = edges
            .iter()
            .map(|set| set.iter().copied().collect())
            .collect();
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
    let name = |ix: &StepIx| {
        compiled
            .step_id(*ix)
            .map_or_else(String::new, ToString::to_string)
    };
    let circle: Vec<String> = cycle.iter().chain(cycle.first()).map(name).collect();
    let message = format!("these steps wait for each other: {}", circle.join(" → "));
    let start = cycle.first().copied();
    let pointer = start.map_or_else(|| "/steps".to_owned(), |ix| step_pointer(ix.index()));
    Finding::new(Code::Cycle, pointer, message)
        .of_step(start.and_then(|ix| compiled.step_id(ix)))
        .suggest(Some(
            "remove one of these dependencies or references".to_owned(),
        ))
}

/// Decides the references to names that several steps produce, and refuses producers that may run
/// at once.
fn resolve_shared(
    compiled: &mut Compiled,
    mut edges: Vec<BTreeSet<StepIx>>,
    shared: &[Shared],
    findings: &mut Findings,
) -> Result<(), TooMuchWork> {
    let Some(graph) = compiled.graph.take() else {
        return Ok(());
    };
    if compiled.names.shared_names().next().is_none() {
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
        let templates = compiled.templates.entry(step).or_default();
        templates.names.extend(
            names
                .iter()
                .map(|(&name, &producer)| (name.into(), producer)),
        );
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

/// Without an edge that says more, the last producer written before the reference is meant, else
/// the first one.
fn written_before(producers: &[StepIx], step: StepIx) -> Option<StepIx> {
    let before = producers.iter().rev().find(|&&producer| producer < step);
    before
        .or_else(|| producers.iter().find(|&&producer| producer != step))
        .copied()
}

fn report_clashes(compiled: &Compiled, findings: &mut Findings) -> Result<(), TooMuchWork> {
    let Some(graph) = &compiled.graph else {
        return Ok(());
    };
    let mut upstream = Upstream::new(graph);
    for (name, producers) in compiled.names.shared_names() {
        let mut ordered = producers.to_vec();
        ordered.sort_by_key(|&ix| upstream.at(ix));
        // In topological order, producers are a chain if each one's last producer upstream is the
        // one before it.
        let last = upstream.last_of(&ordered, &ordered)?;
        for (pair, last) in ordered.windows(2).zip(&last[1..]) {
            if *last == Some(pair[0]) {
                continue;
            }
            let one = pair[0].min(pair[1]);
            let two = pair[0].max(pair[1]);
            let id = |ix| {
                compiled
                    .step_id(ix)
                    .map_or_else(String::new, ToString::to_string)
            };
            let message = format!(
                "steps `{}` and `{}` may run at once and both set `{name}`",
                id(one),
                id(two)
            );
            let finding = Finding::new(
                Code::ResultClash,
                format!("/steps/{}/result", two.index()),
                message,
            );
            let hint =
                "give them different result names, or make one depend on the other".to_owned();
            findings.add(finding.of_step(compiled.step_id(two)).suggest(Some(hint)));
        }
    }
    Ok(())
}
