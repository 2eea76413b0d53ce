//! Resolves names to the values they stand for.
//!
//! Variables and inputs come first, then results, then step ids; `${steps.<id>}` is always the
//! step. A result name with one producer is decided by a look-up. Only a name with several
//! producers needs to know who is upstream of whom, and that is answered for all references to the
//! name in one pass over the part of the plan between them.

use crate::id::StepId;
use crate::plan::{Document, Graph, StepIx};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The meaning of a name in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Variable,
    Step(StepIx),
    /// A result of several steps: which one depends on where the reference stands.
    OneOfSeveral,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Names {
    variables: BTreeSet<Box<str>>,
    producers: BTreeMap<Box<str>, Vec<StepIx>>,
}

impl Names {
    pub(crate) fn of(document: &Document) -> Self {
        let mut producers: BTreeMap<Box<str>, Vec<StepIx>> = BTreeMap::new();
        for (index, step) in document.steps.iter().enumerate() {
            if let Some(name) = &step.result {
                producers
                    .entry(name.as_str().into())
                    .or_default()
                    .push(StepIx::new(index));
            }
        }
        let declared = document.variables.keys().map(String::as_str);
        let variables = declared
            .chain(input_properties(document))
            .map(Into::into)
            .collect();
        Self {
            variables,
            producers,
        }
    }

    pub(crate) fn meaning(&self, name: &str, by_id: &BTreeMap<StepId, StepIx>) -> Meaning {
        if self.variables.contains(name) {
            return Meaning::Variable;
        }
        match self.producers.get(name).map(Vec::as_slice) {
            Some([only]) => Meaning::Step(*only),
            Some(_) => Meaning::OneOfSeveral,
            None => by_id
                .get(name)
                .map_or(Meaning::Nothing, |&ix| Meaning::Step(ix)),
        }
    }

    pub(crate) fn is_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// Result names with more than one producer, and their producers in plan order.
    pub(crate) fn shared_names(&self) -> impl Iterator<Item = (&str, &[StepIx])> {
        self.producers
            .iter()
            .filter(|(_, steps)| steps.len() > 1)
            .map(|(name, steps)| (&**name, steps.as_slice()))
    }

    pub(crate) fn producers(&self, name: &str) -> &[StepIx] {
        self.producers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every name a reference could use, for suggestions.
    pub(crate) fn all<'a>(
        &'a self,
        by_id: &'a BTreeMap<StepId, StepIx>,
    ) -> impl Iterator<Item = String> + 'a {
        let names = self
            .variables
            .iter()
            .chain(self.producers.keys())
            .map(ToString::to_string);
        names.chain(by_id.keys().map(ToString::to_string))
    }
}

/// The names of the parameters that `inputs` describes.
pub(crate) fn input_properties(document: &Document) -> impl Iterator<Item = &str> {
    let properties = document
        .inputs
        .as_ref()
        .and_then(|schema| schema.get("properties"));
    properties
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
}

/// Looks for the last of several producers upstream of a step. The work is bounded over all names
/// of a plan, since a plan could share thousands of names over thousands of steps.
pub(crate) struct Upstream<'a> {
    graph: &'a Graph,
    position: Vec<u32>,
    last: Vec<Option<StepIx>>,
    work_left: usize,
}

/// The plan shares too many result names to say which step is meant.
#[derive(Debug)]
pub(crate) struct TooMuchWork;

impl<'a> Upstream<'a> {
    const MAX_WORK: usize = 20_000_000;

    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut position = vec![0; graph.order().len()];
        for (at, ix) in (0..).zip(graph.order()) {
            position[ix.index()] = at;
        }
        let last = vec![None; position.len()];
        Self {
            graph,
            position,
            last,
            work_left: Self::MAX_WORK,
        }
    }

    pub(crate) fn at(&self, ix: StepIx) -> usize {
        self.position[ix.index()] as usize
    }

    /// For each of `steps`, the producer upstream of it that comes last.
    pub(crate) fn last_of(
        &mut self,
        producers: &[StepIx],
        steps: &[StepIx],
    ) -> Result<Vec<Option<StepIx>>, TooMuchWork> {
        let (Some(from), Some(to)) = (
            producers.iter().map(|&ix| self.at(ix)).min(),
            steps.iter().map(|&ix| self.at(ix)).max(),
        ) else {
            return Ok(vec![None; steps.len()]);
        };
        let is_producer: BTreeSet<StepIx> = producers.iter().copied().collect();
        let window = &self.graph.order()[from.min(to)..=to];
        for &ix in window {
            let dependencies = self.graph.dependencies(ix);
            self.work_left = self
                .work_left
                .checked_sub(1 + dependencies.len())
                .ok_or(TooMuchWork)?;
            let mut last: Option<StepIx> = None;
            for &dependency in dependencies {
                if self.at(dependency) < from {
                    continue;
                }
                let candidate = if is_producer.contains(&dependency) {
                    Some(dependency)
                } else {
                    self.last[dependency.index()]
                };
                if let Some(candidate) = candidate
                    && last.is_none_or(|known| self.at(known) < self.at(candidate))
                {
                    last = Some(candidate);
                }
            }
            self.last[ix.index()] = last;
        }
        let in_window = |ix: StepIx| (from..=to).contains(&self.at(ix));
        Ok(steps
            .iter()
            .map(|&ix| {
                if in_window(ix) {
                    self.last[ix.index()]
                } else {
                    None
                }
            })
            .collect())
    }
}
