//! The plans that a plan runs: as they are stored, and compiled for running.

use super::{Action, Document, Plan};
use crate::id::PlanId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The stored plans that a plan runs, directly or through others: a snapshot, taken by the engine,
/// which can read the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownPlans(BTreeMap<PlanId, KnownPlan>);

/// A stored plan at its current version.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownPlan {
    /// Current version of the plan.
    pub version: u32,
    /// Document of that version.
    pub document: Arc<Document>,
    /// Why only a person may agree to this version, if policy may not.
    pub needs_person: Option<String>,
}

impl KnownPlans {
    /// Plans within plans within plans, and so on, up to here.
    pub const MAX_DEPTH: usize = 8;

    /// The plans one plan may run, directly or through others.
    pub const MAX_PLANS: usize = 100;

    /// Adds a plan.
    pub fn insert(&mut self, id: PlanId, plan: KnownPlan) {
        self.0.insert(id, plan);
    }

    /// Returns a plan by its id.
    pub fn get(&self, id: &PlanId) -> Option<&KnownPlan> {
        self.0.get(id)
    }

    /// Iterates over the plans in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &KnownPlan> {
        self.0.values()
    }

    /// Returns the number of plans.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no plan is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Document {
    /// The plans its steps run, each once.
    pub fn subplan_ids(&self) -> BTreeSet<&PlanId> {
        self.steps
            .iter()
            .filter_map(|step| step.plan.as_deref())
            .map(|plan| &plan.id)
            .collect()
    }
}

/// The plans that the steps of a plan run, compiled, each with its own in turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subplans(Arc<BTreeMap<PlanId, Subplan>>);

/// One version of a stored plan, ready to be given its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Subplan {
    /// Version that was compiled.
    pub version: u32,
    /// The compiled plan.
    pub plan: Arc<Plan>,
    /// Why only a person may agree to this version, if policy may not.
    pub needs_person: Option<String>,
}

impl FromIterator<(PlanId, Subplan)> for Subplans {
    fn from_iter<T: IntoIterator<Item = (PlanId, Subplan)>>(plans: T) -> Self {
        Self(Arc::new(plans.into_iter().collect()))
    }
}

impl Subplans {
    /// Returns a sub-plan by its id.
    pub fn get(&self, id: &PlanId) -> Option<&Subplan> {
        self.0.get(id)
    }

    /// Iterates over the sub-plans in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&PlanId, &Subplan)> {
        self.0.iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Plan {
    /// The plans its steps run, as far as they are known.
    pub fn subplans(&self) -> &Subplans {
        &self.subplans
    }

    /// Sets the plans that the steps run.
    pub fn set_subplans(&mut self, subplans: Subplans) {
        self.subplans = subplans;
    }

    /// Every plan below this one, each once, however many steps run it.
    pub fn all_subplans(&self) -> BTreeMap<&PlanId, &Subplan> {
        let mut found = BTreeMap::new();
        let mut left: Vec<&Self> = vec![self];
        while let Some(plan) = left.pop() {
            for (id, subplan) in plan.subplans.iter() {
                if found.insert(id, subplan).is_none() {
                    left.push(&subplan.plan);
                }
            }
        }
        found
    }

    /// The sub-plan that a step runs.
    pub fn subplan_of(&self, ix: super::StepIx) -> Option<&Subplan> {
        match self.step(ix).action() {
            Some(Action::Plan(plan)) => self.subplans.get(&plan.id),
            Some(Action::Tool { .. } | Action::Think(_) | Action::Agent(_) | Action::Input(_))
            | None => None,
        }
    }
}
