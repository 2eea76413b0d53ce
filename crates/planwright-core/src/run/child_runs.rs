//! The runs that do the work of one step: of its sub-plan, or of the calls of its executor.

use super::{CallFate, Parent, Run, StepState};
use crate::id::RunId;
use crate::plan::StepIx;

/// The runs that do the work of one step or instance.
#[derive(Debug, Clone, Copy)]
pub struct ChildRuns<'a> {
    run: &'a Run,
    step: StepIx,
}

impl Run {
    /// The runs that do the work of this step or instance.
    pub fn child_runs(&self, step: StepIx) -> ChildRuns<'_> {
        ChildRuns { run: self, step }
    }
}

impl<'a> ChildRuns<'a> {
    /// The place of the run of its sub-plan.
    pub fn place(self) -> Parent {
        let Self { run, step } = self;
        Parent {
            run: run.id.clone(),
            step: run.plan.step_id(run.plan_step(step)).clone(),
            index: run.instance(step).map(|instance| instance.index),
            call: None,
            outside: false,
        }
    }

    /// The places of the runs of its sub-plan: one, or one per element.
    pub(super) fn places(self) -> impl Iterator<Item = Parent> + use<'a> {
        let Self { run, step } = self;
        let instances: Vec<StepIx> = match run.open_loop(step) {
            Some(opened) => opened.instances().collect(),
            None => vec![step],
        };
        instances.into_iter().map(|ix| run.child_runs(ix).place())
    }

    /// The place of the run that makes a call of its executor.
    pub fn call_place(self, call: u32) -> Parent {
        Parent {
            call: Some(call),
            ..self.place()
        }
    }

    /// The runs of the calls that its executor made, in order.
    pub fn agent_calls(self) -> impl Iterator<Item = &'a RunId> + use<'a> {
        let turns = self.run.agent_work(self.step).map(|work| work.turns());
        let calls = turns
            .unwrap_or_default()
            .iter()
            .flat_map(|turn| &turn.calls);
        calls.filter_map(|call| match &call.fate {
            CallFate::Run(run) => Some(run),
            CallFate::Refused(_) => None,
        })
    }

    /// The run that does its work now, or did last.
    pub fn latest(self) -> Option<RunId> {
        if let StepState::AwaitingPlan { run, .. } = self.run.step(self.step) {
            return Some(run.clone());
        }
        match self.run.definition(self.step).agent {
            Some(_) => self.agent_calls().last().cloned(),
            None => Some(self.place().child()),
        }
    }
}
