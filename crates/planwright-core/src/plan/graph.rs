//! The edges between steps, and what follows from them: levels for display, remaining path for
//! priority.

use std::time::Duration;

/// The position of a step in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIx(u32);

impl StepIx {
    /// Makes the index of a step's position, counted from 0.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("plans are bounded far below u32::MAX steps"))
    }

    /// Returns the position, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The dependency edges of a plan without cycles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    dependencies: Vec<Box<[StepIx]>>,
    dependants: Vec<Box<[StepIx]>>,
    /// Every step after all it depends on; among equals, plan order.
    order: Vec<StepIx>,
}

impl Graph {
    /// Builds the graph from each step's dependencies, or returns one cycle, in edge order.
    pub fn new(dependencies: Vec<Vec<StepIx>>) -> Result<Self, Vec<StepIx>> {
        let count = dependencies.len();
        let mut dependants = vec![Vec::new(); count];
        for (index, list) in dependencies.iter().enumerate() {
            for dependency in list {
                dependants[dependency.index()].push(StepIx::new(index));
            }
        }
        let order = topological_order(&dependencies, &dependants);
        if order.len() < count {
            return Err(find_cycle(&dependencies, &order));
        }
        let seal = |lists: Vec<Vec<StepIx>>| lists.into_iter().map(Vec::into_boxed_slice).collect();
        Ok(Self {
            dependencies: seal(dependencies),
            dependants: seal(dependants),
            order,
        })
    }

    /// Returns the steps a step depends on.
    pub fn dependencies(&self, ix: StepIx) -> &[StepIx] {
        &self.dependencies[ix.index()]
    }

    /// Returns the steps that depend on a step.
    pub fn dependants(&self, ix: StepIx) -> &[StepIx] {
        &self.dependants[ix.index()]
    }

    /// Returns all steps, each after the steps it depends on.
    pub fn order(&self) -> &[StepIx] {
        &self.order
    }

    /// Steps grouped by the longest chain before them. For display: execution does not wait for
    /// levels.
    pub fn levels(&self) -> Vec<Vec<StepIx>> {
        let mut level_of = vec![0; self.order.len()];
        let mut levels: Vec<Vec<StepIx>> = Vec::new();
        for &ix in &self.order {
            let level = self
                .dependencies(ix)
                .iter()
                .map(|d| level_of[d.index()] + 1)
                .max()
                .unwrap_or(0);
            level_of[ix.index()] = level;
        }
        for (index, &level) in level_of.iter().enumerate() {
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            levels[level].push(StepIx::new(index));
        }
        levels
    }

    /// For every step, the longest time from its start to the end of the plan.
    pub fn remaining(&self, estimate: impl Fn(StepIx) -> Duration) -> Vec<Duration> {
        let mut remaining = vec![Duration::ZERO; self.order.len()];
        for &ix in self.order.iter().rev() {
            let after = self
                .dependants(ix)
                .iter()
                .map(|d| remaining[d.index()])
                .max()
                .unwrap_or_default();
            remaining[ix.index()] = estimate(ix).saturating_add(after);
        }
        remaining
    }

    /// The chain of steps that bounds the plan's duration from below.
    pub fn critical_path(&self, estimate: impl Fn(StepIx) -> Duration) -> Vec<StepIx> {
        let remaining = self.remaining(estimate);
        // `max_by_key` keeps the last of equals; reversed input makes that the first in plan order.
        let longest = |steps: &mut dyn DoubleEndedIterator<Item = StepIx>| {
            steps.rev().max_by_key(|ix| remaining[ix.index()])
        };
        let mut roots = (0..self.order.len())
            .map(StepIx::new)
            .filter(|&ix| self.dependencies(ix).is_empty());
        let mut path = Vec::new();
        let mut next = longest(&mut roots);
        while let Some(ix) = next {
            path.push(ix);
            next = longest(&mut self.dependants(ix).iter().copied());
        }
        path
    }
}

fn topological_order(dependencies: &[Vec<StepIx>], dependants: &[Vec<StepIx>]) -> Vec<StepIx> {
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut order: Vec<StepIx> = (0..missing.len())
        .filter(|&i| missing[i] == 0)
        .map(StepIx::new)
        .collect();
    let mut next = 0;
    while let Some(&ix) = order.get(next) {
        next += 1;
        for dependant in &dependants[ix.index()] {
            missing[dependant.index()] -= 1;
            if missing[dependant.index()] == 0 {
                order.push(*dependant);
            }
        }
    }
    order
}

/// Follows unordered dependencies until a step repeats. Every step outside `order` has one.
fn find_cycle(dependencies: &[Vec<StepIx>], order: &[StepIx]) -> Vec<StepIx> {
    let mut ordered = vec![false; dependencies.len()];
    for ix in order {
        ordered[ix.index()] = true;
    }
    let start = ordered
        .iter()
        .position(|done| !done)
        .expect("called only when a step could not be ordered");
    let mut seen_at = vec![None; dependencies.len()];
    let mut trail = Vec::new();
    let mut at = StepIx::new(start);
    loop {
        if let Some(first) = seen_at[at.index()] {
            let mut cycle = trail.split_off(first);
            cycle.reverse();
            return cycle;
        }
        seen_at[at.index()] = Some(trail.len());
        trail.push(at);
        at = *dependencies[at.index()]
            .iter()
            .find(|d| !ordered[d.index()])
            .expect("an unordered step has an unordered dependency");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[usize]]) -> Result<Graph, Vec<StepIx>> {
        Graph::new(
            edges
                .iter()
                .map(|list| list.iter().copied().map(StepIx::new).collect())
                .collect(),
        )
    }

    #[test]
    fn a_diamond_has_levels_of_one_two_one() {
        let sizes: Vec<usize> = graph(&[&[], &[0], &[0], &[1, 2]])
            .unwrap()
            .levels()
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(sizes, [1, 2, 1]);
    }

    #[test]
    fn five_roots_and_a_join_have_levels_of_five_one() {
        let sizes: Vec<usize> = graph(&[&[], &[], &[], &[], &[], &[0, 1, 2, 3, 4]])
            .unwrap()
            .levels()
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(sizes, [5, 1]);
    }

    #[test]
    fn a_cycle_is_returned_in_edge_order() {
        let cycle = graph(&[&[], &[3, 0], &[1], &[2]]).unwrap_err();
        assert_eq!(cycle.len(), 3);
        // Each member is a dependency of the next.
        assert!(cycle.contains(&StepIx::new(1)) && !cycle.contains(&StepIx::new(0)));
    }

    #[test]
    fn the_critical_path_follows_the_longest_chain() {
        let graph = graph(&[&[], &[], &[1], &[0, 2]]).unwrap();
        let path = graph.critical_path(|_| Duration::from_secs(1));
        assert_eq!(path, [1, 2, 3].map(StepIx::new));
    }
}
