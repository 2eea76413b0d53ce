//! Which runs belong together for the servers that keep something for them: a run, the runs of its
//! sub-plans, and the calls that its executors want.

use super::Context;
use planwright_core::id::RunId;
use planwright_core::run::Run;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The families of the runs that are being executed.
#[derive(Debug, Default)]
pub(crate) struct RunFamilies(Mutex<Members>);

#[derive(Debug, Default)]
struct Members {
    /// The run at the top of each run.
    tops: BTreeMap<RunId, RunId>,
    /// The number of runs below each top, with itself.
    counts: BTreeMap<RunId, usize>,
}

impl RunFamilies {
    /// Adds a run, and returns the run at its top: its own, unless its parent is executed here.
    fn enter(&self, run: &RunId, parent: Option<&RunId>) -> RunId {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let top = parent.and_then(|parent| members.tops.get(parent));
        let top = top.unwrap_or(run).clone();
        members.tops.insert(run.clone(), top.clone());
        *members.counts.entry(top.clone()).or_default() += 1;
        top
    }

    /// Removes a run, and returns whether it was the last one of its family.
    fn leave(&self, run: &RunId, top: &RunId) -> bool {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.tops.remove(run);
        let Some(count) = members.counts.get_mut(top) else {
            return false;
        };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            members.counts.remove(top);
        }
        last
    }
}

/// The place of one run in its family. The tools are told when the last one is dropped, however the
/// runs end.
#[derive(Debug)]
pub(crate) struct RunFamily {
    context: Arc<Context>,
    run: RunId,
    top: RunId,
}

impl RunFamily {
    /// Takes part, as long as this lives.
    pub(crate) fn enter(context: &Arc<Context>, run: &Run) -> Self {
        let parent = run.start().parent.as_ref().map(|parent| &parent.run);
        Self {
            top: context.families.enter(run.id(), parent),
            run: run.id().clone(),
            context: Arc::clone(context),
        }
    }

    /// The run at the top, which names the family.
    pub(crate) fn top(&self) -> &RunId {
        &self.top
    }
}

impl Drop for RunFamily {
    fn drop(&mut self) {
        if self.context.families.leave(&self.run, &self.top) {
            self.context.ports.tools.release(&self.top);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_lasts_until_the_last_of_its_runs_is_over() {
        let id = |text: &str| -> RunId { text.parse().unwrap() };
        let (top, child, grandchild) = (id("run_a"), id("run_b"), id("run_c"));
        let families = RunFamilies::default();
        assert_eq!(families.enter(&top, None), top);
        assert_eq!(families.enter(&child, Some(&top)), top);
        assert_eq!(families.enter(&grandchild, Some(&child)), top);
        assert!(!families.leave(&child, &top));
        assert!(!families.leave(&top, &top));
        assert!(families.leave(&grandchild, &top));
        // A child whose parent is not executed here is on its own.
        assert_eq!(families.enter(&child, Some(&top)), child);
        assert!(families.leave(&child, &child));
        assert!(families.0.lock().unwrap().tops.is_empty());
    }
}
